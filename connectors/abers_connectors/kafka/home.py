"""What all shards of an application have in common.

Governing rule: two processes with an equal home may take over each other's
shards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from abers.stream import Processor
from abers_connectors.kafka.transport import Partition
from abers_connectors.logs import place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream import Settings

__all__ = ["Home", "named"]


class Home(NamedTuple):
    """An application.

    Parameters
    ----------
    app
        Its name.
    inputs
        Topics of observations and, if that is another one, labels.
    changelog
        Topic of the changelog.
    settings
        Of the processors.
    outcomes
        Whether outcomes are wanted.
    key
        Secret that seals the state of learners.
    """

    app: str
    inputs: Sequence[str]
    changelog: str
    settings: Settings
    outcomes: bool
    key: bytes | None

    def partitions(self, number: int) -> list[Partition]:
        """Give the input partitions of a shard."""
        return [Partition(topic, number) for topic in self.inputs]

    def log(self, number: int) -> Partition:
        """Give the partition of its changelog."""
        return Partition(self.changelog, number)

    def processor(self) -> Processor:
        """Make a processor to which nothing has happened."""
        return Processor(self.settings, outcomes=self.outcomes)

    def loaded(self, blob: bytes) -> Processor:
        """Restore a processor; a StateError if that cannot be."""
        return Processor.restore(blob, self.settings, key=self.key, outcomes=self.outcomes)


def named(partition: Partition, offset: int | None = None) -> str:
    """Name a place: "topic[2]", or "topic[2]@17"."""
    return place(partition.topic, partition.number, offset)
