"""A restorer from a changelog of one batch, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.connectors.kafka.reads import Read

from abers.stream import Settings
from abers_connectors.runtime.application import Application
from abers_connectors.runtime.restore import Restorer
from abers_connectors.runtime.task import ChangelogRecord, encode
from abers_connectors.runtime.transport import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers_connectors.runtime.snapshots import SnapshotStore
    from abers_connectors.runtime.task import StreamTask

__all__ = ["APPLICATION", "BATCH", "Log", "restorer", "still"]

APPLICATION = Application(
    "app", ["observations"], "changelog", Settings(), outcomes=False, key=None
)


class Log:
    """A reader of a changelog of one batch, with the offset that was committed with it."""

    def __init__(self, start: int, end: int, applied: ChangelogRecord) -> None:
        self._bounds, self._applied = OffsetRange(start, end), applied

    def topic_ids(self, topics: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of topics."""
        return tuple(f"id of {topic}" for topic in topics)

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions."""
        del topic
        return 1

    def committed(self, partition: TopicPartition) -> int:
        """Return the offset after the batch."""
        del partition
        return self._applied.next_offsets[0]

    def offset_range(self, partition: TopicPartition) -> OffsetRange:
        """Return the offsets of the changelog."""
        del partition
        return self._bounds

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[list[Read]]:
        """Yield the batch for each offset."""
        del partition
        for offset in range(start, end):
            (value,) = encode(self._applied)
            yield [Read(value, offset=offset)]


def still() -> None:
    """Do nothing."""


def restorer(log: Log, snapshots: SnapshotStore, say: Callable[[str], None]) -> Restorer:
    """Return a restorer from a changelog and snapshots."""

    def begin(number: int) -> StreamTask:
        raise AssertionError(number)

    return Restorer(APPLICATION, log, snapshots, begin, lambda _: False, warn=say)  # type: ignore[arg-type]


BATCH = ChangelogRecord("0", 0, (5, -1), b"", b"", [], None)
