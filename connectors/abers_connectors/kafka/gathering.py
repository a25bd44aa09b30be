"""From what is read to batches.

Governing rule: a batch is open from its first record that can be applied; it
closes when it is full or has been open long enough, and holds the records of
each shard in the one order in which they are applied.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from abers_connectors.kafka.merging import Merge, Taken

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers_connectors.kafka.transport import Consumer, Partition, Record

__all__ = ["Gathering", "Limits"]

_IDLE = 0.1  # seconds of one look at what has come, when nothing waits
_HELD = 4  # batches that may wait of an input before it is paused


class Limits(NamedTuple):
    """When a batch closes, and how long one input waits for the other; times in seconds.

    Parameters
    ----------
    records, bytes
        How much a batch holds.
    linger
        How long after its first record it closes.
    idle
        How long an input is waited for of which nothing comes although something is there.
    """

    records: int
    bytes: int
    linger: float
    idle: float


class _Input:
    """One partition that a shard reads."""

    def __init__(self, partition: Partition, backlog: int) -> None:
        self.partition, self.backlog = partition, backlog
        self.paused = False


class _Shard:
    """What waits of a shard, and what of it is in the open batch."""

    def __init__(self, inputs: Sequence[_Input]) -> None:
        self.inputs = inputs
        self.merge = Merge(len(inputs))
        self.open = Taken([], [])
        self.lacking_since: float | None = None


class Gathering:
    """What is read of the inputs of all shards.

    Parameters
    ----------
    consumer
        Reads them, and is held back where one is far ahead of another.
    limits
        Of batches.
    clock
        Monotonic, in seconds.
    """

    def __init__(
        self, consumer: Consumer, limits: Limits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._consumer, self._limits, self._clock = consumer, limits, clock
        self._shards: dict[int, _Shard] = {}
        self._by_partition: dict[tuple[str, int], tuple[_Shard, int]] = {}
        self._since: float | None = None  # when the open batch had its first record

    def begin(self, backlogs: Mapping[int, Mapping[Partition, int]]) -> None:
        """Gather anew.

        Parameters
        ----------
        backlogs
            The inputs of each shard, observations first, each with the offset before which all
            was there already: so much is merged strictly by time, however long that takes.
        """
        self._since = None
        self._shards = {
            number: _Shard([_Input(partition, end) for partition, end in ends.items()])
            for number, ends in backlogs.items()
        }
        self._by_partition = {
            one.partition: (shard, which)
            for shard in self._shards.values()
            for which, one in enumerate(shard.inputs)
        }

    def add(self, arrived: Mapping[Partition, Sequence[Record]]) -> None:
        """Take what was read; what is of no shard here is left out."""
        for partition, records in arrived.items():
            found = self._by_partition.get(partition)
            if found is not None:
                shard, which = found
                shard.merge.add(which, records)
        self._open_next()

    def patience(self, *, seated: bool = True) -> float:
        """Say for how many seconds more may be waited for; without a seat nothing is committed."""
        if not seated:
            return _IDLE
        if self.due():
            return 0.0
        if self._since is not None:
            return max(0.0, self._since + self._limits.linger - self._clock())
        waits = any(shard.merge.lacking() is not None for shard in self._shards.values())
        return min(self._limits.idle, _IDLE) if waits else _IDLE

    def due(self) -> bool:
        """Say whether the open batch is to be closed."""
        if self._since is None:
            return False
        records, size = self._opened()
        full = records >= self._limits.records or size >= self._limits.bytes
        return full or self._clock() - self._since >= self._limits.linger

    def take(self) -> list[tuple[int, Taken]]:
        """Close the open batch, and give what each shard has in it."""
        self._since = None
        found = [
            (number, shard.open) for number, shard in self._shards.items() if shard.open.records
        ]
        for number, _ in found:
            self._shards[number].open = Taken([], [])
            self._shards[number] = self._shards.pop(number)  # to the end of the queue
        self._open_next()  # what waits may be the next batch already
        return found

    def _open_next(self) -> None:
        for shard in self._shards.values():
            self._open(shard)
            self._hold_back(shard)

    def _opened(self) -> tuple[int, int]:
        """Count the records and bytes of the open batch."""
        parts = [shard.open for shard in self._shards.values()]
        return sum(len(one.records) for one in parts), sum(one.size for one in parts)

    def _open(self, shard: _Shard) -> None:
        """Put into the open batch what can be applied now."""
        records, size = self._opened()
        most, most_bytes = self._limits.records - records, self._limits.bytes - size
        if most <= 0 or most_bytes <= 0:
            return
        taken = shard.merge.take(most, most_bytes, self._ended(shard))
        if taken.records:
            shard.open = shard.open.extended(taken)
            self._since = self._clock() if self._since is None else self._since

    def _ended(self, shard: _Shard) -> list[bool]:
        """Say of each input whether it is passed over where nothing of it waits."""
        lacking = shard.merge.lacking()
        if lacking is None:
            shard.lacking_since = None
        elif shard.lacking_since is None:
            shard.lacking_since = self._clock()
        waited = 0.0 if shard.lacking_since is None else self._clock() - shard.lacking_since
        return [self._passed(one, waited) for one in shard.inputs]

    def _passed(self, one: _Input, waited: float) -> bool:
        reached = self._consumer.reached(one.partition)
        if reached.lag is not None and reached.lag <= 0:
            return True
        live = reached.position is not None and reached.position >= one.backlog
        return live and waited >= self._limits.idle

    def _hold_back(self, shard: _Shard) -> None:
        """Pause an input that is far ahead of the other, resume one that is no longer."""
        for which, one in enumerate(shard.inputs):
            count, size = shard.merge.held(which)
            full = count > _HELD * self._limits.records or size > _HELD * self._limits.bytes
            if full and not one.paused:
                self._consumer.pause(one.partition)
            elif one.paused and not full:
                self._consumer.resume(one.partition)
            one.paused = full
