"""The partitions that the group assigns to a consumer, and how far each has been read.

The client calls back during a poll, in the thread of the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_END

from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Assignment"]


class Assignment:
    """The current assignment.

    The group metadata are those of the moment of the assignment. The client's own change before it
    calls back about a rebalance: a member that was removed from the group has none, and the
    brokers accept offsets without a generation.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.partitions = frozenset[TopicPartition]()
        self.group_metadata: object | None = None
        self.positions: dict[tuple[str, int], int] = {}
        """Next offset of each partition that was sought since the assignment."""
        self.fetched = set[tuple[str, int]]()
        """Partitions of which something has arrived since the last seek."""
        self.paused = set[TopicPartition]()
        """Partitions that the caller has paused."""

    def assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:  # noqa: ANN401 - the client's
        """Take a new assignment; nothing is fetched of a partition before it is sought."""
        for one in partitions:
            one.offset = OFFSET_END  # no committed offset is asked for
        consumer.assign(partitions)
        consumer.pause(partitions)
        found = frozenset(TopicPartition(one.topic, one.partition) for one in partitions)
        self._change(found, consumer.consumer_group_metadata())

    def dropped(self, _consumer: object, _partitions: object) -> None:
        """Give up all partitions, revoked or lost: the protocol is eager."""
        self._change(frozenset(), None)

    def sought(self, partition: TopicPartition, offset: int) -> None:
        """Record a seek."""
        self.positions[partition] = offset
        self.fetched.discard(partition)

    def reached(self, partition: tuple[str, int], offset: int) -> None:
        """Record that all before an offset has arrived."""
        self.positions[partition] = max(offset, self.positions[partition])
        self.fetched.add(partition)

    def _change(self, partitions: frozenset[TopicPartition], metadata: object | None) -> None:
        self.epoch += 1
        self.partitions, self.group_metadata = partitions, metadata
        self.positions, self.fetched, self.paused = {}, set(), set()
