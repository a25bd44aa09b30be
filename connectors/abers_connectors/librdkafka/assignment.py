"""The partitions that the group assigns to a consumer, and how far each has been read.

The client calls back during a poll, in the thread of the caller.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import TopicPartition as ClientPartition

from abers_connectors.runtime.transport import TopicPartition, sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from abers_connectors.librdkafka.records import FetchedRecord

__all__ = ["AssignedPartition", "Assignment", "member_epoch"]

_METADATA = struct.Struct("=7xi")  # a tag, and the epoch of the member or the generation


@dataclass
class AssignedPartition:
    """A partition since its assignment.

    A paused partition is not stopped in the client at once, which would drop all that it has
    fetched, and fetch it again. What arrives meanwhile is kept.
    """

    position: int | None = None  # next offset of the client; None before the first seek
    fetched: bool = False  # something has arrived since the last seek
    paused: bool = False  # by the caller
    stopped: bool = True  # in the client
    held: list[FetchedRecord] = field(default_factory=list)
    held_size: int = 0  # of a paused partition

    def sought(self, offset: int) -> None:
        """Record a seek."""
        self.position, self.fetched, self.held, self.held_size = offset, False, [], 0

    def reached(self, offset: int) -> None:
        """Record that all before an offset has arrived."""
        self.position, self.fetched = max(offset, self.position or 0), True

    def pause(self) -> None:
        """Record that the caller wants no more records."""
        if not self.paused:
            self.paused, self.held_size = True, sum(sizes_of(self.held))

    def hold(self, records: Sequence[FetchedRecord]) -> None:
        """Hold records that have arrived."""
        self.held += records
        if self.paused:
            self.held_size += sum(sizes_of(records))

    def next_offset(self) -> int | None:
        """Return the offset of the next record for the caller."""
        return self.held[0].offset if self.held else self.position

    def take(self, most: int) -> list[FetchedRecord]:
        """Remove and return the first records that are kept."""
        if len(self.held) <= most:
            found, self.held = self.held, []
        else:
            found = self.held[:most]
            del self.held[:most]
        return found


class Assignment:
    """The current assignment.

    In the classic protocol each assignment replaces the assignment before. The group metadata are
    those of the moment of the assignment. The client's own change before it calls back about a
    rebalance: a member that was removed from the group has none, and the brokers accept offsets
    without a generation.

    In the consumer protocol (`incremental`) partitions come and go one by one, and the epoch in the
    group metadata grows without a call back. A member that was removed keeps its id, which the
    brokers refuse, and gets another epoch only after its partitions are dropped here. It may own a
    partition of one topic while another member has not yet released that of the other topic. This
    partition counts only once all are there, or after `patience` seconds, for the caller to report.
    """

    def __init__(
        self,
        topics: int,
        *,
        incremental: bool,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.epoch = 0
        """Number of changes."""
        self.partitions: dict[TopicPartition, AssignedPartition] = {}
        """The partitions that count."""
        self.group_metadata: object | None = None
        """What identifies the member in a commit; None while it is not in the group."""
        self._topics, self._incremental = topics, incremental
        self._patience, self._clock = patience, clock
        self._owned, self._changed = frozenset[TopicPartition](), clock()

    def assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:  # noqa: ANN401 - the client's
        """Take partitions; nothing is fetched of a partition before it is sought.

        The offset is a number, so that the client asks a broker for none. An answer that came after
        the seek would make it ask once more, and continue there.
        """
        for one in partitions:
            one.offset = 0
        if self._incremental:
            consumer.incremental_assign(partitions)
        else:
            consumer.assign(partitions)
            with suppress(RuntimeError):  # a client that is closed meanwhile has none
                self.group_metadata = consumer.consumer_group_metadata()
        consumer.pause(partitions)
        self._own(self._owned | _names(partitions))

    def restart(self, consumer: Any, partition: TopicPartition) -> None:  # noqa: ANN401 - the client's
        """Assign a partition anew, at its position, after the client has given it up.

        The client gives up a partition if its topic lacks the offset that it fetches, such as the
        number of the assignment. In the classic protocol all partitions are assigned anew.
        """
        again = [partition] if self._incremental else [*self.partitions]
        places = [ClientPartition(*one, self.partitions[one].position or 0) for one in again]
        if self._incremental:
            consumer.incremental_unassign(places)
            consumer.incremental_assign(places)
        else:
            consumer.assign(places)
        stopped = [one for one, found in self.partitions.items() if found.stopped]
        consumer.pause([ClientPartition(*one) for one in stopped])

    def dropped(self, _consumer: object, partitions: Iterable[Any]) -> None:
        """Drop partitions, revoked or lost."""
        if not self._incremental:
            self.group_metadata = None
        self._own(self._owned - _names(partitions))

    def refresh(self, consumer: Any) -> None:  # noqa: ANN401 - the client's
        """Take what changes without a call back."""
        if self._incremental:
            metadata = consumer.consumer_group_metadata()
            self.group_metadata = metadata if member_epoch(metadata) > 0 else None
            self._count()

    def _own(self, owned: frozenset[TopicPartition]) -> None:
        self._owned, self._changed = owned, self._clock()
        self._count()

    def _count(self) -> None:
        """Find the partitions that count."""
        numbers = Counter(one.partition for one in self._owned)
        waits = self._incremental and self._clock() - self._changed <= self._patience
        least = self._topics if waits else 1
        counted = {one for one in self._owned if numbers[one.partition] >= least}
        if counted != self.partitions.keys():
            self.epoch += 1
            self.partitions = {
                one: self.partitions.get(one) or AssignedPartition() for one in counted
            }


def member_epoch(group_metadata: bytes) -> int:
    """Return the epoch in group metadata, which is above 0 in a group; the client has no call."""
    return int(_METADATA.unpack_from(group_metadata)[0])


def _names(partitions: Iterable[Any]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(one.topic, one.partition) for one in partitions)
