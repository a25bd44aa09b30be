"""The native pending store, as far as a processor does not show it; `naive.py` has its rules."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.backends import core
from abers.stream.pending_store import EARLY, FINISHED, PENDING, Count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers._core import PendingStore

Events = list[tuple[str, int, int, int, float]]  # id, kind, model, time, value

FOREVER = 1 << 53
"""A jump from which no time is too far ahead."""
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "ä", "a much longer name than the others", "\0", "日本"]),
        st.integers(0, 1),
        st.integers(0, 1),
        st.integers(-5, 60),
        st.sampled_from([0.0, 1.0, 7.0]),
    ),
    max_size=40,
)


class Done(NamedTuple):
    """The results of a batch."""

    steps: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    values: NDArray[np.float64]
    assumed: list[str]
    unknown: list[Any]
    dropped: NDArray[np.int64]


def done(held: PendingStore, events: Events) -> Done:
    """Process a batch."""
    held.recycle()
    ids = [event[0] for event in events]
    kinds = np.array([event[1] for event in events], np.uint8)
    models = np.array([event[2] for event in events], np.uint32)
    times = np.array([event[3] for event in events], np.int64)
    values = np.array([event[4] for event in events], np.float64)
    keys = np.arange(len(events), dtype=np.uint32) * (kinds == 0)
    count, assumed, unknown, gone = held.take(
        ids, kinds, models, keys.astype(np.uint32), times, values
    )
    steps = np.full((6, count), -1, np.int64)
    found, learned = np.empty(count, np.uint8), np.empty(count)
    held.steps(steps, found, learned)
    dropped = np.full((4, gone), -1, np.int64)
    held.dropped(*dropped)
    return Done(steps, found, learned, assumed, unknown, dropped)


def take(held: PendingStore, events: Events) -> tuple[list[Any], ...]:
    """Process a batch: return all but the slots of steps and dropped observations."""
    taken = done(held, events)
    rows = np.vstack([taken.steps[[0, 2, 3, 4, 5]], taken.kinds, taken.values])
    return rows.T.tolist(), taken.assumed, taken.unknown, taken.dropped[[0, 2]].T.tolist()


def entries(
    held: PendingStore, store: int, most: int = 10**6
) -> tuple[list[str], list[list[Any]], NDArray[np.int64]]:
    """Read a store, `most` entries at a time: ids, columns, slots."""
    count = held.count(store)
    slots, times, stored = (np.empty(count, np.int64) for _ in range(3))
    models, keys, values = np.empty(count, np.uint32), np.empty(count, np.uint32), np.empty(count)
    columns = (slots, models, keys, times, stored, values)
    ids: list[str] = []
    behind = 0
    while len(ids) < count:
        part = slice(len(ids), len(ids) + most)
        views: Any = (one[part] for one in columns)
        some, behind = held.entries(store, behind, *views)
        ids += some
    return ids, [column.tolist() for column in columns[1:]], slots


ROOMY = (1, 5, 5, 2, 10**6, 10**6, 10**6, 10**6, 1.0)


def restored(held: PendingStore, most: int) -> PendingStore:
    """Make another store with the same entries, `most` at a time."""
    other: PendingStore = core.PendingStore(*ROOMY)
    other.set_clocks(held.clocks())
    for store in (PENDING, EARLY, FINISHED):
        ids, columns, _ = entries(held, store)
        kinds = (np.uint32, np.uint32, np.int64, np.int64, np.float64)
        arrays = [np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        for first in range(0, len(ids), most):
            part = slice(first, first + most)
            other.load(store, ids[part], *(one[part] for one in arrays))
    return other


def test_a_label_that_does_not_come_is_assumed_once() -> None:
    """An observation that expires learns the assumed label; the next one of its id is late."""
    held = core.PendingStore(0, 5, 5, FOREVER, 10, 10, 10, 10**6, 7.0)
    steps, assumed, _, dropped = take(held, [("a", 0, 0, 1, 3.0), ("b", 0, 0, 7, 0.0)])
    # Row, key, times of observation and label, clock, kind, value.
    assert steps == [[0, 0, 1, 0, 1, 0, 0], [1, 0, 1, 6, 7, 2, 7], [1, 1, 7, 0, 7, 0, 0]]
    assert (assumed, dropped, held.count(PENDING)) == (["a"], [], 2)
    steps, assumed, *_ = take(held, [("a", 1, 0, 8, 1.0), ("a", 1, 0, 8, 1.0)])
    assert (steps, assumed) == ([[0, 0, 1, 8, 8, 3, 1]], [])
    assert held.count(PENDING) == 1


def test_an_assumed_observation_waits_once_more() -> None:
    """After a second wait an observation is finished, and nothing counts as lost."""
    held = core.PendingStore(0, 5, 5, FOREVER, 10, 10, 10, 10**6, 7.0)
    take(held, [("a", 0, 0, 1, 3.0), ("b", 0, 0, 7, 0.0)])
    steps, assumed, _, dropped = take(held, [("c", 0, 0, 13, 0.0)])
    assert ([step[5] for step in steps], assumed, dropped) == ([2, 0], ["b"], [])
    assert (held.counts[Count.ASSUMED], held.counts[Count.EXPIRED]) == (2, 0)
    assert entries(held, FINISHED)[0] == ["a"]


@given(batches=st.lists(EVENTS, max_size=6))
def test_slots_of_pending_observations_differ(batches: list[Events]) -> None:
    """Pending observations have distinct slots below the capacity; slot 0 is never used."""
    held = core.PendingStore(0, 20, 5, FOREVER, 10, 10, 5, 10**6)
    for events in batches:
        take(held, events)
        slots = entries(held, PENDING)[2].tolist()
        assert len({*slots, 0}) == len(slots) + 1
        assert all(slot < held.capacity() for slot in slots)


@given(batches=st.lists(EVENTS, max_size=6))
def test_what_was_dropped_is_no_longer_pending(batches: list[Events]) -> None:
    """A dropped observation was pending or came in the batch, and keeps its slot and key."""
    held = core.PendingStore(0, 20, 5, FOREVER, 2, 10, 5, 10**6)
    for events in batches:
        _, columns, slots = entries(held, PENDING)
        taken = done(held, events)
        waited = [*slots.tolist(), *taken.steps[1].tolist()]
        keys = dict(zip(waited, [*columns[1], *taken.steps[2].tolist()], strict=True))
        still = entries(held, PENDING)[2].tolist()
        for row, slot, key, _ in taken.dropped.T.tolist():
            assert keys[slot] == key
            assert 0 <= row < len(events)
            assert slot not in still


@given(events=EVENTS, more=EVENTS, most=st.integers(1, 9))
def test_what_is_loaded_is_what_was_written(events: Events, more: Events, most: int) -> None:
    """A store loaded with another's entries continues as the other does."""
    held = core.PendingStore(*ROOMY)
    take(held, events)
    other = restored(held, most)
    for store in (PENDING, EARLY, FINISHED):
        whole = entries(held, store)
        assert entries(other, store)[:2] == entries(held, store, most)[:2] == whole[:2]
    assert entries(other, PENDING)[2].tolist() == [*range(1, other.count(PENDING) + 1)]
    assert take(other, more) == take(held, more)
    for store in (PENDING, EARLY, FINISHED):
        assert entries(other, store)[:2] == entries(held, store)[:2]


def test_more_entries_than_there_are() -> None:
    """More entries than there are after a position raise an error, as does a wrong position."""
    held = core.PendingStore(0, 5, 5, FOREVER, 10, 10, 10, 10**6)
    take(held, [("a", 0, 0, 1, 0.0)])
    numbers, times = np.zeros(2, np.uint32), np.zeros(2, np.int64)
    for behind in (0, 1, 7):
        with pytest.raises(IndexError):
            held.entries(PENDING, behind, times, numbers, numbers, times, times, np.zeros(2))


def test_an_id_that_is_there_twice() -> None:
    """Entries that no store could have written are refused."""
    held = core.PendingStore(0, 5, 5, FOREVER, 10, 10, 10, 10**6)
    numbers, times = np.zeros(2, np.uint32), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="twice"):
        held.load(PENDING, ["a", "a"], numbers, numbers, times, times, np.zeros(2))


def test_an_invalid_id_changes_nothing() -> None:
    """An id that UTF-8 cannot encode is an error before any event is processed."""
    held = core.PendingStore(0, 5, 5, FOREVER, 10, 10, 10, 10**6)
    with pytest.raises(UnicodeEncodeError):
        take(held, [("a", 0, 0, 1, 0.0), ("\ud800", 0, 0, 2, 0.0)])
    assert (held.clock, held.count(PENDING), sum(held.counts)) == (None, 0, 0)


def test_columns_of_different_lengths() -> None:
    """The native store reads nothing beyond a column that is too short."""
    held = core.PendingStore(0, 5, 5, FOREVER, 10, 10, 10, 10**6)
    short, numbers = np.zeros(1, np.int64), np.zeros(2, np.uint32)
    kinds = np.zeros(2, np.uint8)
    with pytest.raises(ValueError, match="length"):
        held.take(["a", "b"], kinds, numbers, numbers, short, np.zeros(2))
    take(held, [("a", 0, 0, 1, 0.0)])
    for steps in (np.zeros((5, 1), np.int64), np.zeros((6, 2), np.int64)):
        with pytest.raises(ValueError, match="length"):
            held.steps(steps, np.zeros(1, np.uint8), np.zeros(1))
    with pytest.raises(IndexError):
        held.count(3)


@pytest.mark.large(1_000_000)
def test_a_million_pending_observations_are_small(size: int) -> None:
    """An entry with an id of 16 characters takes at most 120 bytes of the store."""
    held = core.PendingStore(0, 10**9, 5, FOREVER, 10**7, 10, 10, 10**9)
    for first in range(0, size, 10_000):
        take(held, [(f"{i:016d}", 0, 0, i, 0.0) for i in range(first, first + 10_000)])
    assert held.count(PENDING) == size
    assert sys.getsizeof(held) / size <= 120
