"""Rows of requests become events, `abers_connectors.serve.rows`, as records of files do."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from abers.stream import Label, Observation
from abers_connectors.config.model import load
from abers_connectors.serve.rows import BadRequestError, RequestRows, RowReader

NOW = 1_700_000_000_000
THREE = {"task.kind": "multiclass", "task.classes": ["a", "b", "c"]}


def reader(kind: str, **flags: Any) -> RowReader:  # noqa: ANN401 - of a configuration
    """Return the reader of a server with these keys."""
    given = {name.replace("__", "."): one for name, one in flags.items()}
    config = load(flags={"serve": {}, **given}, environ={})
    return RowReader.of_labels(config) if kind == "labels" else RowReader.of_observations(config)


def read(rows: RowReader, *given: object) -> RequestRows:
    """Return what rows of JSON are."""
    return rows.read(json.dumps(given).encode(), NOW)


@pytest.mark.parametrize(
    ("flags", "row"),
    [
        ({}, {"id": "a", "score": 0.5}),
        ({}, {"id": "a", "score": 1, "model": "m", "segment": "s", "time": NOW - 5}),
        ({}, {"id": "a", "score": 0.5, "time": None, "segment": ""}),
        (THREE, {"id": "a", "score": {"a": 0.5, "b": 0, "c": 0.5}}),
        ({"task.kind": "regression"}, {"id": "a", "score": 7}),
        ({"calibrator.kind": "cvap"}, {"id": "a", "score": [0.5, 0.25]}),
        ({"calibrator.kind": "cvap"}, {"id": "a", "score": 0.5}),
        ({"learner.name": "logistic"}, {"id": "a", "x": {"n": 1, "t": "x", "l": [1]}}),
    ],
)
def test_exact_rows_are_what_the_schema_reads(flags: dict[str, Any], row: dict[str, Any]) -> None:
    """A row of exact types becomes the event that the schema makes of it."""
    rows = reader("observations", **flags)
    fast, slow = read(rows, row), rows.of_records([row], NOW)
    assert fast.events == slow.events
    assert not fast.errors
    assert not slow.errors
    msgspec.json.decode(json.dumps(row), type=rows.row)  # the schema was not needed


@pytest.mark.parametrize(
    ("flags", "label", "value"),
    [
        ({}, 1, 1),
        ({}, True, 1),
        ({}, "0", 0),
        (THREE, "b", "b"),
        ({"task.kind": "regression"}, 7, 7.0),
        ({"task.kind": "regression"}, "7.5", 7.5),
        ({"input.pos_label": ["fraud"]}, "fraud", 1),
        ({"input.pos_label": ["fraud"]}, "fine", 0),
    ],
)
def test_labels(flags: dict[str, Any], label: object, value: object) -> None:
    """A label is read as one of a file is, by itself and behind rows that need the schema."""
    rows, row = reader("labels", **flags), {"id": "a", "label": label}
    for found in (read(rows, row), rows.of_records([row], NOW)):
        assert found.events == [Label("a", NOW, "default", value, NOW)]


def test_texts_and_numbers_are_read_as_in_files() -> None:
    """A whole number is an id, a text that parses as a score is one, and times may be texts."""
    row = {"id": 17, "score": "0.25", "time": "2023-11-14T22:13:20Z", "model": None}
    assert read(reader("observations"), row).events == [
        Observation("17", NOW, "default", 0.25, recorded=NOW)
    ]
    percent = reader("observations", input__percent=True)
    assert read(percent, {"id": "a", "score": "36 %"}).events[0] == Observation(
        "a", NOW, score=0.36, recorded=NOW
    )


@pytest.mark.parametrize(
    ("row", "reason", "detail"),
    [
        ({"id": "a", "score": "high"}, "bad-score", "score 'high' is not a finite number; drop"),
        ({"id": "a"}, "missing-field", 'the row has no "score"; add it'),
        ({"score": 1}, "missing-field", 'the row has no "id"; add it'),
        ({"id": "", "score": 1}, "missing-field", 'the row has no "id"; add it'),
        ({"id": [1], "score": 1}, "bad-id", "[1] is not a valid id; write a string"),
        ({"id": "a", "score": 1, "time": 1_700_000_000}, "bad-time", "in seconds; write whole"),
        ({"id": "a", "score": 1, "colour": "red"}, "bad-record", "no field 'colour'; use id, "),
        (7, "bad-record", "7 is not a row; send an object"),
    ],
)
def test_bad_rows(row: object, reason: str, detail: str) -> None:
    """A row that cannot be used says what is wrong, and how to fix it; the others are events."""
    good = {"id": "good", "score": 0.5}
    found = read(reader("observations"), good, row, good)
    assert len(found.events) == 2
    ((number, error),) = found.errors.items()
    assert (number, error.reason) == (1, reason)
    assert detail in error.detail


@pytest.mark.parametrize("score", ["0.5", '"0.5"'])
def test_rows_behind_a_row_are_no_request(score: str) -> None:
    """Rows with commas between them, and no brackets around them, are refused together."""
    body = f'{{"id": "a", "score": {score}}}, {{"id": "b", "score": 0.5}}'.encode()
    with pytest.raises(BadRequestError, match=r"not JSON .rows follow a row.; send a list of rows"):
        reader("observations").read(body, NOW)


def test_a_number_beyond_all_is_an_error_in_its_row() -> None:
    """A row that is no JSON by itself does not stop the others."""
    body = b'[{"id": "a", "score": 1e999}, {"id": "b", "score": 0.5}]'
    found = reader("observations").read(body, NOW)
    assert [one.id for one in found.events] == ["b"]
    assert found.errors[0].reason == "bad-json"
