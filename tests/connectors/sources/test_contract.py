"""The contract of a source, on every format, compressed or not, composed or not."""

from __future__ import annotations

import gzip
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.connectors.sources.contract import CHECKS, contents
from tests.connectors.sources.memory import MemorySource

from abers import StateError
from abers.stream.events import Label, Observation
from abers_connectors import files
from abers_connectors.sources import parquet_bounds, text
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.merge import MergedSource
from abers_connectors.sources.registry import SOURCES as SOURCE_REGISTRY
from abers_connectors.sources.registry import open_source
from abers_connectors.sources.time_range import TimeRange

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.sources.contract import Check

    from abers.stream.schema_columns import Kind
    from abers_connectors.sources.base import Source

RECORDS = 3_000
COLUMNS = ["id", "time", "model", "score", "label"]
FORMATS = ["csv", "jsonl", "csv.gz", "jsonl.gz", "csv.zst", "jsonl.zst", "parquet"]


def records(*, labels: bool) -> list[dict[str, Any]]:
    """Return records, a few of them bad, of observations or of later labels."""
    made: list[dict[str, Any]] = []
    for row in range(RECORDS):
        time = 1_700_000_000_000 + 10 * (row // 3) + 1_250 * labels
        value = {"label": row % 2} if labels else {"score": row / RECORDS}
        made.append({"id": f"a{row}", "time": time, "model": "m", **value})
        if row % 626 == 17:
            made[-1]["time"] = 1_700_000_000  # seconds
    return made


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    """Write records to a file in the format of its name, if it does not exist."""
    if path.exists():
        return str(path)
    form, _, compression = path.name.partition(".")[2].partition(".")
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=1_000)
        return str(path)
    if form == "csv":
        columns = [column for column in COLUMNS if any(column in row for row in rows)]
        lines = [",".join(columns)]
        lines += [",".join(str(row.get(column, "")) for column in columns) for row in rows]
    else:
        lines = [json.dumps(row) for row in rows]
    data = "\n\n".join(["\n".join(lines[:100]), "\n".join(lines[100:])]).encode() + b"\n"
    if compression == "gz":
        data = gzip.compress(data[:17_000]) + gzip.compress(data[17_000:])
    elif compression == "zst":
        codec = pa.Codec("zstd")
        data = b"".join(
            codec.compress(part, asbytes=True) for part in (data[:17_000], data[17_000:])
        )
    path.write_bytes(data)
    return str(path)


def observed(path: Path, form: str) -> Source:
    """Write observations, and open them."""
    return open_source(write(path / f"scores.{form}", records(labels=False)), SourceOptions())


def settled(path: Path, form: str) -> Source:
    """Write labels, and open them."""
    return open_source(
        write(path / f"labels.{form}", records(labels=True)), SourceOptions(kind="labels")
    )


def paired(path: Path, form: str) -> Source:
    """Write observations with labels, and open them."""
    rows = [{**row, "label": n % 2} for n, row in enumerate(records(labels=False))]
    return open_source(write(path / f"both.{form}", rows), SourceOptions(kind="labelled"))


def many_files(path: Path) -> Source:
    """Write observations into the files of a folder, two of which overlap in time, and open it."""
    rows = records(labels=False)
    (path / "many").mkdir(exist_ok=True)
    for number, part in enumerate((rows[:1_250], rows[1_250::2], rows[1_251::2])):
        write(path / "many" / f"part-{number}.parquet", part)
    return open_source(str(path / "many"), SourceOptions())


def in_memory() -> Source:
    """Return observations in memory."""
    return MemorySource(
        [Observation(f"a{row}", row, "m", 0.5) for row in range(RECORDS)], size=1_250
    )


SOURCES: dict[str, Callable[[Path], Source]] = {
    **{form: partial(observed, form=form) for form in FORMATS},
    "labels": lambda path: settled(path, "csv"),
    "memory": lambda _path: in_memory(),
    "data set": lambda _path: open_source("Phishing", SourceOptions()),
    "merged": lambda path: MergedSource([observed(path, "jsonl"), settled(path, "csv.gz")]),
    "delayed by count": lambda path: DelayedLabels(paired(path, "jsonl"), count=1_194, whole=True),
    "delayed by time": lambda path: DelayedLabels(paired(path, "csv"), span=5_000, whole=True),
    "delayed and merged": lambda path: MergedSource(
        [DelayedLabels(paired(path, "parquet"), span=5, whole=True), observed(path, "jsonl.gz")]
    ),
    "between": lambda path: TimeRange(observed(path, "jsonl"), since=1_700_000_002_500),
    "many files": many_files,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory for files that no test changes."""
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide a file into several batches, though it is small."""
    monkeypatch.setattr(parquet_bounds, "BATCH", 1_250)
    monkeypatch.setattr(text, "_BATCH_RECORDS", 1_250)
    monkeypatch.setattr(files, "CHUNK", 1 << 17)  # bytes


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, folder: Path) -> Source:
    """Return each source in turn."""
    return SOURCES[request.param](folder)


@pytest.mark.parametrize("check", CHECKS)
def test_a_source_keeps_the_contract(source: Source, check: Check) -> None:
    """Positions resume exactly, events have origins, and a reading can be closed."""
    check(source)


def test_every_registered_source_is_checked() -> None:
    """A new line in the registry needs a source in this file."""
    files = {SOURCE_REGISTRY.key(f"scores.{form}") for form in FORMATS}
    urls = {"file", "s3", "gs", "gcs", "az", "abfs", "abfss", "iceberg"}  # as "many files"
    assert files | urls == {*SOURCE_REGISTRY}


@pytest.mark.parametrize("form", FORMATS)
def test_a_source_is_opened_when_it_is_read(tmp_path: Path, form: str) -> None:
    """A source of a missing file can be created; reading it fails."""
    source = open_source(str(tmp_path / f"scores.{form}"), SourceOptions())
    with pytest.raises(FileNotFoundError):
        next(source.batches())


def test_the_text_of_a_bad_record(source: Source) -> None:
    """A bad record has its own text and reason."""
    for batch in source.batches():
        for one in batch.bad:
            assert one.reason == "bad-time"
            assert '"time": ' in one.origin.raw or "1700000000" in one.origin.raw


def test_records_are_counted(source: Source) -> None:
    """A batch has the number of its records; delayed labels are not records."""
    batches = list(source.batches())
    events, bad = contents(batches)
    total = sum(batch.records for batch in batches)
    if isinstance(source, DelayedLabels):
        assert total == RECORDS
        assert len(events) == 2 * (RECORDS - len(bad))
    elif isinstance(source, TimeRange):
        assert total == RECORDS
        assert len(events) + source.dropped + len(bad) == RECORDS
    else:
        assert total == len(events) + len(bad)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_says_the_same(folder: Path, form: str) -> None:
    """The same records give the same events from every file."""
    events, bad = contents(list(observed(folder, form).batches()))
    expected = [
        Observation(row["id"], row["time"], "m", row["score"])
        for row in records(labels=False)
        if row["time"] > 1_700_000_000
    ]
    assert events == expected
    assert len(bad) == 5


def test_labels_come_from_their_own_file(folder: Path) -> None:
    """A file of labels gives labels only."""
    events, _ = contents(list(settled(folder, "jsonl").batches()))
    assert events[1] == Label("a1", 1_700_000_001_250, "m", 1)
    assert {type(event) for event in events} == {Label}


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_has_shrunk(folder: Path, form: str) -> None:
    """A position beyond the end of a file is an error; at the end there is no batch."""
    source = observed(folder, form)
    *_, last = source.batches()
    count = last.position["records"]
    assert list(source.batches(last.position)) == []
    message = rf"{form} has {count} records, but {count + 1} were read before; put back"
    with pytest.raises(StateError, match=message):
        list(source.batches(last.position | {"records": count + 1}))


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_was_replaced(tmp_path: Path, form: str) -> None:
    """A changed record before the position is an error; records after it may change."""
    rows = records(labels=False)
    *_, batch, _ = open_source(write(tmp_path / f"a.{form}", rows), SourceOptions()).batches()
    done = batch.position["records"]
    assert 0 < done < RECORDS

    def ids(name: str, rows: list[dict[str, Any]]) -> list[str]:
        source = open_source(write(tmp_path / f"{name}.{form}", rows), SourceOptions())
        return [event.id for one in source.batches(batch.position) for event in one.events]

    grown = [*rows[:done], rows[-1] | {"id": "new"}, *rows]
    assert ids("grown", grown)[0] == "new"
    for row in (0, done // 2, done - 1):
        other = [*rows[:row], rows[row] | {"score": 0.123}, *rows[row + 1 :]]
        message = rf"input .*{row}\.{form} is not what was read before: its first {done} records "
        with pytest.raises(StateError, match=message):
            ids(str(row), other)


COMPOSED: dict[str, Callable[[Source], Source]] = {
    "merged": lambda source: MergedSource([source]),
    "delayed by count": lambda source: DelayedLabels(source, count=1_194),
    "delayed by time": lambda source: DelayedLabels(source, span=5_000),
    "merged and delayed": lambda source: MergedSource([DelayedLabels(source, span=5_000)]),
    "between": lambda source: TimeRange(source, since=1_700_000_000_500),
}


@pytest.mark.parametrize("form", ["csv.gz", "parquet"])
@pytest.mark.parametrize("composed", COMPOSED)
def test_a_replaced_file_behind_others(tmp_path: Path, composed: str, form: str) -> None:
    """All delivered records are compared, also when reading starts before the last of them."""
    rows = [{**row, "label": n % 2} for n, row in enumerate(records(labels=False))]
    kind: Kind = "labelled" if "delayed" in composed else "mixed"

    def opened(name: str, rows: list[dict[str, Any]]) -> Source:
        return COMPOSED[composed](
            open_source(write(tmp_path / f"{name}.{form}", rows), SourceOptions(kind=kind))
        )

    batches = list(opened("a", rows).batches())
    for number in (0, len(batches) // 2):
        batch = batches[number]
        delivered = [event.id for one in batches[: number + 1] for event in one.events]
        row = max(int(one[1:]) for one in delivered)
        other = [*rows[:row], rows[row] | {"score": 0.123}, *rows[row + 1 :]]
        with pytest.raises(StateError, match=r"is not what was read before: its first \d+ records"):
            next(opened(f"{number}", other).batches(batch.position))
        with pytest.raises(StateError, match=r"records, but .* were read before; put back"):
            next(opened(f"{number} cut", rows[:row]).batches(batch.position))


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_file_that_was_packed_anew(tmp_path: Path, form: str) -> None:
    """The same records with another compression are the same file."""
    rows = records(labels=False)
    plain = write(tmp_path / f"a.{form}", rows)
    *_, batch, last = open_source(plain, SourceOptions()).batches()
    if form == "parquet":
        again = str(tmp_path / "b.parquet")
        options = {"row_group_size": 777, "compression": "zstd", "use_dictionary": False}
        pq.write_table(pq.read_table(plain), again, **options)
    else:
        again = write(tmp_path / f"b.{form}.gz", rows)
    rest, _ = contents(list(open_source(again, SourceOptions()).batches(batch.position)))
    assert rest == list(last.events)


@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [
        ("model", pa.array([7, 8], pa.uint64()), ["7", "8"]),
        ("model", pa.array([["m"], ["n"]]), ["bad-model", "bad-model"]),
        ("model", pa.array([None, None], pa.null()), ["default", "default"]),
        ("model", pa.array([b"m", b"\xff"]).view(pa.string()), ["m", "not-utf8"]),
        ("score", pa.array([[0.5], None]), ["bad-score", "default"]),
        ("score", pa.array([{"a": 0.5}, None]), ["bad-score", "default"]),
    ],
    ids=["uint64", "list", "null", "not utf-8", "list of scores", "struct"],
)
def test_a_column_of_any_type(tmp_path: Path, name: str, column: pa.Array, expected: Any) -> None:  # noqa: ANN401
    """A Parquet column of a type that numpy lacks is not treated as missing."""
    given = {"id": ["a", "b"], "time": [5, 6], "label": [1, 0]} | {name: column}
    pq.write_table(pa.table(given), tmp_path / "s.parquet")
    kind: Kind = "labels" if name == "model" else "mixed"
    (batch,) = open_source(str(tmp_path / "s.parquet"), SourceOptions(kind=kind)).batches()
    found = [(batch.origin(i).where, e.model) for i, e in enumerate(batch.events)]
    found += [(bad.origin.where, bad.reason) for bad in batch.bad]
    assert [what for _, what in sorted(found)] == expected
