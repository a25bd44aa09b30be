"""Logs of arrivals: they keep their order, unless it is newest first."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.sources.memory import MemorySource

from abers import RecordError
from abers.stream import Label, Observation
from abers_connectors.sources.ordered import ArrivalLog, Bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers.stream import Event
    from abers_connectors.sources.base import Batch, Position

WIDE = Bounds(10**9, 10**9)


def log(n: int, late: int = 3) -> list[Event]:
    """Return observations, each with its label so many observations later."""
    found: list[Event] = []
    for time in range(n + late):
        found += [Observation(f"a{time}", time)] if time < n else []
        found += [Label(f"a{time - late}", time)] if time >= late else []
    return found


def arriving(events: Sequence[Event], size: int = 4, bounds: Bounds = WIDE) -> ArrivalLog:
    """Return a log of events in batches of some size."""
    source = MemorySource(events, size=size)
    return ArrivalLog(source, lambda raw: f"Sort {raw}.", lateness=0, bounds=bounds)


def events_of(batches: Iterator[Batch] | list[Batch]) -> list[tuple[str, int, bool]]:
    """Return id, time and kind of all events."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(one.id, one.time, type(one) is Label) for b in batches for one in b.events]


def expected(events: Sequence[Event]) -> list[tuple[str, int, bool]]:
    """Return the same of events by time, observations first."""
    rows = [(one.id, one.time, type(one) is Label) for one in events]
    return sorted(rows, key=lambda row: (row[1], row[2]))


@given(st.integers(2, 20), st.integers(0, 5), st.integers(1, 9), st.integers(1, 9))
def test_newest_first_is_sorted(n: int, late: int, size: int, other: int) -> None:
    """A log that is newest first comes by time, also resumed after any batch."""
    events = log(n, late)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches = list(arriving(events[::-1], size).batches())
    assert ["are sorted by time" in str(one.message) for one in caught] == [True]
    assert events_of(batches) == expected(events)
    done = 0
    for batch in batches:
        done += len(batch.events)
        position: Position = json.loads(json.dumps(batch.position))
        assert events_of(arriving(events[::-1], other).batches(position)) == expected(events)[done:]


@pytest.mark.parametrize("bounds", [WIDE, Bounds(2000, 10**9), Bounds(0, 0)])
def test_late_rows_stay_where_they_are(bounds: Bounds) -> None:
    """A log with late observations and late labels is delivered as it is, with its positions."""
    events = log(12)
    events.insert(9, Observation("late", 1))
    events.append(Label("late", 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = list(arriving(events, bounds=bounds).batches())
    assert [one for batch in batches for one in batch.events] == events
    assert batches[1].position == {"records": 8}
    rest = arriving(events, bounds=bounds).batches(batches[1].position)
    assert [one for batch in rest for one in batch.events] == events[8:]


def test_too_large_to_be_sorted() -> None:
    """A newest-first log that does not fit is refused with the remedy, before any batch."""
    source = arriving(log(500)[::-1], bounds=Bounds(10_000, 20_000))
    with pytest.raises(RecordError, match=r"memory event 2 is of event time .* Sort "):
        next(source.batches())


def test_what_comes_before_an_error_is_delivered() -> None:
    """Rows before a record that ends the reading are not lost, though they were read ahead."""

    class Broken(MemorySource):
        def batches(self, position: Position | None = None) -> Iterator[Batch]:
            yield from super().batches(position)
            msg = "the file is damaged"
            raise RecordError(msg)

    source = Broken(log(6), size=4)
    batches = ArrivalLog(source, str, lateness=0, bounds=WIDE).batches()
    assert [len(next(batches).events) for _ in range(3)] == [4, 4, 4]
    with pytest.raises(RecordError, match="the file is damaged"):
        next(batches)


def test_the_share_that_was_delivered() -> None:
    """What is read ahead counts when it is delivered."""
    source = arriving(log(6))
    assert [source.fraction() for _ in source.batches()] == [1 / 3, 2 / 3, 1.0]
