from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.connectors.kafka.test_merging import Written

from abers_connectors.kafka.gathering import Gathering, Limits
from abers_connectors.kafka.transport import Partition, Reached

if TYPE_CHECKING:
    from abers_connectors.kafka.transport import Consumer

SEEN, TOLD = Partition("seen", 0), Partition("told", 0)


class Topics:
    """Two partitions in memory, read from their beginning; time stands still unless told to go."""

    def __init__(self) -> None:
        self.now = 100.0
        self.positions, self.ends = Counter[Partition](), Counter[Partition]()
        self.paused: set[Partition] = set()

    def reached(self, partition: Partition) -> Reached:
        """Tell how far a partition was read."""
        return Reached(self.positions[partition], self.ends[partition])

    def pause(self, partition: Partition) -> None:
        """Note that it is paused."""
        self.paused.add(partition)

    def resume(self, partition: Partition) -> None:
        """Note that it is not."""
        self.paused.remove(partition)

    def read(self, partition: Partition, *times: int) -> dict[Partition, list[Any]]:
        """Give the next records of a partition, written at some times."""
        first = self.positions[partition]
        self.positions[partition] += len(times)
        return {partition: [Written(one, at) for at, one in zip(count(first), times, strict=False)]}


@pytest.fixture
def topics() -> Topics:
    """Give topics of which nothing is known to be there."""
    return Topics()


def gathering(topics: Topics, *, backlog: int = 0, records: int = 4) -> Gathering:
    """Gather batches of some records, open for 10 s at most; an input waits 50 s for the other."""
    limits = Limits(records, 1 << 20, linger=10.0, idle=50.0)
    found = Gathering(cast("Consumer", topics), limits, lambda: topics.now)
    found.begin({0: {SEEN: backlog, TOLD: backlog}})
    return found


def offsets(gathered: Gathering) -> list[tuple[int, int]]:
    """Close the batch; the input and the offset of each of its records."""
    batch = gathered.take()
    return [
        (which, record.offset)
        for _, taken in batch
        for which, record in zip(taken.inputs, taken.records, strict=True)
    ]


def test_full(topics: Topics) -> None:
    """A batch is due when it is full, and the rest is the next one."""
    topics.ends.update({SEEN: 9, TOLD: 9})
    batch = gathering(topics)
    batch.add(topics.read(SEEN, 1, 2, 3, 4, 5, 6))
    assert not batch.due()
    batch.add(topics.read(TOLD, 2, 9))
    assert batch.due()
    assert batch.patience() == 0.0
    assert batch.patience(seated=False) > 0.0, "nobody can commit it now"
    assert offsets(batch) == [(0, 0), (1, 0), (0, 1), (0, 2)]
    assert not batch.due()
    assert batch.patience() == 10.0, "two wait, and they are open from now on"


def test_lingers(topics: Topics) -> None:
    """A batch that is not full is due some time after its first record."""
    batch = gathering(topics)
    assert batch.patience() > 0
    topics.ends.update({SEEN: 1})
    batch.add(topics.read(SEEN, 1))
    assert (batch.due(), batch.patience()) == (False, 10.0)
    topics.now += 10.0
    assert batch.due()
    assert offsets(batch) == [(0, 0)]
    assert offsets(batch) == []


def test_end_is_not_waited_for(topics: Topics) -> None:
    """An input that is known to be at its end is passed over at once."""
    topics.ends.update({SEEN: 9, TOLD: 0})
    batch = gathering(topics)
    batch.add(topics.read(SEEN, 1, 2))
    topics.now += 10.0
    assert offsets(batch) == [(0, 0), (0, 1)]


def test_waits_for_what_is_there(topics: Topics) -> None:
    """An input of which something is there is waited for, though not for ever when live."""
    topics.ends.update({SEEN: 9, TOLD: 9})
    batch = gathering(topics)
    batch.add(topics.read(SEEN, 1, 2))
    topics.now += 49.0
    batch.add({})
    assert offsets(batch) == []
    topics.now += 1.0
    batch.add({})
    assert offsets(batch) == [(0, 0), (0, 1)]


def test_backlog_is_waited_for_however_long(topics: Topics) -> None:
    """Of what was there at the beginning nothing is passed over."""
    topics.ends.update({SEEN: 9, TOLD: 9})
    batch = gathering(topics, backlog=9)
    batch.add(topics.read(SEEN, 1, 2))
    for _ in range(3):
        topics.now += 1e6
        batch.add({})
        assert offsets(batch) == []
    batch.add(topics.read(TOLD, 2))
    topics.now += 10.0
    assert offsets(batch) == [(0, 0), (1, 0)]


def test_holds_back_who_is_ahead(topics: Topics) -> None:
    """An input is paused while much more of it waits than of the other."""
    topics.ends.update({SEEN: 99, TOLD: 99})
    batch = gathering(topics)
    batch.add(topics.read(SEEN, *range(17)))
    assert topics.paused == {SEEN}
    batch.add(topics.read(TOLD, 5))
    assert offsets(batch) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert topics.paused == set()


def test_what_is_not_owned(topics: Topics) -> None:
    """Records of a partition that is of no shard are left out."""
    batch = gathering(topics)
    batch.add(topics.read(Partition("seen", 1), 1))
    topics.now += 99.0
    assert offsets(batch) == []
