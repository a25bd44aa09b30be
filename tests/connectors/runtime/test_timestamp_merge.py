from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from abers_connectors.runtime.batches import LABELS, OBSERVATIONS, TimestampMerge
from abers_connectors.runtime.transport import sizes_of


class Written(NamedTuple):
    """A record outside of any topic."""

    timestamp: int
    offset: int
    key: bytes | None = None
    value: bytes | None = b"1234"
    topic: str = ""
    partition: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


def size_of(record: Written) -> int:
    """Return the size of one record."""
    return sizes_of([record])[0]


TIMES = st.lists(st.integers(0, 5), max_size=12)
CUTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 4)), max_size=30)


def written(times: list[int]) -> list[Written]:
    """Return records with these timestamps, in their order."""
    return [Written(time, offset) for offset, time in enumerate(times)]


def by_definition(*inputs: list[Written]) -> list[tuple[int, int]]:
    """Return the order by definition: the earlier record first, the later input at equal times."""
    order, waiting = [], [*map(list, inputs)]
    while any(waiting):
        heads = [(one[0].timestamp, -which) for which, one in enumerate(waiting) if one]
        which = -min(heads)[1]
        order.append((which, waiting[which].pop(0).offset))
    return order


@given(TIMES, TIMES, CUTS)
def test_order(
    observations: list[int], labels: list[int], cuts: list[tuple[int, int, int]]
) -> None:
    """The order is that of the definition, however the records arrive and are taken."""
    inputs = [written(observations), written(labels)]
    left = [list(one) for one in inputs]
    merge, order = TimestampMerge(2), []
    for more_observations, more_labels, most in [*cuts, (12, 12, 99), (0, 0, 99)]:
        for which, count in enumerate((more_observations, more_labels)):
            merge.add(which, left[which][:count])
            del left[which][:count]
        taken = merge.take(most, 1 << 20, [not one for one in left])
        order += [(w, r.offset) for w, r in zip(taken.inputs, taken.records, strict=True)]
    assert order == by_definition(*inputs)


def test_nothing_before_both_are_known() -> None:
    """A record waits while an earlier record of the other input may still arrive."""
    merge = TimestampMerge(2)
    merge.add(OBSERVATIONS, written([1, 2]))
    assert merge.take(9, 999, [True, False]).records == []
    assert merge.missing() == LABELS
    merge.add(LABELS, written([2]))
    assert merge.take(9, 999, [True, False]).inputs == [OBSERVATIONS, LABELS]
    assert merge.queued(OBSERVATIONS) == (1, size_of(written([2])[0]))


def test_one_input() -> None:
    """The records of a single input are taken in their order."""
    merge = TimestampMerge(1)
    merge.add(OBSERVATIONS, written([5, 3]))
    assert [one.timestamp for one in merge.take(9, 999, [False]).records] == [5, 3]
    assert merge.missing() is None


def test_limit_in_bytes() -> None:
    """No more bytes are taken than allowed, except for one record; headers count."""
    merge = TimestampMerge(1)
    records = [one._replace(headers=(("trace", b"x" * 1000),)) for one in written([1, 2, 3])]
    size = size_of(records[0])
    assert size == size_of(written([1])[0]) + 150 + len("trace") + 1000
    merge.add(OBSERVATIONS, records)
    taken = merge.take(9, size + 1, [False])
    assert (len(taken.records), taken.size) == (2, 2 * size)
    assert merge.queued(OBSERVATIONS) == (1, size)


def test_size_of_a_record() -> None:
    """What is null has no bytes, but a header takes memory even if it is empty."""
    (record,) = written([1])
    bare = size_of(record._replace(value=None))
    assert size_of(record) == bare + 4
    assert size_of(record._replace(key=b"12")) == bare + 6
    assert size_of(record._replace(headers=(("", None),) * 3)) == bare + 4 + 3 * 150


MANY = st.lists(TIMES, min_size=1, max_size=5)
PARTS = st.lists(st.tuples(st.lists(st.integers(0, 4), max_size=5), st.integers(1, 6)), max_size=20)


@given(MANY, PARTS)
def test_many_inputs(inputs: list[list[int]], parts: list[tuple[list[int], int]]) -> None:
    """Of many inputs the earliest of the next records comes first, and then the later input."""
    left = [written(times) for times in inputs]
    merge, order = TimestampMerge(len(inputs)), []
    for counts, most in [*parts, ([12] * 5, 99), ([], 99)]:
        for which, count in zip(range(len(inputs)), counts, strict=False):
            merge.add(which, left[which][:count])
            del left[which][:count]
        while (taken := merge.take(most, 1 << 20, [not one for one in left])).records:
            order += [(w, r.offset) for w, r in zip(taken.inputs, taken.records, strict=True)]
    assert order == by_definition(*map(written, inputs))


@given(st.lists(TIMES, min_size=2, max_size=4), st.integers(0, 5))
def test_nothing_later_than_a_bound(inputs: list[list[int]], until: int) -> None:
    """What is taken up to a time is the beginning of the order, and what is left is later."""
    merge = TimestampMerge(len(inputs))
    for which, times in enumerate(inputs):
        merge.add(which, written(times))
    taken = merge.take(99, 1 << 20, [True] * len(inputs), until)
    order = [(w, r.offset) for w, r in zip(taken.inputs, taken.records, strict=True)]
    whole = by_definition(*map(written, inputs))
    assert order == whole[: len(order)]
    assert all(one.timestamp <= until for one in taken.records)
    head = merge.head([True] * len(inputs))
    assert (head is None) == (len(order) == len(whole))
    assert head is None or head > until
