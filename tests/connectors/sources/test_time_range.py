"""The part of a stream in a range of event time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.sources.memory import MemorySource

from abers.stream.events import Event, Observation
from abers_connectors.sources.base import BadRecord, Batch, Origin
from abers_connectors.sources.time_range import TimeRange

TIMES = st.lists(st.integers(0, 9), max_size=20)
EDGE = st.none() | st.integers(-1, 11)


@given(TIMES, EDGE, EDGE)
def test_only_the_part_is_left(times: list[int], since: int | None, until: int | None) -> None:
    """Events at or after `since` and before `until` are kept; the others are counted."""
    events: list[Event] = [Observation(f"a{n}", time) for n, time in enumerate(times)]
    source = TimeRange(MemorySource(events, size=3), since, until)
    batches = list(source.batches())
    found = [event for batch in batches for event in batch.events]
    low, high = -5 if since is None else since, 50 if until is None else until
    assert found == [event for event in events if low <= event.time < high]
    assert source.dropped == len(events) - len(found)
    for batch in batches:
        for row, event in enumerate(batch.events):
            assert event.id in batch.origin(row).raw


def test_only_these_models_are_left() -> None:
    """With models the events of all others are left out, and counted."""
    events: list[Event] = [Observation(f"a{n}", n, f"m{n % 3}") for n in range(9)]
    source = TimeRange(MemorySource(events, size=4), since=2, models=("m0", "m2"))
    found = [event.id for batch in source.batches() for event in batch.events]
    assert found == ["a2", "a3", "a5", "a6", "a8"]
    assert source.dropped == 4


def test_bad_records_stay() -> None:
    """Bad records have no time, so they are kept, at the same position among the events."""

    class One(MemorySource):
        def batches(self, position=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            for batch in super().batches(position):
                bad = [BadRecord(row, "bad-json", "", Origin("", "")) for row in (0, 1, 2, 3)]
                yield Batch(batch.events, bad, batch.position, 7, batch.origin)

    source = One([Observation(f"a{time}", time) for time in (1, 2, 3)])
    (batch,) = TimeRange(source, since=2).batches()
    assert [one.row for one in batch.bad] == [0, 0, 1, 2]
    assert batch.records == 7
