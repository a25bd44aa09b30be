"""What all shards of an application have in common.

Governing rule: two processes with an equal home may take over each other's
shards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from abers.stream import Processor
from abers_connectors.kafka.transport import Partition
from abers_connectors.logs import place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers._sealed import Piece
    from abers.stream import Settings
    from abers_connectors.kafka.shard import Place

__all__ = ["Home", "named", "seed_of", "snapshot_of"]


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
        Secret that seals the state.
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

    def loaded(self, blob: bytes, of: str) -> Processor:
        """Restore a processor, sealed as `snapshot_of` says; a StateError if that cannot be."""
        return Processor.restore(
            blob, self.settings, key=self.key, place=of, outcomes=self.outcomes
        )

    def saved(self, processor: Processor, place: Place) -> Iterator[Piece]:
        """Give the snapshot of a processor that stands there, for that place alone, in pieces."""
        of = snapshot_of(place.app, place.partition, place.changelog)
        return processor.snapshot_pieces(msgspec.to_builtins(place), self.key, of)


def snapshot_of(app: str, number: int, changelog: int) -> str:
    """Name what a snapshot is sealed for: a shard, and where its changelog goes on."""
    return f"{app}[{number}]@{changelog}"


def seed_of(app: str, number: int) -> str:
    """Name what a seed is sealed for: a shard that has no state yet."""
    return f"the seed of {app}[{number}]"


def named(partition: Partition, offset: int | None = None) -> str:
    """Name a place: "topic[2]", or "topic[2]@17"."""
    return place(partition.topic, partition.number, offset)
