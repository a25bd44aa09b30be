"""Alignment of the routers of an application in a backlog.

Each router merges its own partitions by timestamp. Several would run ahead of one another where
many records wait. So each commits with its offsets the timestamp that it has reached, and reads
those of all others. It does not go ahead of the slowest by more than the span of a batch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from abers_connectors.runtime.transport import CommittedOffset, Reader, TopicPartition

__all__ = ["RouterAlignment"]

_INTERVAL = 0.1  # seconds between two questions


class _Progress(NamedTuple):
    """What was committed of a partition of another router."""

    committed: CommittedOffset | None
    since: float  # when it was first seen, by the clock


class RouterAlignment:
    """How far a router may go, by what the others have committed.

    Parameters
    ----------
    reader
        Reader of the offsets of the routers' group.
    patience
        Seconds without progress after which a partition is waited for no more.
    clock
        Monotonic clock.
    """

    def __init__(self, reader: Reader, patience: float, clock: Callable[[], float]) -> None:
        self._reader, self._patience, self._clock = reader, patience, clock
        self._others: list[TopicPartition] = []
        self._known: dict[TopicPartition, _Progress] = {}
        self._looked, self._reached = -math.inf, math.inf

    @property
    def alone(self) -> bool:
        """Whether no other router has a partition."""
        return not self._others

    def begin(self, inputs: Collection[TopicPartition], mine: Collection[TopicPartition]) -> None:
        """Take a new assignment: all partitions of the inputs, and those of this router."""
        self._others = [one for one in inputs if one not in mine]
        self._known = {one: self._known[one] for one in self._others if one in self._known}
        self._looked = -math.inf

    def reached(self) -> float:
        """Return the timestamp that the slowest other router has reached.

        It is infinite if no other has records to read, and minus infinity if one has not said yet
        how far it is.
        """
        now = self._clock()
        if self._others and now - self._looked >= _INTERVAL:
            self._looked = now
            committed = self._reader.all_committed(self._others, stable=False)
            ends = self._reader.last_stable_offsets(self._others)
            self._note(committed, now)
            self._reached = min(
                (_time_of(found) for found in self._binding(ends, now)), default=math.inf
            )
        return self._reached if self._others else math.inf

    def _note(self, committed: Mapping[TopicPartition, CommittedOffset], now: float) -> None:
        for one in self._others:
            found = committed.get(one)
            if one not in self._known or self._known[one].committed != found:
                self._known[one] = _Progress(found, now)

    def _binding(
        self, ends: Mapping[TopicPartition, int], now: float
    ) -> list[CommittedOffset | None]:
        """Return what is committed of the partitions that are behind and make progress."""
        return [
            found.committed
            for one, found in self._known.items()
            if ends[one] > (0 if found.committed is None else found.committed.offset)
            and now - found.since <= self._patience
        ]


def _time_of(committed: CommittedOffset | None) -> float:
    """Return the timestamp that was committed with an offset."""
    note = "" if committed is None else committed.note
    return int(note) if note.removeprefix("-").isdecimal() else -math.inf
