"""Inputs merged by time: the order of a plain sort, and exact positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.sources.memory import MemorySource

from abers.stream import Event, Events, Label, Observation
from abers_connectors.sources.base import BadRecord, Batch, Origin
from abers_connectors.sources.merge import MergedSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.sources.base import Position

LATENESS = 5
HUGE = 10**6


class Broken(NamedTuple):
    """A record that cannot become an event."""

    name: str


class Recorded:
    """A source of events and bad records in batches of one size."""

    def __init__(self, records: list[Event | Broken], size: int) -> None:
        self.name = "recorded"
        self._records, self._size = records, size

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches; a bad record comes before the event that follows it."""
        done = position["records"] if position else 0
        while done < len(self._records):
            records = self._records[done : done + self._size]
            events: list[Event] = []
            bad: list[BadRecord] = []
            for record in records:
                if isinstance(record, Broken):
                    bad.append(BadRecord(len(events), "bad-json", "", Origin("", record.name)))
                else:
                    events.append(record)
            done += len(records)
            yield Batch(
                Events.of(events),
                bad,
                {"records": done},
                len(records),
                lambda row, events=events: Origin("here", events[row].id),  # type: ignore[misc]
            )

    def fraction(self) -> float | None:
        """Return None, as the share is unknown."""
        return None


def ids_and_bad(batches: list[Batch]) -> tuple[list[str], list[str]]:
    """Return the ids of the events of batches, and the names of the bad records."""
    return (
        [event.id for batch in batches for event in batch.events],
        [one.origin.raw for batch in batches for one in batch.bad],
    )


@st.composite
def inputs(draw: st.DrawFn) -> list[list[Event | Broken]]:
    """Draw inputs that are sorted within the lateness, with ties and bad records."""
    found: list[list[Event | Broken]] = []
    for number in range(draw(st.integers(1, 3))):
        records: list[Event | Broken] = []
        clock = -HUGE
        for row, (step, kind) in enumerate(
            draw(
                st.lists(st.tuples(st.integers(-LATENESS, 4), st.sampled_from("oolb")), max_size=25)
            )
        ):
            name = f"{number}.{row}"
            time = (clock if records else 0) + step
            clock = max(clock, time)
            if kind == "b":
                records.append(Broken(name))
            elif kind == "l":
                records.append(Label(name, time))
            else:
                records.append(Observation(name, time))
        clock = 0
        found.append(records)
    return found


def naively(found: list[list[Event | Broken]]) -> list[str]:
    """Sort by largest time so far, labels first, input, and position in the input."""
    keyed = []
    for number, records in enumerate(found):
        clock = -HUGE
        for place, record in enumerate(records):
            if not isinstance(record, Broken):
                clock = max(clock, record.time)
                keyed.append((clock, isinstance(record, Observation), number, place, record.id))
    return [key[-1] for key in sorted(keyed)]


@given(inputs(), st.integers(1, 7), st.integers(1, 7))
def test_the_order_is_that_of_a_sort(
    found: list[list[Event | Broken]], size: int, other: int
) -> None:
    """Batches of any size result in the sorted stream, also when resumed after any of them."""
    names = [record.name for records in found for record in records if isinstance(record, Broken)]
    merged = MergedSource([Recorded(records, size) for records in found])
    again = MergedSource([Recorded(records, other) for records in found])
    batches = list(merged.batches())
    events, bad = ids_and_bad(batches)
    assert events == naively(found)
    assert sorted(bad) == sorted(names)
    for number, batch in enumerate(batches, start=1):
        assert batch.records == len(batch.events) + len(batch.bad) > 0
        assert [batch.origin(row).raw for row in range(len(batch.events))] == [
            event.id for event in batch.events
        ]
        before, bad_before = ids_and_bad(batches[:number])
        for source in (merged, again):
            after, bad_after = ids_and_bad(list(source.batches(batch.position)))
            assert before + after == events
            assert sorted(bad_before + bad_after) == sorted(bad)


@given(inputs(), st.integers(1, 7))
def test_bad_records_keep_their_place(found: list[list[Event | Broken]], size: int) -> None:
    """A bad record comes after the preceding event of its input, and before the next."""
    order: list[str] = []
    for batch in MergedSource([Recorded(records, size) for records in found]).batches():
        waiting = list(batch.bad)
        for row, event in enumerate([*batch.events, None]):
            while waiting and waiting[0].row == row:
                order.append(waiting.pop(0).origin.raw)
            if event is not None:
                order.append(event.id)
        assert not waiting
    for number, records in enumerate(found):
        previous = None
        for record in records:
            name = record.name if isinstance(record, Broken) else record.id
            if isinstance(record, Broken) and previous is not None:
                assert order.index(previous) < order.index(name)
            if not isinstance(record, Broken):
                previous = record.id
        assert sum(name.startswith(f"{number}.") for name in order) == len(records)


def test_labels_come_first_at_the_same_time() -> None:
    """Events of equal time are in the order of the inputs."""
    observations = [Observation(f"o{time}", time) for time in (1, 2, 2, 3)]
    labels = [Label(f"l{time}", time) for time in (2, 3)]
    others = [Observation("p", 2)]
    sources: list[Any] = [MemorySource(events) for events in (observations, labels, others)]
    events, _ = ids_and_bad(list(MergedSource(sources).batches()))
    assert events == ["o1", "l2", "o2", "o2", "p", "l3", "o3"]


def test_an_event_that_is_behind_comes_right_behind_the_earlier_ones() -> None:
    """The order of one input is kept: the largest time so far decides."""
    events = [Observation("a", 100), Observation("b", 95), Observation("c", 104)]
    merged = MergedSource([MemorySource(events), MemorySource([Label("l", 97), Label("m", 102)])])
    found, _ = ids_and_bad(list(merged.batches()))
    assert found == ["l", "a", "b", "m", "c"]


def test_little_is_held() -> None:
    """Only a few batches of two long inputs are read ahead."""
    read = []

    class Watched(MemorySource):
        def batches(self, position: Position | None = None) -> Iterator[Batch]:
            for batch in super().batches(position):
                read.append(len(batch.events))
                yield batch

    observations = Watched([Observation(f"o{time}", time) for time in range(20_000)], size=100)
    labels = Watched([Label(f"o{time}", time + 5_000) for time in range(20_000)], size=100)
    delivered = 0
    for batch in MergedSource([observations, labels]).batches():
        delivered += len(batch.events)
        assert sum(read) - delivered <= 300
    assert delivered == 40_000
