"""Parquet: columns of every type, and files that are damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from abers import ParameterError, RecordError
from abers.stream.cells import Fields
from abers.stream.events import Label, Observation
from abers.stream.schema_columns import Readers
from abers.stream.times import TimeReader
from abers_connectors.sources import parquet_bounds
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import open_source

if TYPE_CHECKING:
    from pathlib import Path

    from abers.stream.schema_columns import Kind
    from abers_connectors.sources.base import Batch

TIME = 1_700_000_000_123
TICKS = ("s", "ms", "us", "ns")
MOMENT = datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)


def read(
    path: Path,
    columns: dict[str, Any],
    kind: Kind = "mixed",
    **fields: Any,  # noqa: ANN401
) -> list[Batch]:
    """Write a file of columns, and read it."""
    file = path / "x.parquet"
    pq.write_table(pa.table(columns), file)
    return list(open_source(str(file), SourceOptions(kind=kind, fields=Fields(**fields))).batches())


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"id": pa.array(["a", "b"], pa.large_string())},
        {"id": pa.array(["a", "b"]).dictionary_encode()},
        {"time": pa.array([TIME, TIME], pa.uint64())},
        {"time": pa.array([MOMENT, MOMENT], pa.timestamp("us", "UTC"))},
        {"time": pa.array([MOMENT, MOMENT], pa.timestamp("ns", "Europe/Zurich"))},
        {"time": pa.array(["2023-11-14T22:13:20.123Z"] * 2)},
        {"score": pa.array([0.5, 0.25], pa.float32())},
        {"score": pa.array([Decimal("0.5"), Decimal("0.25")])},
        {"score": pa.array(["0.5", "0.25"])},
        {"model": pa.array(["m", "m"]).dictionary_encode()},
        {"other": pa.array([[1], None])},
    ],
)
def test_types_of_columns(tmp_path: Path, changed: dict[str, Any]) -> None:
    """The events are the same for every type of a column."""
    columns = {"id": ["a", "b"], "time": [TIME, TIME], "model": ["m", "m"], "score": [0.5, 0.25]}
    (batch,) = read(tmp_path, {**columns, **changed})
    assert list(batch.events) == [
        Observation("a", TIME, "m", 0.5),
        Observation("b", TIME, "m", 0.25),
    ]
    assert type(batch.events[0].time) is int
    assert batch.origin(1).where == f"{tmp_path / 'x.parquet'} row 2"
    assert json.loads(batch.origin(1).raw)["id"] == "b"


EARLY = [datetime(1960, 2, 29), datetime(1970, 1, 1), datetime(1971, 6, 1), datetime(1973, 3, 2)]  # noqa: DTZ001
DATES = pa.array(EARLY).cast(pa.date32())
MILLISECONDS = [-310_521_600_000, 0, 44_582_400_000, 99_878_400_000]


@pytest.mark.parametrize(
    "times",
    [
        *(pa.array(EARLY, pa.timestamp(unit, zone)) for unit in TICKS for zone in ("UTC", None)),
        pa.array(EARLY, pa.timestamp("us", "Asia/Tokyo")),
        pa.array(EARLY, pa.timestamp("ms", "UTC")).dictionary_encode(),
        pa.array(EARLY, pa.timestamp("ms")).dictionary_encode(),
        pa.array(EARLY, pa.timestamp("ns", "UTC")).cast(pa.timestamp("us", "UTC")),
        DATES,
        pa.array(EARLY).cast(pa.date64()),
        pa.array([one.isoformat() for one in EARLY]),
    ],
    ids=lambda times: str(times.type),
)
def test_times_before_1973(tmp_path: Path, times: Any) -> None:  # noqa: ANN401
    """Dates before March 1973 are times of events and of labels, in a column of every type."""
    size = range(len(EARLY))
    columns = {"id": [*map(str, size)], "time": times, "at": times, "score": [0.5 for _ in size]}
    columns["label"] = [1 for _ in size]
    options = SourceOptions(
        kind="labelled",
        fields=Fields(label_time="at", passthrough=["time"]),
        readers=Readers.binary()._replace(time=TimeReader(UTC)),
    )
    (tmp_path / "parts").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "parts/x.parquet")
    for name in ("parts/x.parquet", "parts"):
        (batch,) = open_source(str(tmp_path / name), options).batches()
        assert not batch.bad
        assert batch.events.times.tolist() == MILLISECONDS
        assert batch.events.awaited_times is not None
        assert batch.events.awaited_times.tolist() == MILLISECONDS


def test_a_local_time_is_shown_as_a_date(tmp_path: Path) -> None:
    """A message has the time as people write it, and not as Python does."""
    local, none = "has no UTC offset", "is not a time"
    for times, text, problem in (
        (pa.array(EARLY), "1960-02-29 00:00:00", local),
        (DATES, "1960-02-29", local),
        (pa.array([time(1, 30)]), "01:30:00", none),
        (pa.array([timedelta(minutes=90)]), "1:30:00", none),
    ):
        (batch,) = read(tmp_path, {"id": ["a"], "time": times[:1], "score": [0.5]})
        assert batch.bad[0].detail.startswith(f"time '{text}' {problem}")


def test_a_time_that_is_passed_on(tmp_path: Path) -> None:
    """A time with a zone is repeated, and shown of a bad row, as whole milliseconds."""
    times = pa.array([*EARLY[:1], None], pa.timestamp("us", "UTC"))
    columns = {"id": [None, "b"], "time": [5, 6], "score": [0.5, 0.5], "since": times}
    (batch,) = read(tmp_path, columns, passthrough=["since"])
    assert json.loads(batch.bad[0].origin.raw)["since"] == MILLISECONDS[0]
    (batch,) = read(tmp_path, columns | {"id": ["a", "b"]}, passthrough=["since"])
    assert [event.extra for event in batch.events] == [{"since": MILLISECONDS[0]}, None]  # type: ignore[union-attr]


def test_a_time_after_the_calendar(tmp_path: Path) -> None:
    """A timestamp that no date has is a bad record, shown as the number that it is."""
    far = 10**17
    times = pa.array([5, far]).cast(pa.timestamp("ms", "UTC"))
    (batch,) = read(tmp_path, {"id": ["a", "b"], "time": times, "score": [0.5, 0.5]})
    assert batch.events.ids.tolist() == ["a"]
    (bad,) = batch.bad
    assert (bad.row, bad.reason) == (1, "bad-time")
    assert json.loads(bad.origin.raw)["time"] == far


@pytest.mark.parametrize("far", [10**15, 10**17, -(10**15)])
@pytest.mark.parametrize("kind", ["timestamp", "date32", "duration", "in a struct", "in a list"])
def test_a_value_after_the_calendar(tmp_path: Path, kind: str, far: int) -> None:
    """A date, a local time or a span that Python has not costs its row, and no other."""
    moments = pa.array([5, far]).cast(pa.timestamp("ms", "UTC"))
    fields: dict[str, Any] = {"time": "at.t"} if kind == "in a struct" else {"time": "at"}
    at = {
        "timestamp": moments.cast(pa.timestamp("ms")),
        "date32": pa.array([5, -(2**31) if far < 0 else 2**31 - 1], pa.int32()).cast(pa.date32()),
        "duration": pa.array([5, 90 * far]).cast(pa.duration("ms")),
        "in a struct": pa.StructArray.from_arrays([moments], ["t"]),
        "in a list": pa.ListArray.from_arrays([0, 1, 2], moments),
    }[kind]
    columns = {"id": ["a", "b"], "at": at, "score": [0.5, 0.5], "time": [5, 6]}
    if kind in {"duration", "in a list"}:
        fields = {"passthrough": ["at"]}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    readers = Readers.binary()._replace(time=TimeReader(UTC))
    options = SourceOptions(fields=Fields(**fields), readers=readers)
    (batch,) = open_source(str(tmp_path / "x.parquet"), options).batches()
    assert batch.events.ids.tolist() == ["a"]
    assert [(one.row, one.reason) for one in batch.bad] == [(1, "not-utf8")]
    assert "a value of the row is not a valid string or time" in batch.bad[0].detail


@pytest.mark.parametrize("field", ["id", "score", "label"])
def test_a_date_in_a_wrong_column_is_shown_as_a_date(tmp_path: Path, field: str) -> None:
    """A message has the date as people write it."""
    columns: dict[str, Any] = {"id": ["a"], "time": [5], "score": [0.5], "label": [1]}
    for dates, text in ((DATES, "'1960-02-29'"), (pa.array(EARLY), "'1960-02-29 00:00:00'")):
        (batch,) = read(tmp_path, columns | {field: dates[:1]}, "labelled")
        assert text in batch.bad[0].detail


def test_whole_numbers_as_ids(tmp_path: Path) -> None:
    """Integer ids become their digits."""
    (batch,) = read(tmp_path, {"id": [1, 2], "time": [5, 6], "score": [1, 2]})
    assert batch.events[1] == Observation("2", 6, "default", 2.0)


def test_nested_fields_and_extra_ones(tmp_path: Path) -> None:
    """A path leads into structs; only the needed columns are read."""
    columns = {"p": [{"id": "a"}], "t.s": [5], "score": [0.5], "e": [[1]], "big": ["x"]}
    (batch,) = read(tmp_path, columns, id="p.id", time="t.s", passthrough=["e"])
    assert batch.events[0] == Observation("a", 5, "default", 0.5, extra={"e": [1]})
    assert "big" not in batch.origin(0).raw


@pytest.mark.parametrize("models", [["m"] * 200, ["m", "n"] * 100, ["m"] * 199 + ["n"]])
def test_texts_that_are_repeated(tmp_path: Path, models: list[str]) -> None:
    """Frequent equal strings of a column are one object."""
    ids = [f"a{i}" for i in range(200)]
    columns = {"id": ids, "time": range(200), "model": models, "score": [0.5] * 200}
    (batch,) = read(tmp_path, {name: [*column] for name, column in columns.items()})
    assert [(event.id, event.model) for event in batch.events] == [*zip(ids, models, strict=True)]
    assert len({*map(id, batch.events.models.tolist())}) == len({*models})


def test_labels_of_every_type(tmp_path: Path) -> None:
    """Numbers, booleans and strings are labels."""
    for given in ([1, 0], [True, False], ["1", "false"], [1.0, 0.0]):
        (batch,) = read(tmp_path, {"id": ["a", "b"], "time": [5, 6], "label": given}, "labels")
        assert [event.value for event in batch.events] == [1, 0]  # type: ignore[union-attr]


def test_observations_and_labels_in_one_file(tmp_path: Path) -> None:
    """A row without a score is a label."""
    columns = {"id": ["a", "a"], "time": [5, 6], "score": [0.5, None], "label": [None, 1]}
    (batch,) = read(tmp_path, columns)
    assert list(batch.events) == [Observation("a", 5, "default", 0.5), Label("a", 6, "default", 1)]


def test_a_bad_row_costs_itself(tmp_path: Path) -> None:
    """Nulls, NaN and wrong times are bad rows; the others are read."""
    columns = {
        "id": ["a", None, "c", "d", "e"],
        "time": [5, 5, 1_700_000_000, 5, 5],
        "score": [0.5, 0.5, 0.5, np.nan, 0.5],
    }
    (batch,) = read(tmp_path, columns)
    assert [event.id for event in batch.events] == ["a", "e"]
    assert [(one.row, one.reason) for one in batch.bad] == [
        (1, "missing-field"),
        (1, "bad-time"),
        (1, "bad-score"),
    ]
    assert batch.origin(1).where.endswith("row 5")
    assert batch.bad[2].origin == (
        f"{tmp_path / 'x.parquet'} row 4",
        '{"id":"d","time":5,"score":null}',
    )


def test_a_local_time_without_an_offset_is_bad(tmp_path: Path) -> None:
    """A local time without an offset is a bad record."""
    (batch,) = read(tmp_path, {"id": ["a"], "time": [MOMENT.replace(tzinfo=None)], "score": [1.0]})
    assert batch.bad[0].reason == "bad-time"
    assert "UTC offset" in batch.bad[0].detail


def test_a_text_that_is_not_utf8(tmp_path: Path) -> None:
    """The row of an invalid string is bad; the others are read."""
    places = pa.py_buffer(np.array([0, 1, 3, 4], np.int32).tobytes())
    ids = pa.StringArray.from_buffers(3, places, pa.py_buffer(b"a\xff\xfec"))
    (batch,) = read(tmp_path, {"id": ids, "time": [5, 6, 7], "score": [0.5, 0.5, 0.5]})
    assert [event.id for event in batch.events] == ["a", "c"]
    assert [(one.row, one.reason, one.origin.raw) for one in batch.bad] == [(1, "not-utf8", "")]


def test_going_on_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream can be resumed anywhere, at the beginning of a row group or within it."""
    monkeypatch.setattr(parquet_bounds, "BATCH", 1)
    table = pa.table({"id": [f"a{n}" for n in range(50)], "time": range(50), "score": [0.5] * 50})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=20)
    source = open_source(str(path), SourceOptions())
    positions = [None, *(batch.position for batch in source.batches())]
    monkeypatch.setattr(parquet_bounds, "BATCH", 7)
    for skip, position in enumerate(positions):
        ids = [event.id for batch in source.batches(position) for event in batch.events]
        assert ids == [f"a{n}" for n in range(skip, 50)]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_model_in_another_case(tmp_path: Path, suffix: str) -> None:
    """A model whose column has a name in another case is an error, and not the default model."""
    path = tmp_path / f"s.{suffix}"
    row = {"id": "a", "time": 5, "Model": "m", "score": 0.5}
    if suffix == "csv":
        path.write_text(f"{','.join(row)}\n{','.join(map(str, row.values()))}\n")
    else:
        pq.write_table(pa.Table.from_pylist([row]), path)
    with pytest.raises(ParameterError, match="has no column model, but Model; name the right one"):
        list(open_source(str(path), SourceOptions()).batches())
    (batch,) = open_source(str(path), SourceOptions(Fields(model="Model"))).batches()
    assert batch.events.models.tolist() == ["m"]


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    """A missing column is a mistake in the configuration."""
    with pytest.raises(ParameterError, match=r"no column score or label; .* did you mean scores\?"):
        read(tmp_path, {"id": ["a"], "time": [5], "scores": [0.5]})


def test_a_file_that_is_damaged(tmp_path: Path) -> None:
    """A file that is truncated, damaged or not Parquet is an error with its name."""
    path = tmp_path / "x.parquet"
    rng = np.random.default_rng(7)
    scores = rng.random(20_000)
    pq.write_table(
        pa.table({"id": [f"a{n}" for n in range(20_000)], "time": range(20_000), "score": scores}),
        path,
        row_group_size=10_000,
    )
    whole = path.read_bytes()
    middle = len(whole) // 2
    for data in (
        b"",
        b"PAR1" * 20,
        whole[:-50],
        whole[:middle] + bytes(99_999) + whole[middle + 99_999 :],
    ):
        path.write_bytes(data)
        with pytest.raises(RecordError, match=r"x\.parquet after row \d+: .*(write|rewrite|copy)"):
            list(open_source(str(path), SourceOptions()).batches())


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    """Two columns, or two fields of a struct, with one name are an error; case makes two names."""
    columns = [pa.array(["a"]), pa.array([TIME]), pa.array([0.25]), pa.array([0.75])]
    inner = pa.StructArray.from_arrays(columns[2:], ["x", "x"])
    for last, name, message in ((columns[3], "score", "name score;"), (inner, "p", r"name p\.x;")):
        table = pa.table([*columns[:3], last], names=["id", "time", "score", name])
        pq.write_table(table, tmp_path / "x.parquet")
        with pytest.raises(RecordError, match=f"two columns have the {message} rename"):
            list(open_source(str(tmp_path / "x.parquet"), SourceOptions()).batches())
    (batch,) = read(tmp_path, {"id": ["a"], "time": [TIME], "score": [0.25], "Score": [0.75]})
    assert [event.score for event in batch.events] == [0.25]  # type: ignore[union-attr]


def test_pandas_is_not_imported(tmp_path: Path) -> None:
    """A replay from Parquet to Parquet does without pandas, which takes long to import."""
    size = 10
    columns = {
        "id": [f"a{row}" for row in range(size)],
        "time": pa.array([TIME + row for row in range(size)], pa.timestamp("ms", "UTC")),
        "model": ["m", None] * (size // 2),
        "score": np.arange(size) / size,
        "label": np.arange(size) % 2,
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    words = ["replay", "x.parquet", "--delay=3", "--output=y.parquet"]
    run = [sys.executable, "-X", "importtime", "-m", "abers_connectors", *words]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "pyarrow.lib" in imported
    assert "pandas" not in imported
    assert pq.ParquetFile(tmp_path / "y.parquet").metadata.num_rows == size
