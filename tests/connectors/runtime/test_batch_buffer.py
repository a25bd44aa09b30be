from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.connectors.runtime.test_timestamp_merge import Written

from abers_connectors.runtime.batches import BatchBuffer, BatchLimits
from abers_connectors.runtime.transport import FetchPosition, TopicPartition

if TYPE_CHECKING:
    from abers_connectors.runtime.transport import Consumer

OBSERVATIONS, LABELS = TopicPartition("observations", 0), TopicPartition("labels", 0)


class Topics:
    """A consumer of two partitions in memory, with a clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0
        self.positions, self.ends = Counter[TopicPartition](), Counter[TopicPartition]()
        self.paused: set[TopicPartition] = set()

    def fetch_position(self, partition: TopicPartition) -> FetchPosition:
        """Return how far a partition was read."""
        return FetchPosition(self.positions[partition], self.ends[partition])

    def pause(self, partition: TopicPartition) -> None:
        """Record that a partition is paused."""
        self.paused.add(partition)

    def resume(self, partition: TopicPartition) -> None:
        """Record that a partition is resumed."""
        self.paused.remove(partition)

    def read(self, partition: TopicPartition, *times: int) -> dict[TopicPartition, list[Any]]:
        """Return the next records of a partition, with these timestamps."""
        first = self.positions[partition]
        self.positions[partition] += len(times)
        return {partition: [Written(one, at) for at, one in zip(count(first), times, strict=False)]}


@pytest.fixture
def topics() -> Topics:
    """Return empty topics."""
    return Topics()


def buffer_of(topics: Topics, *, backlog: int = 0, records: int = 4) -> BatchBuffer:
    """Return a buffer of small batches, open for 10 s; an input waits 50 s for the other."""
    limits = BatchLimits(records, 1 << 20, commit_interval=10.0, max_task_idle=50.0)
    found = BatchBuffer(cast("Consumer", topics), limits, lambda: topics.now)
    found.add_task(0, {OBSERVATIONS: backlog, LABELS: backlog})
    return found


def offsets(buffer: BatchBuffer) -> list[tuple[int, int]]:
    """Close the batch, and return input and offset of each of its records."""
    batch = buffer.take()
    return [
        (which, record.offset)
        for _, taken in batch
        for which, record in zip(taken.inputs, taken.records, strict=True)
    ]


def test_full(topics: Topics) -> None:
    """A batch is due when it is full, and the other records are the next one."""
    topics.ends.update({OBSERVATIONS: 9, LABELS: 9})
    buffer = buffer_of(topics)
    buffer.add(topics.read(OBSERVATIONS, 1, 2, 3, 4, 5, 6))
    assert not buffer.due()
    buffer.add(topics.read(LABELS, 2, 9))
    assert buffer.due()
    assert buffer.poll_timeout() == 0.0
    assert buffer.poll_timeout(joined=False) > 0.0, "nobody can commit it now"
    assert offsets(buffer) == [(0, 0), (1, 0), (0, 1), (0, 2)]
    assert not buffer.due()
    assert buffer.poll_timeout() == 10.0, "two wait, and they are open from now on"


def test_commit_interval(topics: Topics) -> None:
    """A batch that is not full is due some time after its first record."""
    buffer = buffer_of(topics)
    assert buffer.poll_timeout() > 0
    topics.ends.update({OBSERVATIONS: 1})
    buffer.add(topics.read(OBSERVATIONS, 1))
    assert (buffer.due(), buffer.poll_timeout()) == (False, 10.0)
    topics.now += 10.0
    assert buffer.due()
    assert offsets(buffer) == [(0, 0)]
    assert offsets(buffer) == []


def test_end_is_not_waited_for(topics: Topics) -> None:
    """An input that is known to be at its end is skipped at once."""
    topics.ends.update({OBSERVATIONS: 9, LABELS: 0})
    buffer = buffer_of(topics)
    buffer.add(topics.read(OBSERVATIONS, 1, 2))
    topics.now += 10.0
    assert offsets(buffer) == [(0, 0), (0, 1)]


def test_waits_for_an_input_with_records(topics: Topics) -> None:
    """An input with unread records is waited for, but a live one only for a time."""
    topics.ends.update({OBSERVATIONS: 9, LABELS: 9})
    buffer = buffer_of(topics)
    buffer.add(topics.read(OBSERVATIONS, 1, 2))
    topics.now += 49.0
    buffer.add({})
    assert offsets(buffer) == []
    topics.now += 1.0
    buffer.add({})
    assert offsets(buffer) == [(0, 0), (0, 1)]


def test_backlog_is_waited_for_however_long(topics: Topics) -> None:
    """No input is skipped before its backlog is read."""
    topics.ends.update({OBSERVATIONS: 9, LABELS: 9})
    buffer = buffer_of(topics, backlog=9)
    buffer.add(topics.read(OBSERVATIONS, 1, 2))
    for _ in range(3):
        topics.now += 1e6
        buffer.add({})
        assert offsets(buffer) == []
    buffer.add(topics.read(LABELS, 2))
    topics.now += 10.0
    assert offsets(buffer) == [(0, 0), (1, 0)]


def test_pauses_an_input_that_is_ahead(topics: Topics) -> None:
    """An input is paused while many more of its records queue than of the other."""
    topics.ends.update({OBSERVATIONS: 99, LABELS: 99})
    buffer = buffer_of(topics)
    buffer.add(topics.read(OBSERVATIONS, *range(17)))
    assert topics.paused == {OBSERVATIONS}
    buffer.add(topics.read(LABELS, 5))
    assert offsets(buffer) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert topics.paused == set()


def test_records_of_other_partitions(topics: Topics) -> None:
    """Records of a partition without a task are dropped."""
    buffer = buffer_of(topics)
    buffer.add(topics.read(TopicPartition("observations", 1), 1))
    topics.now += 99.0
    assert offsets(buffer) == []


def test_headers_fill_batches_and_queues(topics: Topics) -> None:
    """A batch is full by the headers of its records, and an input with many of them is paused."""
    buffer = buffer_of(topics, records=1000)
    headers = (("trace", b"x" * 400_000),)
    for partition in (OBSERVATIONS, LABELS):
        (records,) = topics.read(partition, *range(20)).values()
        buffer.add({partition: [one._replace(headers=headers) for one in records]})
    assert len(offsets(buffer)) == 3
    assert topics.paused == {OBSERVATIONS, LABELS}
    while buffer.due():
        assert len(offsets(buffer)) <= 3
    assert not topics.paused


def test_limit_of_a_task(topics: Topics) -> None:
    """A task has at most as many records in a batch as it may, whatever the others have."""
    buffer = buffer_of(topics, records=10)
    other = TopicPartition("observations", 1)
    buffer.add_task(1, {other: 0})
    buffer.limit(0, 2)
    for partition in (OBSERVATIONS, LABELS, other):
        buffer.add(topics.read(partition, *range(5)))
    taken = {number: len(part.records) for number, part in buffer.take()}
    assert taken == {0: 2, 1: 5}
    buffer.limit(0, 8)
    assert len(offsets(buffer)) == 2  # it was filled when the one before was taken
    topics.now += 11
    buffer.add({})
    assert len(offsets(buffer)) == 6


def test_nothing_is_taken_before_the_first_cap(topics: Topics) -> None:
    """A capped task waits for its first cap, and its inputs are paused meanwhile."""
    topics.ends.update({OBSERVATIONS: 9, LABELS: 9})
    buffer = buffer_of(topics)
    buffer.add_task(0, {OBSERVATIONS: 0, LABELS: 0}, capped=True)
    for partition in (OBSERVATIONS, LABELS):
        buffer.add(topics.read(partition, 1, 2, 3))
    topics.now += 1e6
    buffer.add({})
    assert offsets(buffer) == []
    assert not buffer.drained(0)
    assert topics.paused == {OBSERVATIONS, LABELS}


def test_nothing_is_taken_beyond_a_cap(topics: Topics) -> None:
    """Records before the caps come by time, those beyond once the caps allow it."""
    topics.ends.update({OBSERVATIONS: 9, LABELS: 9})
    buffer = buffer_of(topics)
    buffer.cap(0, [2, 1])
    buffer.add(topics.read(OBSERVATIONS, 1, 3, 5, 7))
    buffer.add({})
    topics.now += 1e6
    assert offsets(buffer) == [], "the label before its cap has not arrived"
    buffer.add(topics.read(LABELS, 2, 4, 6))
    assert not buffer.drained(0)
    topics.now += 10.0
    assert offsets(buffer) == [(0, 0), (1, 0), (0, 1)]
    assert buffer.drained(0)
    assert topics.paused == {OBSERVATIONS, LABELS}
    buffer.cap(0, [4, 3])
    assert not buffer.drained(0)
    buffer.add({})
    assert topics.paused == set()
    topics.now += 10.0
    assert offsets(buffer) == [(1, 1), (0, 2), (1, 2), (0, 3)]
    assert buffer.drained(0)


def test_markers_of_transactions_before_a_cap(topics: Topics) -> None:
    """An input whose position has passed its last record is at a cap after that."""
    buffer = buffer_of(topics)
    buffer.cap(0, [3, 0])
    buffer.add(topics.read(OBSERVATIONS, 1, 2))
    topics.now += 10.0
    assert offsets(buffer) == [(0, 0), (0, 1)]
    assert not buffer.drained(0)
    topics.positions[OBSERVATIONS] = 3
    assert buffer.drained(0)
