"""Streams of every task, and of labels that are not known yet, in every format of a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from abers.stream.cells import Cells, Fields, objects
from abers.stream.columns import Schema
from abers.stream.schema_columns import Readers
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import open_source

if TYPE_CHECKING:
    from pathlib import Path

    from abers.stream.schema_columns import Kind

TIME = 1_700_000_000_000
CLASSES = ("cat", "7")
PATHS = {"cat": "p_cat", "7": "p_7"}
READS: dict[str, Readers] = {
    "binary": Readers.binary(),
    "multiclass": Readers.multiclass(CLASSES),
    "regression": Readers.regression(),
}
ROW: dict[str, Any] = {"id": "a", "time": TIME, "model": "m"}
STREAMS: dict[str, tuple[Kind, Readers, Fields, list[dict[str, Any]]]] = {
    "an object": (
        "mixed",
        READS["multiclass"],
        Fields(),
        [{**ROW, "id": f"a{i}", "score": {"cat": i / 10, "7": 1 - i / 10}} for i in range(9)],
    ),
    "an object each, and labels": (
        "mixed",
        READS["multiclass"],
        Fields(),
        [
            {**ROW, "id": "a", "score": {"cat": 0.5, "7": 0.5}, "label": None},
            {**ROW, "id": "b", "score": {"cat": 1.0, "7": 0.0}, "label": "cat"},
            {**ROW, "id": "a", "score": None, "label": "7"},
        ],
    ),
    "an object each, beside labels that are left alone": (
        "mixed",
        READS["multiclass"],
        Fields(),
        [{**ROW, "id": f"a{i}", "score": {"cat": 0.5, "7": 0.5}, "label": "7"} for i in range(3)],
    ),
    "an object each with its label": (
        "labelled",
        READS["multiclass"],
        Fields(),
        [{**ROW, "id": f"a{i}", "score": {"cat": 0.5, "7": 0.5}, "label": "7"} for i in range(3)],
    ),
    "labels of which some are not known yet": (
        "labelled",
        READS["binary"],
        Fields(label_time="seen"),
        [
            {**ROW, "id": "a", "score": 0.5, "label": 1, "seen": TIME + 5},
            {**ROW, "id": "b", "score": 0.25, "label": None, "seen": None},
            {**ROW, "id": "c", "score": 0.75, "label": None, "seen": TIME + 9},
            {**ROW, "id": "d", "score": 0.75, "label": 0, "seen": TIME},
        ],
    ),
    "labels of which one has no time": (
        "labelled",
        READS["binary"],
        Fields(label_time="seen"),
        [
            {**ROW, "id": "a", "score": 0.5, "label": 1, "seen": None},
            {**ROW, "id": "b", "score": 0.25, "label": None, "seen": TIME},
        ],
    ),
    "labels that are not known yet": (
        "labelled",
        READS["binary"],
        Fields(label_time="seen"),
        [{**ROW, "id": f"a{i}", "score": 0.5, "label": None, "seen": None} for i in range(3)],
    ),
    "classes of which some are not known yet": (
        "labelled",
        READS["multiclass"],
        Fields(score=PATHS),
        [
            {**ROW, "id": "a", "p_cat": 0.5, "p_7": 0.5, "label": "cat"},
            {**ROW, "id": "b", "p_cat": 0.25, "p_7": 0.75, "label": None},
        ],
    ),
    "numbers of which some are not known yet": (
        "labelled",
        READS["regression"],
        Fields(),
        [
            {**ROW, "id": "a", "score": 17.5, "label": None},
            {**ROW, "id": "b", "score": -3.0, "label": 4.0},
        ],
    ),
    "fields by class": (
        "mixed",
        READS["multiclass"],
        Fields(score=PATHS),
        [
            {**ROW, "id": "a", "p_cat": 0.5, "p_7": 0.5, "label": None},
            {**ROW, "id": "b", "p_cat": 0.25, "p_7": 0.75, "label": "cat"},
            {**ROW, "id": "a", "p_cat": None, "p_7": None, "label": "7"},
            {**ROW, "id": "c", "p_cat": 0.5, "p_7": None, "label": None},
        ],
    ),
    "texts and numbers in place of objects": (
        "mixed",
        READS["multiclass"],
        Fields(),
        [{**ROW, "id": "a", "score": "0.5"}, {**ROW, "id": "b", "score": "cat"}],
    ),
    "labels by number": (
        "labels",
        READS["multiclass"],
        Fields(),
        [{**ROW, "id": f"a{i}", "label": 7} for i in range(3)],
    ),
    "numbers": (
        "mixed",
        READS["regression"],
        Fields(),
        [
            {**ROW, "id": "a", "score": 17.5, "label": None},
            {**ROW, "id": "b", "score": -3.0, "label": 4.0},
            {**ROW, "id": "a", "score": None, "label": 2.5},
        ],
    ),
    "whole numbers": (
        "labelled",
        READS["regression"],
        Fields(),
        [{**ROW, "id": f"a{i}", "score": 0.5, "label": i} for i in range(3)],
    ),
}


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    """Write records in the format of the file name."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        cells = [["" if one is None else str(one) for one in row.values()] for row in rows]
        path.write_text("".join(",".join(line) + "\n" for line in [[*rows[0]], *cells]))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


FILES = [
    (name, form)
    for name, (*_, records) in STREAMS.items()
    for form in ("jsonl", "parquet", "csv")
    # A cell of CSV holds no object; its classes stand in columns.
    if form != "csv" or not any(isinstance(one, dict) for row in records for one in row.values())
]


@pytest.mark.parametrize(("name", "form"), FILES)
def test_files_say_what_their_records_say(name: str, form: str, tmp_path: Path) -> None:
    """A file of any format has the events of its records."""
    kind, reads, fields, records = STREAMS[name]
    (batch,) = open_source(
        write(tmp_path / f"s.{form}", records),
        SourceOptions(kind=kind, fields=fields, readers=reads),
    ).batches()
    raw = {path: Cells(objects([one.get(path) for one in records])) for path in records[0]}
    expected, _, refused, _ = Schema(fields, reads, kind).read(raw, range(len(records)))
    assert repr([*batch.events]) == repr([*expected])
    assert repr(batch.events.awaited) == repr(expected.awaited)
    assert repr(batch.events.awaited_times) == repr(expected.awaited_times)
    found = [(one.reason, one.detail) for one in batch.bad]
    assert found == [(one.reason, one.detail) for one in refused]
