"""Sources in the order of time: sorted, or refused with the command that sorts."""

from __future__ import annotations

import gzip
import json
import subprocess
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.sources.memory import Labelled, MemorySource

from abers import RecordError
from abers.stream import Label, Observation
from abers_connectors.sources.base import Batch, SourceOptions
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.ordered import Bounds, OrderedSource
from abers_connectors.sources.registry import open_source, sort_remedy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers.stream import Event

TIMES = st.lists(st.integers(0, 30), max_size=40)
WIDE = Bounds(10**9, 10**9)
START = 1_772_323_200_000


def remedy(raw: str) -> str:
    """Return a remedy that names the row."""
    return f"Sort {json.loads(raw)['id']}."


def observations(times: Sequence[int]) -> list[Event]:
    """Return observations of some times, numbered as they come."""
    return [Observation(f"a{n}", time) for n, time in enumerate(times)]


def ordered(
    times: Sequence[int], size: int = 3, bounds: Bounds = WIDE, lateness: int = 0
) -> OrderedSource:
    """Return an ordered source of observations in batches of some size."""
    source = MemorySource(observations(times), size=size)
    return OrderedSource(source, remedy, bounds=bounds, lateness=lateness)


def ids(batches: Iterator[Batch] | list[Batch]) -> list[str]:
    """Return the ids of all events."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [event.id for batch in batches for event in batch.events]


@given(TIMES, st.integers(1, 7), st.integers(1, 7))
def test_rows_are_sorted_and_equal_times_keep_their_order(
    times: list[int], size: int, other: int
) -> None:
    """Rows come by time, then as they are in the file, also resumed after any batch."""
    expected = [f"a{n}" for n in sorted(range(len(times)), key=times.__getitem__)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batches = list(ordered(times, size).batches())
    assert ids(batches) == expected
    done = 0
    for batch in batches:
        done += len(batch.events)
        position = json.loads(json.dumps(batch.position))
        assert ids(ordered(times, other).batches(position)) == expected[done:]


def test_a_sorted_source_continues_within_what_it_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was stopped in the middle goes on behind the events that it delivered."""
    monkeypatch.setattr("abers_connectors.sources.ordered._PIECE", 4)
    times = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    with pytest.warns(UserWarning, match="are sorted by time"):
        batches = list(ordered(times).batches())
    assert [len(one.events) for one in batches] == [4, 4, 2]
    for number, batch in enumerate(batches, 1):
        position = json.loads(json.dumps(batch.position))
        assert ids(ordered(times, 4).batches(position)) == ids(batches[number:])
    grown = [*times, 20, 30]
    assert ids(ordered(grown).batches(batches[0].position))[6:] == ["a10", "a11"]
    assert ids(ordered(grown).batches(batches[-1].position)) == ["a10", "a11"]
    with pytest.raises(RecordError, match="Later rows were processed before; remove state"):
        ids(ordered([*times, 2]).batches(batches[0].position))


def test_a_row_is_named_where_rows_are_sorted() -> None:
    """One warning names the first row that is out of order; origins are those of the rows."""
    source = ordered([START, START + 5000, START + 1000, START], size=2)
    expected = (
        r"memory event 3 is of 2026-03-01 00:00:01 UTC, after a row of "
        r"2026-03-01 00:00:05 UTC\. The rows of memory are sorted by time\."
    )
    with pytest.warns(UserWarning, match=expected) as caught:
        batch, _again = [*source.batches(), *source.batches()]
    assert len(caught) == 1
    assert [batch.origin(row).where for row in range(4)] == [
        f"memory event {n}" for n in (1, 4, 3, 2)
    ]


def test_rows_in_order_pass_in_their_batches() -> None:
    """A source that is in order is delivered as it is, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = list(ordered([1, 1, 2, 3, 5, 8], bounds=Bounds(0, 0)).batches())
    assert [batch.events.times.tolist() for batch in batches] == [[1, 1, 2], [3, 5, 8]]


@pytest.mark.parametrize("bounds", [Bounds(0, 0), Bounds(1, 1), Bounds(800, 10**9)])
def test_what_cannot_be_sorted_is_refused(bounds: Bounds) -> None:
    """A row that comes too late, or in too large a source, is named with the remedy."""
    source = ordered([*range(10, 20), 3], bounds=bounds)
    with pytest.raises(RecordError, match=r"memory event 11 is of event time 3, .* Sort a10\."):
        list(source.batches())


def test_a_large_source_is_refused_before_anything_is_delivered() -> None:
    """A newest-first source that does not fit is refused at once."""
    source = ordered(range(1000, 0, -1), bounds=Bounds(1000, 10_000))
    with pytest.raises(RecordError, match=r"Sort a1\."):
        next(source.batches())


def test_rows_before_those_of_an_earlier_run() -> None:
    """What was appended out of order cannot be sorted into what was processed."""
    *_, last = ordered([5, 6, 9]).batches()
    assert ids(ordered([5, 6, 9, 12, 10]).batches(last.position)) == ["a4", "a3"]
    with pytest.raises(RecordError, match="Later rows were processed before; remove state and"):
        ids(ordered([5, 6, 9, 8]).batches(last.position))


def test_an_allowed_lateness_keeps_the_order() -> None:
    """Rows that are behind by no more than the allowed lateness stay where they are."""
    assert ids(ordered([5, 3, 7], lateness=2).batches()) == ["a0", "a1", "a2"]
    assert ids(ordered([5, 2, 7], lateness=2).batches()) == ["a1", "a0", "a2"]


def test_late_labels_are_in_order() -> None:
    """Labels among observations come when they come; labels alone are sorted."""
    events: list[Event] = [Observation("a", 1), Observation("b", 9), Label("a", 3), Label("b", 2)]
    mixed = OrderedSource(MemorySource(events), remedy)
    assert ids(mixed.batches()) == ["a", "b", "a", "b"]
    alone = OrderedSource(MemorySource(events[2:]), remedy, counted="labels")
    assert ids(alone.batches()) == ["b", "a"]


def test_only_the_wanted_part_is_sorted() -> None:
    """Rows of other models, or of other times, may be out of order, and are not kept."""
    events = [Observation(f"a{n}", time, model) for model in "xy" for n, time in enumerate((1, 2))]
    source = OrderedSource(MemorySource(events), remedy, bounds=Bounds(0, 0))
    delayed = DelayedLabels(source, count=0).part(None, None, ["y"])
    assert isinstance(delayed, DelayedLabels)
    assert ids(source.part(None, None, ["y"]).batches()) == ["a0", "a1"]
    assert ids(source.part(2, None, ["x"]).batches()) == ["a1"]


@given(TIMES, st.integers(0, 5), st.integers(1, 7))
def test_labels_are_delayed_in_the_order_of_time(times: list[int], delay: int, size: int) -> None:
    """Delayed labels of a shuffled source are those of the sorted one."""

    def delayed(given: Sequence[int], names: Sequence[int]) -> list[tuple[str, str, int]]:
        rows = [
            Labelled(Observation(f"a{n}", time), n % 2)
            for n, time in zip(names, given, strict=True)
        ]
        source = OrderedSource(MemorySource(rows, size=size), remedy, bounds=WIDE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            batches = list(DelayedLabels(source, span=delay).batches())
        return [(type(e).__name__, e.id, e.time) for batch in batches for e in batch.events]

    order = sorted(range(len(times)), key=times.__getitem__)
    assert delayed(times, range(len(times))) == delayed([times[n] for n in order], order)


ROWS = [{"id": f"a{n}", "time": START - 1000 * (n // 2), "score": n / 100} for n in range(50)]
TEXTS = [{**row, "time": f"2026-03-01T00:{59 - n // 2:02}:00Z"} for n, row in enumerate(ROWS)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows, the newest first, in the format of a name."""
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    if ".jsonl" in path.name:
        lines = [json.dumps(row) for row in rows]
    data = ("\n".join(lines) + "\n").encode()
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == "":
        path.mkdir()
        pq.write_table(pa.Table.from_pylist(rows), path / "part.parquet")
    else:
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


TEXT_FILES = ["s.csv", "s .csv.gz", "s.jsonl", "s.jsonl.gz"]


@pytest.mark.parametrize(
    ("name", "rows"),
    [(name, ROWS) for name in (*TEXT_FILES, "s.parquet", "s")]
    + [(name, TEXTS) for name in TEXT_FILES],
)
def test_the_command_sorts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, rows: list[dict[str, Any]]
) -> None:
    """The command of the message makes a file that is read in order, equal times as they were."""
    monkeypatch.chdir(tmp_path)
    source = open_source(str(write(Path(name), rows)), SourceOptions())
    refused = OrderedSource(
        source, lambda raw: sort_remedy(source, "time", None, raw), bounds=Bounds(0, 0)
    )
    with pytest.raises(RecordError, match="It is too large to be sorted here; sort it") as caught:
        list(refused.batches())
    command = str(caught.value).partition("sort it first: ")[2]
    subprocess.run(["/bin/sh", "-c", command], check=True)
    (found,) = Path().glob("sorted.*")
    again = OrderedSource(open_source(str(found), SourceOptions()), str, bounds=Bounds(0, 0))
    expected = sorted(rows, key=lambda row: row["time"])
    assert ids(again.batches()) == [row["id"] for row in expected]


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("standard input", ""),
        ("s3://bucket/data", ""),
        ("data/*.parquet", ""),
        ("s.csv", 'a,"x,y",5'),
    ],
)
def test_without_a_command_the_words_say_what_to_do(name: str, raw: str) -> None:
    """Where no one command sorts, the message still says what to do."""
    source = MemorySource([], name=name)
    assert sort_remedy(source, "ts", None, raw) == "Sort the input by ts first, and pass it again."
