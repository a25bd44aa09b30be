"""Where a router begins to read the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from abers.stream import Settings
from abers_connectors.runtime.application import Application
from abers_connectors.runtime.router import RouterStart
from abers_connectors.runtime.transport import (
    CommittedOffset,
    GroupMembership,
    OffsetRange,
    TopicPartition,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

APPLICATION = Application(
    "app", ["app.routed"], "changelog", Settings(), outcomes=False, key=None, sources=["scores"]
)
OLD, NEW = TopicPartition("scores", 0), TopicPartition("scores", 1)


class UninformedReader:
    """A reader whose broker has not heard yet that a partition was added."""

    def __init__(self) -> None:
        """Start with the partition that was there before."""
        self.partitions = 1

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions that the broker knows."""
        del topic
        return self.partitions

    def all_committed(self, partitions: Sequence[TopicPartition]) -> dict[Any, CommittedOffset]:
        """Return the offsets that the group has committed."""
        committed = {OLD: 40, NEW: 20}
        return {one: CommittedOffset(committed[one], "") for one in partitions}

    def offset_range(self, partition: TopicPartition) -> OffsetRange:
        """Return the offsets of a partition."""
        del partition
        return OffsetRange(0, 100)


def test_a_partition_that_was_added_goes_on() -> None:
    """What another router has committed of a new partition is not routed twice."""
    reader, producer = UninformedReader(), cast("Any", None)
    start = RouterStart(
        APPLICATION, cast("Any", reader), producer, start="latest", policy="stop", warn=print
    )
    membership = GroupMembership(1, frozenset({OLD, NEW}), None, 0.0)
    assert start.offsets(membership) is None
    reader.partitions = 2
    known = {OLD: CommittedOffset(40, ""), NEW: CommittedOffset(20, "")}
    assert start.offsets(membership) == known
    assert start.inputs == [OLD, NEW]
