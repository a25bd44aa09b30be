"""The partitions that the group assigns to a consumer, and how far each has been read.

The client calls back during a poll, in the thread of the caller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers_connectors.librdkafka.records import FetchedRecord

__all__ = ["AssignedPartition", "Assignment"]


@dataclass
class AssignedPartition:
    """A partition since its assignment.

    A paused partition is not stopped in the client at once, which would drop all that it has
    fetched, and fetch it again. What arrives meanwhile is held.
    """

    position: int | None = None  # next offset of the client; None before the first seek
    fetched: bool = False  # something has arrived since the last seek
    paused: bool = False  # by the caller
    stopped: bool = True  # in the client
    held: list[FetchedRecord] = field(default_factory=list)

    def sought(self, offset: int) -> None:
        """Record a seek."""
        self.position, self.fetched, self.held = offset, False, []

    def reached(self, offset: int) -> None:
        """Record that all before an offset has arrived."""
        self.position, self.fetched = max(offset, self.position or 0), True

    def next_offset(self) -> int | None:
        """Return the offset of the next record for the caller."""
        return self.held[0].offset if self.held else self.position

    def take(self, most: int) -> list[FetchedRecord]:
        """Remove and return the first records that are held."""
        if len(self.held) <= most:
            found, self.held = self.held, []
        else:
            found = self.held[:most]
            del self.held[:most]
        return found


class Assignment:
    """The current assignment.

    The group metadata are those of the moment of the assignment. The client's own change before it
    calls back about a rebalance: a member that was removed from the group has none, and the
    brokers accept offsets without a generation.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.partitions: dict[TopicPartition, AssignedPartition] = {}
        self.group_metadata: object | None = None

    def assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:  # noqa: ANN401 - the client's
        """Take a new assignment; nothing is fetched of a partition before it is sought.

        The offset is a number, so that the client asks a broker for none. An answer that came after
        the seek would make it ask once more, and continue there.
        """
        for one in partitions:
            one.offset = 0
        consumer.assign(partitions)
        consumer.pause(partitions)
        names = [TopicPartition(one.topic, one.partition) for one in partitions]
        self._change(names, consumer.consumer_group_metadata())

    def dropped(self, _consumer: object, _partitions: object) -> None:
        """Drop all partitions, revoked or lost: the protocol is eager."""
        self._change([], None)

    def _change(self, names: Sequence[TopicPartition], metadata: object | None) -> None:
        self.epoch += 1
        self.partitions = {name: AssignedPartition() for name in names}
        self.group_metadata = metadata
