"""Multi-class and regression tasks, from records to events and through the command.

The scores of an observation are the same in every format, and the fast paths agree with the general
one.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.stream import Label, Observation
from abers.stream.label_readers import ClassReader
from abers.stream.readers import ClassScoresReader
from abers.stream.schema_columns import Readers
from abers_connectors.mapping.bad_record import BadRecordError
from abers_connectors.mapping.columns import FieldColumn
from abers_connectors.mapping.fields import Fields
from abers_connectors.mapping.mapper import labelled, labels, mixed
from abers_connectors.mapping.rows import events_of
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


TIME = 1_700_000_000_000
CLASSES = ("cat", "7")
PATHS = {"cat": "p_cat", "7": "p_7"}


# Values


@pytest.mark.parametrize(
    ("classes", "value", "expected"),
    [
        (CLASSES, "cat", "cat"),
        (CLASSES, 7, "7"),
        (CLASSES, "7", "7"),
        (CLASSES, 7.0, "7"),
        (CLASSES, "7.0", "7"),
        (CLASSES, " cat ", "cat"),
        (("1", "0"), True, "1"),
        (("true", "false"), True, "true"),
        (("true", "false"), "TRUE", "true"),
        (("true", "false"), 0, "false"),
        (("7.0", "x"), 7, "7.0"),
        # Classes with equal values differ by their exact names.
        (("1", "01"), "01", "01"),
        (("01", "1"), "1", "1"),
        (("1", "01"), 1, "1"),
        (("01", "1"), 1, "1"),
        (("1", "true"), "true", "true"),
        (("a", " a"), " a", " a"),
        (("1" * 30, "1" * 29 + "2"), "1" * 29 + "2", "1" * 29 + "2"),
    ],
    ids=repr,
)
def test_a_class(classes: tuple[str, ...], value: object, expected: str) -> None:
    """A class is read by its exact name, or else by an equal value."""
    assert ClassReader(classes).one(value) == expected


@pytest.mark.parametrize(
    "value", ["dog", "", None, 8, 7.5, True, math.nan, math.inf, [], {}, 10**5000, "Cat"], ids=type
)
def test_no_class(value: object) -> None:
    """An unknown class is a bad label, and the message names all classes."""
    with pytest.raises(BadRecordError) as caught:
        ClassReader(CLASSES).one(value)
    assert caught.value.reason == "bad-label"
    assert "is not among the classes ['cat', '7']; add it" in caught.value.detail


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60))
def test_a_label_is_any_finite_number(value: float) -> None:
    """A number, or a string that parses as one, is a float, also if it is whole."""
    for written in (value, repr(value)):
        assert Readers.regression().label.one(written) == float(value)
        assert type(Readers.regression().label.one(written)) is float


@pytest.mark.parametrize(
    "value", [None, "", "x", "1_0", True, math.nan, math.inf, "inf", [], {}, 10**400], ids=repr
)
def test_no_number(value: object) -> None:
    """A label that is not a finite number is bad."""
    with pytest.raises(BadRecordError) as caught:
        Readers.regression().label.one(value)
    assert caught.value.reason == "bad-label"


def test_scores_are_an_object_of_numbers() -> None:
    """Each score is a finite number, or a string that parses as one."""
    assert ClassScoresReader().one({"cat": "0.5", "7": 1}) == {"cat": 0.5, "7": 1.0}
    for bad in (0.5, "0.5", [0.5], None, {"cat": None}, {"cat": "x"}, {"cat": math.nan}):
        with pytest.raises(BadRecordError) as caught:
            ClassScoresReader().one(bad)
        assert caught.value.reason == "bad-score"


# Records


def test_scores_in_one_field_or_in_one_each() -> None:
    """The scores of an observation are an object, or have a field each."""
    expected = Observation("a", 5, score={"cat": 0.75, "7": 0.25})
    head = {"id": "a", "time": 5}
    one, many = (
        mixed(Fields(), Readers.multiclass(CLASSES)),
        mixed(Fields(score=PATHS), Readers.multiclass(CLASSES)),
    )
    assert one.row({**head, "score": {"cat": 0.75, "7": "0.25"}}, 1) == expected
    assert many.row({**head, "p_cat": "0.75", "p_7": 0.25}, 1) == expected
    deep = mixed(Fields(score={"cat": "p.cat", "7": "p.seven"}), Readers.multiclass(CLASSES))
    assert deep.row({**head, "p": {"cat": 0.75, "seven": 0.25}}, 1) == expected
    assert many.reads >= {"p_cat", "p_7"}


def test_a_score_that_is_missing_is_named() -> None:
    """With a field for each class all are needed; without any the record is a label."""
    row = mixed(Fields(score=PATHS), Readers.multiclass(CLASSES)).row
    with pytest.raises(BadRecordError, match='no "p_7"'):
        row({"id": "a", "time": 5, "p_cat": 0.5}, 1)
    assert row({"id": "a", "time": 5, "label": "cat", "p_cat": None}, 1) == Label(
        "a", 5, value="cat"
    )


READS: dict[str, Readers] = {
    "binary": Readers.binary(),
    "multiclass": Readers.multiclass(CLASSES),
    "regression": Readers.regression(),
}
VALUES: Any = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=2),
    st.floats(),
    st.integers(),
    st.sampled_from([0, 1, "1", TIME, "cat", "7", 7, 7.0, 0.5, "0.5"]),
    st.dictionaries(st.sampled_from(CLASSES), st.floats() | st.none() | st.just("0.5"), max_size=2),
    st.just({"cat": 0.5, "7": 0.5}),
)
NAMES = st.sampled_from(["id", "time", "model", "score", "label"])
KINDS = st.sampled_from([mixed, labels, labelled])


def result(call: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Return the result as text, because NaN does not equal itself, or the reason of the error."""
    try:
        return repr(call())
    except BadRecordError as error:
        return error.reason


@pytest.mark.parametrize("task", READS)
@given(record=st.dictionaries(NAMES, VALUES), kind=KINDS)
def test_nested_records_say_the_same(task: str, record: dict[str, Any], kind: Any) -> None:  # noqa: ANN401
    """Top-level and nested fields are read alike."""
    plain, deep = kind(Fields(), READS[task]), kind(Fields(id="i.d"), READS[task])
    moved = {"i.d" if name == "id" else name: value for name, value in record.items()}
    assert result(lambda: plain.row(record, 1)) == result(lambda: deep.row(moved, 1))


# Files

ROW: dict[str, Any] = {"id": "a", "time": TIME, "model": "m"}
STREAMS: dict[str, tuple[Any, Readers, Fields, list[dict[str, Any]]]] = {
    "an object": (
        mixed,
        READS["multiclass"],
        Fields(),
        [{**ROW, "id": f"a{i}", "score": {"cat": i / 10, "7": 1 - i / 10}} for i in range(9)],
    ),
    "an object each, and labels": (
        mixed,
        READS["multiclass"],
        Fields(),
        [
            {**ROW, "id": "a", "score": {"cat": 0.5, "7": 0.5}, "label": None},
            {**ROW, "id": "b", "score": {"cat": 1.0, "7": 0.0}, "label": "cat"},
            {**ROW, "id": "a", "score": None, "label": "7"},
        ],
    ),
    "an object each, beside labels that are left alone": (
        mixed,
        READS["multiclass"],
        Fields(),
        [{**ROW, "id": f"a{i}", "score": {"cat": 0.5, "7": 0.5}, "label": "7"} for i in range(3)],
    ),
    "an object each with its label": (
        labelled,
        READS["multiclass"],
        Fields(),
        [{**ROW, "id": f"a{i}", "score": {"cat": 0.5, "7": 0.5}, "label": "7"} for i in range(3)],
    ),
    "labels of which some are not known yet": (
        labelled,
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
        labelled,
        READS["binary"],
        Fields(label_time="seen"),
        [
            {**ROW, "id": "a", "score": 0.5, "label": 1, "seen": None},
            {**ROW, "id": "b", "score": 0.25, "label": None, "seen": TIME},
        ],
    ),
    "labels that are not known yet": (
        labelled,
        READS["binary"],
        Fields(label_time="seen"),
        [{**ROW, "id": f"a{i}", "score": 0.5, "label": None, "seen": None} for i in range(3)],
    ),
    "classes of which some are not known yet": (
        labelled,
        READS["multiclass"],
        Fields(score=PATHS),
        [
            {**ROW, "id": "a", "p_cat": 0.5, "p_7": 0.5, "label": "cat"},
            {**ROW, "id": "b", "p_cat": 0.25, "p_7": 0.75, "label": None},
        ],
    ),
    "numbers of which some are not known yet": (
        labelled,
        READS["regression"],
        Fields(),
        [
            {**ROW, "id": "a", "score": 17.5, "label": None},
            {**ROW, "id": "b", "score": -3.0, "label": 4.0},
        ],
    ),
    "fields by class": (
        mixed,
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
        mixed,
        READS["multiclass"],
        Fields(),
        [{**ROW, "id": "a", "score": "0.5"}, {**ROW, "id": "b", "score": "cat"}],
    ),
    "labels by number": (
        labels,
        READS["multiclass"],
        Fields(),
        [{**ROW, "id": f"a{i}", "label": 7} for i in range(3)],
    ),
    "numbers": (
        mixed,
        READS["regression"],
        Fields(),
        [
            {**ROW, "id": "a", "score": 17.5, "label": None},
            {**ROW, "id": "b", "score": -3.0, "label": 4.0},
            {**ROW, "id": "a", "score": None, "label": 2.5},
        ],
    ),
    "whole numbers": (
        labelled,
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
    mapper, rows, bad = kind(fields, reads), [], []
    for record in records:
        try:
            rows.append(mapper.row(record, 1))
        except BadRecordError as error:
            bad.append((error.reason, error.detail))
    expected = events_of(rows)
    assert repr([*batch.events]) == repr([*expected])
    assert repr(batch.events.awaited) == repr(expected.awaited)
    assert repr(batch.events.awaited_times) == repr(expected.awaited_times)
    assert [(one.reason, one.detail) for one in batch.bad] == bad


def given_column(values: Sequence[Any]) -> FieldColumn:
    """Return a column as a file has it, in which None is a missing value."""
    valid = np.array([value is not None for value in values])
    plain = [value for value in values if value is not None]
    whole = np.zeros(
        len(values), (np.array(plain).dtype.kind in "fib" and type(plain[0])) or object
    )
    whole[valid] = plain
    return FieldColumn(whole, None if valid.all() else valid)


def lists(*values: Any) -> st.SearchStrategy[list[Any]]:  # noqa: ANN401
    """Draw a column of three values, not all of them None."""
    drawn = st.lists(st.sampled_from(values), min_size=3, max_size=3)
    return drawn.filter(lambda found: any(one is not None for one in found))


COLUMNS = st.fixed_dictionaries(
    {"id": lists("a", "b", ""), "time": lists(5, TIME, 10**9)},
    optional={
        "score": lists(0.5, 1.5, math.nan, None) | lists("0.5", "1", "x", "nan", ""),
        "label": lists(0.5, 7.0, math.inf, None) | lists("cat", "7", "7.0", "") | lists(7, 8, None),
        "other": lists(1.0),
    },
)


@pytest.mark.parametrize("task", READS)
@given(columns=COLUMNS, kind=KINDS)
def test_columns_say_what_rows_say(task: str, columns: dict[str, list[Any]], kind: Any) -> None:  # noqa: ANN401
    """Columns of strings and numbers become the events of their rows, or None."""
    mapper = kind(Fields(), READS[task])
    found = mapper.columns({name: given_column(values) for name, values in columns.items()})
    if found is not None:
        rows = [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]
        expected = events_of([mapper.row(row, 1) for row in rows])
        assert repr([*found]) == repr([*expected])
        assert repr(found.awaited) == repr(expected.awaited)


def test_numbers_are_read_at_once() -> None:
    """Numeric labels, also whole ones, become a column of numbers."""
    head = {"id": given_column(["a", "b"]), "time": given_column([5, TIME])}
    mapper = labels(Fields(), Readers.regression())
    for values in ([3, 4], [2.5, 3.0], ["3", "2.5"]):
        found: Any = mapper.columns({**head, "label": given_column(values)})
        assert found.values.dtype == np.float64
        assert found.values.tolist() == [*map(float, values)]
