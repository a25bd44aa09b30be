"""Columns and frames of pyarrow, pandas and other libraries that have the C interface of Arrow."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import abers
from abers import LabelError, OneVsRest, ParameterError, ScoreError, VennAbers
from abers.arrays import array_of_arrow
from abers.stream import Events, Label, Observation, Processor

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.once

P = [0.1, 0.6, 0.7, 0.25]
Y = [0, 1, 1, 0]
DECIMALS = [Decimal("0.1"), Decimal("0.60"), Decimal("0.7"), Decimal("0.25")]


class Streamed:
    """What another library has: the C interface alone, such as a frame without `__array__`."""

    def __init__(self, data: Any) -> None:  # noqa: ANN401 - a table or a chunked array
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the stream."""
        return self._data.__arrow_c_stream__(requested_schema)


class Exported:
    """An array of another library, which has the C interface of one array."""

    def __init__(self, data: Any) -> None:  # noqa: ANN401 - an array
        self._data = data

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        """Return the array."""
        return self._data.__arrow_c_array__(requested_schema)


COLUMNS: dict[str, tuple[Any, Any]] = {
    "arrays": (pa.array(P), pa.array(Y)),
    "chunks": (pa.chunked_array([P[:1], P[1:]]), pa.chunked_array([Y[:3], Y[3:]])),
    "slices": (pa.array([9.0, *P])[1:], pa.array([7, *Y, 7])[1:5]),
    "decimals": (pa.array(DECIMALS), pa.array(Y, pa.int8())),
    "dictionaries": (pa.array(P).dictionary_encode(), pa.array(Y).dictionary_encode()),
    "truths": (pa.array(P), pa.array([False, True, True, False])),
    "unsigned": (pa.array(P), pa.array(Y, pa.uint64())),
    "streams": (Streamed(pa.chunked_array([P])), Streamed(pa.chunked_array([Y[:2], Y[2:]]))),
    "exports": (Exported(pa.array(P)), Exported(pa.array(Y))),
    "Series": (pd.Series(P, index=[4, 3, 2, 1]), pd.Series(Y, index=[9, 8, 7, 6])),
    "Series that may lack values": (pd.Series(P, dtype="Float64"), pd.Series(Y, dtype="Int64")),
    "Series of Arrow": (
        pd.Series(DECIMALS, dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        pd.Series([False, True, True, False], dtype="bool[pyarrow]"),
    ),
    "Series of objects": (pd.Series(DECIMALS), pd.Series(Y, dtype="category")),
    "polars": (pl.Series(P), pl.Series(Y, dtype=pl.Int8)),
    "decimals of polars": (pl.Series(DECIMALS), pl.Series(Y, dtype=pl.UInt64)),
    "truths of polars": (pl.Series(P), pl.Series([False, True, True, False])),
    "columns of a frame of polars": (pl.DataFrame({"p": P})["p"], pl.DataFrame({"y": Y})["y"]),
    "Decimals": (DECIMALS, [Decimal(one) for one in Y]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_as_lists(name: str) -> None:
    """Calibrators, reports and monitors take them as the same numbers in lists."""
    scores, labels = COLUMNS[name]
    calibrator, expected = VennAbers(), VennAbers()
    calibrator.learn_many(scores, labels, weights=scores, numbers=None)
    expected.learn_many(P, Y, weights=P)
    assert calibrator == expected
    assert calibrator.predict_many(scores)[0].tolist() == expected.predict_many(P)[0].tolist()
    assert abers.report(labels, scores) == abers.report(Y, P)
    watch = abers.monitor()
    watch.update(labels, scores)
    assert watch.report() == abers.report(Y, P)


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        (pa.array([0.1, None]), ScoreError, "row 1: score nan is not a finite number"),
        (pa.array([1, None]), ScoreError, "row 1: score nan is not a finite number"),
        (pa.array(["a", "b"]), ScoreError, "row 0: score 'a' is not a finite number"),
        (pa.array([True, None]), ScoreError, "row 1: score None is not a finite number"),
        (pa.array([Decimal("0.5"), None]), ScoreError, "row 1: score None is not a finite"),
        (pa.chunked_array([[0.1], [None]]), ScoreError, "row 1: score nan is not a finite"),
        (Streamed(pa.chunked_array([[None, 1.0]])), ScoreError, "row 0: score nan is not"),
        (pd.Series([0.1, None], dtype="Float64"), ScoreError, "row 1: score nan is not"),
        (pl.Series([0.1, None]), ScoreError, "row 1: score nan is not a finite number"),
        (pl.Series(["a", "b"]), ScoreError, "row 0: score 'a' is not a finite number"),
        (pl.Series([True, None]), ScoreError, "row 1: score None is not a finite number"),
        (pl.Series([Decimal("0.5"), None]), ScoreError, "row 1: score None is not a finite"),
        (pl.DataFrame({"a": P[:2], "b": P[:2]}), ParameterError, r"not of shape \(2, 2\)"),
        ([0.1, Decimal("sNaN")], ScoreError, r"row 1: score Decimal\('sNaN'\) is not a finite"),
        (pa.table({"a": P[:2], "b": P[:2]}), ParameterError, r"not of shape \(2, 2\)"),
    ],
)
def test_values_that_are_no_scores(column: Any, error: Any, message: str) -> None:  # noqa: ANN401
    """A null, a text and a table of two columns are errors with the row, and nothing changes."""
    calibrator = VennAbers()
    for call in (calibrator.learn_many, lambda p, y: abers.report(y, p)):
        with pytest.raises(error, match=message):
            call(column, [0, 1])
    assert not len(calibrator)


def test_labels_that_are_missing() -> None:
    """A null among the labels is an error with its row."""
    for labels in (
        pa.array([0, None]),
        pd.Series([0, None], dtype="Int64"),
        pl.Series([0, None]),
    ):
        with pytest.raises(LabelError, match="row 1: label nan is not 0 or 1"):
            VennAbers().learn_many(P[:2], labels)


@pytest.mark.parametrize(
    "made",
    [
        pa.array,
        lambda names: pa.array(names).dictionary_encode(),
        lambda names: pa.chunked_array([names[:1], names[1:]]),
        lambda names: Streamed(pa.chunked_array([names])),
        pd.Series,
        lambda names: pd.Series(names, dtype="category"),
        lambda names: pd.Series(names, dtype="string[pyarrow]"),
        pl.Series,
        lambda names: pl.Series(names, dtype=pl.Categorical),
        lambda names: pl.Series(names, dtype=pl.Enum(["a", "b"])),
    ],
)
def test_classes_and_tables_of_scores(made: Callable[[list[str]], Any]) -> None:
    """Names of classes may be texts of any of them, and scores a table with a column a class."""
    names, columns = ["a", "b", "a"], {"a": [0.5, 0.2, 0.7], "b": [0.25, 0.4, 0.2], "c": [0.1] * 3}
    expected = OneVsRest(["a", "b", "c"])
    expected.learn_many(np.column_stack([*columns.values()]), names)
    table = pa.table(columns)
    frames = (pd.DataFrame(columns), pl.DataFrame(columns))
    for scores in (table, table.to_batches()[0], Streamed(table), *frames):
        calibrator = OneVsRest(["a", "b", "c"])
        calibrator.learn_many(scores, made(names))
        assert calibrator == expected


@pytest.mark.parametrize("kind", [pa.timestamp("ms", "Europe/Berlin"), pa.timestamp("us")])
def test_times_and_names_of_a_report(kind: Any) -> None:  # noqa: ANN401 - a type of Arrow
    """Timestamps count in UTC, and models and segments may be dictionaries."""
    found = abers.report(
        pa.array(Y),
        pa.array(P),
        pa.array([4, 3, 2, 1], pa.timestamp("ms")).cast(pa.timestamp("us")).cast(kind),
        pa.array(["a", "b", "a", "b"]).dictionary_encode(),
        pa.chunked_array([["x"], ["x", "y", "y"]]),
    )
    expected = abers.report(Y, P, [4, 3, 2, 1], [*"abab"], [*"xxyy"])
    assert found == expected


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_report_of_polars(unit: Any, zone: str | None) -> None:  # noqa: ANN401 - of polars
    """Columns of polars are as lists: times of any unit and zone, and categoricals as names."""
    frame = pl.DataFrame(
        {
            "y": Y,
            "p": P,
            "at": pl.Series([4, 3, 2, 1], dtype=pl.Datetime("ms")).cast(pl.Datetime(unit)),
            "model": pl.Series([*"abab"], dtype=pl.Categorical),
            "part": [*"xxyy"],
        }
    )
    if zone is not None:
        at = pl.col("at").dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        frame = frame.with_columns(at)
    found = abers.report(*frame[["y", "p", "at", "model", "part"]])
    assert found == abers.report(Y, P, [4, 3, 2, 1], [*"abab"], [*"xxyy"])


def test_dates_as_arrays() -> None:
    """Dates and times are those of numpy, and nulls are NaT."""
    days = array_of_arrow(pa.array([1, None], pa.date32()))
    assert np.array_equal(days, np.array([1, "NaT"], "datetime64[D]"), equal_nan=True)
    times = array_of_arrow(pa.array([86_400_000], pa.date64()))
    assert times.tolist() == days[:1].astype("datetime64[ms]").tolist()
    assert array_of_arrow(pa.array([], pa.float64())).tolist() == []
    assert array_of_arrow(pa.chunked_array([], pa.int64())).tolist() == []


SCHEMA = {"id": pa.string(), "time": pa.int64(), "score": pa.float64()}
COLUMNS_OF_EVENTS: dict[str, list[Any]] = {
    "id": ["a", "b", "a"],
    "time": [1, 2, 3],
    "score": [0.25, 0.75, None],
    "label": [None, None, 1],
}


@pytest.mark.parametrize(
    "made",
    [
        pa.table,
        lambda columns: pa.table(columns).to_batches()[0],
        lambda columns: Streamed(pa.table(columns)),
        pd.DataFrame,
        lambda columns: pd.DataFrame(columns, index=[7, 8, 9]).convert_dtypes(),
        lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
        pl.DataFrame,
        lambda columns: pl.DataFrame(columns).rechunk().slice(0, 3),
        lambda columns: pl.concat(
            [pl.DataFrame(columns)[:1], pl.DataFrame(columns)[1:]], rechunk=False
        ),
        lambda columns: pl.DataFrame(columns, schema_overrides={"id": pl.Categorical}),
        lambda columns: pl.DataFrame(columns).with_columns(pl.col("score").cast(pl.Decimal(5, 2))),
        lambda columns: pl.DataFrame(columns).cast(pl.String),
    ],
)
def test_a_processor_takes_frames(made: Callable[[Any], Any]) -> None:
    """`process_batch` and `process_logged` take a frame as the events that it has."""
    events: list[Observation | Label] = [
        Observation("a", 1, score=0.25),
        Observation("b", 2, score=0.75),
        Label("a", 3, value=1),
    ]
    expected, first, second = Processor(), Processor(), Processor()
    outputs = expected.process_batch(Events.of(events)).in_order()
    frame = made(COLUMNS_OF_EVENTS)
    assert first.process_batch(frame).in_order() == outputs
    assert second.process_logged(frame)[0].in_order() == outputs
    assert first.state_bytes() == second.state_bytes() == expected.state_bytes()


def test_a_frame_of_polars_has_every_kind_of_column() -> None:
    """Moments with a zone are times; nulls are no values; other columns are as Python has them."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    frame = pl.DataFrame(
        {
            "id": [7, 8, None],
            "time": pl.Series([at, at, at]).dt.convert_time_zone("Europe/Berlin"),
            "model": pl.Series(["m", None, "m"], dtype=pl.Categorical),
            "segment": pl.Series([None, "s", "s"], dtype=pl.Enum(["s", "t"])),
            "score": [Decimal("0.25"), Decimal("0.5"), Decimal("0.75")],
            "day": [date(2026, 1, 1), None, None],
            "amount": [Decimal("1.50"), None, None],
            "user": [{"name": "é"}, None, None],
        }
    )
    names = {"extra": ["day", "amount", "user.name"]}
    time = 1_767_225_600_000
    extra = {"day": date(2026, 1, 1), "amount": 1.5, "user.name": "é"}
    events = Events.from_arrow(frame, names)
    assert list(events[:2]) == [
        Observation("7", time, "m", 0.25, extra=extra),
        Observation("8", time, "default", 0.5, segment="s"),
    ]
    outputs = Processor().process_batch(events)
    assert [(row, one.reason) for row, one in outputs.dead_letters] == [(2, "missing-field")]
    assert outputs.predictions.columns["id"].tolist() == ["7", "8"]
    known = frame[:2].with_columns(y=pl.Series([1.0, float("nan")]), known=pl.col("time"))
    timed = Events.from_arrow(known, {"label": "y", "label_time": "known"})
    assert [type(one) for one in timed] == [Observation, Label, Observation]


@pytest.mark.parametrize("values", [[datetime(2026, 1, 1)], [date(2026, 1, 1)]])  # noqa: DTZ001
def test_times_of_any_zone_in_polars(values: list[Any]) -> None:
    """Moments without a zone, and days, are an error that says what to write."""
    frame = pl.DataFrame({"id": ["a"], "time": values, "score": [0.5]})
    with pytest.raises(ParameterError, match=r"column time for time is .*with a time zone"):
        Processor().process_batch(frame)


def test_a_lazy_frame_is_to_be_collected() -> None:
    """A lazy frame is an error that says so, and is not computed for it."""
    frame = pl.LazyFrame({"id": ["a"], "time": [1], "score": [0.5]})
    with pytest.raises(ParameterError, match=r"LazyFrame is not a table .* that is collected"):
        Processor().process_batch(frame)
    assert len(Processor().process_batch(frame.collect()).predictions) == 1


def test_frames_without_rows_or_columns() -> None:
    """A frame without rows changes nothing, and one without the right columns is an error."""
    processor = Processor()
    table = pa.table({name: pa.array([], kind) for name, kind in SCHEMA.items()})
    assert processor.process_batch(table).in_order() == []
    with pytest.raises(ParameterError, match="there is no column id for id; the columns are key"):
        processor.process_batch(pa.table({"key": ["a"], "time": [1], "score": [0.5]}))
    for other in ({"id": ["a"]}, [Observation("a", 1, score=0.5)], None):
        with pytest.raises(ParameterError, match=r"is not a table of Arrow .* or Events\.of"):
            processor.process_batch(other)
    assert processor.state_bytes() == Processor().state_bytes()


def test_pandas_is_not_imported() -> None:
    """Columns and tables of pyarrow, and what streams Arrow, need no pandas."""
    program = """
import sys
import numpy as np
import pyarrow as pa
import abers
from abers.stream import Processor
from abers.stream.arrow_columns import new_array

class Streamed:
    def __init__(self, data):
        self.data = data
    def __arrow_c_stream__(self, schema=None):
        return self.data.__arrow_c_stream__(schema)

numbers, texts = np.array([0, 1]), np.array(["a", "b"], object)
scores, ids = new_array(numbers / 2, pa.float64()), new_array(texts, pa.string())
times, column = new_array(numbers, pa.int64()), pa.chunked_array([scores])
for p in (scores, column, Streamed(column)):
    abers.VennAbers().learn_many(p, times)
    abers.report(times, p, model=ids)
batch = pa.RecordBatch.from_arrays([ids, times, scores], ["id", "time", "score"])
table = pa.Table.from_batches([batch])
for frame in (batch, table, Streamed(table)):
    assert len(Processor().process_batch(frame).predictions) == 2
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
