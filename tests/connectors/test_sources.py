"""What every source promises, on every format, compressed or not, composed or not."""

from __future__ import annotations

import gzip
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from abers import StateError
from abers.stream.events import Label, Observation
from abers_connectors.between import Between
from abers_connectors.delayed import Delayed
from abers_connectors.fields import Fields, labelled, labels, mixed
from abers_connectors.files import parquet_bounds
from abers_connectors.files.reading import open_source
from abers_connectors.memory import MemorySource
from abers_connectors.merge import Merged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from abers_connectors.records import Source

RECORDS = 12_000
COLUMNS = ["id", "time", "model", "score", "label"]
FORMATS = ["csv", "jsonl", "csv.gz", "jsonl.gz", "csv.zst", "jsonl.zst", "parquet"]


def records(*, labels: bool) -> list[dict[str, Any]]:
    """Make some records, a few of them bad, of observations or of labels a while later."""
    made: list[dict[str, Any]] = []
    for row in range(RECORDS):
        time = 1_700_000_000_000 + 10 * (row // 3) + 5_000 * labels
        value = {"label": row % 2} if labels else {"score": row / RECORDS}
        made.append({"id": f"a{row}", "time": time, "model": "m", **value})
        if row % 2_503 == 17:
            made[-1]["time"] = 1_700_000_000  # seconds
    return made


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    """Write records to a file as its name says, if it is not there yet."""
    if path.exists():
        return str(path)
    form, _, compression = path.name.partition(".")[2].partition(".")
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=4_000)
        return str(path)
    if form == "csv":
        columns = [column for column in COLUMNS if any(column in row for row in rows)]
        lines = [",".join(columns)]
        lines += [",".join(str(row.get(column, "")) for column in columns) for row in rows]
    else:
        lines = [json.dumps(row) for row in rows]
    data = "\n\n".join(["\n".join(lines[:100]), "\n".join(lines[100:])]).encode() + b"\n"
    if compression == "gz":
        data = gzip.compress(data[:70_000]) + gzip.compress(data[70_000:])
    elif compression == "zst":
        codec = pa.Codec("zstd")
        data = b"".join(
            codec.compress(part, asbytes=True) for part in (data[:70_000], data[70_000:])
        )
    path.write_bytes(data)
    return str(path)


def observed(path: Path, form: str) -> Source:
    """Write observations, and open them."""
    return open_source(write(path / f"scores.{form}", records(labels=False)), mixed, Fields())


def settled(path: Path, form: str) -> Source:
    """Write labels, and open them."""
    return open_source(write(path / f"labels.{form}", records(labels=True)), labels, Fields())


def paired(path: Path, form: str) -> Source:
    """Write observations with labels, and open them."""
    rows = [{**row, "label": n % 2} for n, row in enumerate(records(labels=False))]
    return open_source(write(path / f"both.{form}", rows), labelled, Fields())


def in_memory() -> Source:
    """Hold observations in memory."""
    return MemorySource([Observation(f"a{row}", row, "m", 0.5) for row in range(RECORDS)])


SOURCES: dict[str, Callable[[Path], Source]] = {
    **{form: partial(observed, form=form) for form in FORMATS},
    "labels": lambda path: settled(path, "csv"),
    "memory": lambda _path: in_memory(),
    "merged": lambda path: Merged([observed(path, "jsonl"), settled(path, "csv.gz")]),
    "delayed by count": lambda path: Delayed(paired(path, "jsonl"), count=4_777),
    "delayed by time": lambda path: Delayed(paired(path, "csv"), span=20_000),
    "delayed and merged": lambda path: Merged(
        [Delayed(paired(path, "parquet"), span=5), observed(path, "jsonl.gz")]
    ),
    "between": lambda path: Between(observed(path, "jsonl"), since=1_700_000_010_000),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a directory for files that no test changes."""
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file of Parquet be some batches too."""
    monkeypatch.setattr(parquet_bounds, "BATCH", 5_000)


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, folder: Path) -> Source:
    """Make each source in turn."""
    return SOURCES[request.param](folder)


def told(batches: list[Any]) -> tuple[list[Any], list[tuple[int, Any]]]:
    """Give the events of some batches, and the bad records with the events before them."""
    events: list[Any] = []
    bad = []
    for batch in batches:
        bad += [(len(events) + one.row, one[1:]) for one in batch.bad]
        events += batch.events
    return events, bad


def test_reading_goes_on_after_any_batch(source: Source) -> None:
    """What follows the position of a batch is what an uninterrupted reading gives after it."""
    batches = list(source.batches())
    events, bad = told(batches)
    assert len(batches) > 1
    for number, batch in enumerate(batches, start=1):
        before, bad_before = told(batches[:number])
        position = json.loads(json.dumps(batch.position))
        after, bad_after = told(list(source.batches(position)))
        assert before + after == events
        assert [one for _, one in bad_before + bad_after] == [one for _, one in bad]


def test_going_on_may_be_interrupted_too(source: Source) -> None:
    """A reading that stops after every batch gives the same in the end."""
    whole, bad = told(list(source.batches()))
    pieces = []
    position = None
    while (batch := next(source.batches(position), None)) is not None:
        pieces.append(batch)
        position = batch.position
    again, bad_again = told(pieces)
    assert again == whole
    assert [one for _, one in bad_again] == [one for _, one in bad]


def test_every_event_has_an_origin(source: Source) -> None:
    """The text of its record holds the event's id; bad records come with theirs."""
    for batch in source.batches():
        for row in {0, len(batch.events) // 2, len(batch.events) - 1} if batch.events else ():
            assert batch.events[row].id in batch.origin(row).raw
        for one in batch.bad:
            assert 0 <= one.row <= len(batch.events)
            assert one.reason == "bad-time"
            assert '"time": ' in one.origin.raw or "1700000000" in one.origin.raw


def test_records_are_counted(source: Source) -> None:
    """Batches say how many records they were made of; labels that come later are none."""
    batches = list(source.batches())
    events, bad = told(batches)
    total = sum(batch.records for batch in batches)
    if isinstance(source, Delayed):
        assert total == RECORDS
        assert len(events) == 2 * (RECORDS - len(bad))
    elif isinstance(source, Between):
        assert total == RECORDS
        assert len(events) + source.dropped + len(bad) == RECORDS
    else:
        assert total == len(events) + len(bad)


def test_the_fraction_grows(source: Source) -> None:
    """How much was read is unknown or a share, and never falls."""
    shares = [source.fraction() or 0.0 for _ in source.batches()]
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 for share in shares)
    assert shares[-1] > 0.5


def test_batches_are_of_some_size(source: Source) -> None:
    """No batch is much larger than the others."""
    assert max(len(batch.events) for batch in source.batches()) < 17_000


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_says_the_same(folder: Path, form: str) -> None:
    """The same records give the same events from every file."""
    events, bad = told(list(observed(folder, form).batches()))
    expected = [
        Observation(row["id"], row["time"], "m", row["score"])
        for row in records(labels=False)
        if row["time"] > 1_700_000_000
    ]
    assert events == expected
    assert len(bad) == 5


def test_labels_come_from_their_own_file(folder: Path) -> None:
    """A file of labels gives labels only."""
    events, _ = told(list(settled(folder, "jsonl").batches()))
    assert events[1] == Label("a1", 1_700_000_005_000, "m", 1)
    assert {type(event) for event in events} == {Label}


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_has_shrunk(folder: Path, form: str) -> None:
    """A position behind the end of a file is a clear stop, at the end it is nothing."""
    source = observed(folder, form)
    *_, last = source.batches()
    count = last.position["records"]
    assert list(source.batches(last.position)) == []
    message = rf"{form} has {count} records, but {count + 1} were read before; put back"
    with pytest.raises(StateError, match=message):
        list(source.batches(last.position | {"records": count + 1}))


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_was_replaced(tmp_path: Path, form: str) -> None:
    """Where one record before the position is another, nothing is read; what follows is free."""
    rows = records(labels=False)
    *_, batch, _ = open_source(write(tmp_path / f"a.{form}", rows), mixed, Fields()).batches()
    done = batch.position["records"]
    assert 0 < done < RECORDS

    def ids(name: str, rows: list[dict[str, Any]]) -> list[str]:
        source = open_source(write(tmp_path / f"{name}.{form}", rows), mixed, Fields())
        return [event.id for one in source.batches(batch.position) for event in one.events]

    grown = [*rows[:done], rows[-1] | {"id": "new"}, *rows]
    assert ids("grown", grown)[0] == "new"
    for row in (0, done // 2, done - 1):
        other = [*rows[:row], rows[row] | {"score": 0.123}, *rows[row + 1 :]]
        message = rf"input .*{row}\.{form} is not what was read before: its first {done} records "
        with pytest.raises(StateError, match=message):
            ids(str(row), other)


COMPOSED: dict[str, Callable[[Source], Source]] = {
    "merged": lambda source: Merged([source]),
    "delayed by count": lambda source: Delayed(source, count=4_777),
    "delayed by time": lambda source: Delayed(source, span=20_000),
    "merged and delayed": lambda source: Merged([Delayed(source, span=20_000)]),
    "between": lambda source: Between(source, since=1_700_000_000_500),
}


@pytest.mark.parametrize("form", ["csv.gz", "parquet"])
@pytest.mark.parametrize("composed", COMPOSED)
def test_a_replaced_file_behind_others(tmp_path: Path, composed: str, form: str) -> None:
    """Also where reading begins before what was delivered, all that was delivered is compared."""
    rows = [{**row, "label": n % 2} for n, row in enumerate(records(labels=False))]
    kind = labelled if "delayed" in composed else mixed

    def opened(name: str, rows: list[dict[str, Any]]) -> Source:
        return COMPOSED[composed](
            open_source(write(tmp_path / f"{name}.{form}", rows), kind, Fields())
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
    """The same records in another packing are the same file."""
    rows = records(labels=False)
    plain = write(tmp_path / f"a.{form}", rows)
    *_, batch, last = open_source(plain, mixed, Fields()).batches()
    if form == "parquet":
        again = str(tmp_path / "b.parquet")
        options = {"row_group_size": 777, "compression": "zstd", "use_dictionary": False}
        pq.write_table(pq.read_table(plain), again, **options)
    else:
        again = write(tmp_path / f"b.{form}.gz", rows)
    rest, _ = told(list(open_source(again, mixed, Fields()).batches(batch.position)))
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
    """A column of Parquet that numpy cannot hold is not taken for one that is not there."""
    given = {"id": ["a", "b"], "time": [5, 6], "label": [1, 0]} | {name: column}
    pq.write_table(pa.table(given), tmp_path / "s.parquet")
    kind = labels if name == "model" else mixed
    (batch,) = open_source(str(tmp_path / "s.parquet"), kind, Fields()).batches()
    found = [(batch.origin(i).where, e.model) for i, e in enumerate(batch.events)]
    found += [(bad.origin.where, bad.reason) for bad in batch.bad]
    assert [what for _, what in sorted(found)] == expected
