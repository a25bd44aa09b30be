"""What all tasks of an application share.

Two processes with equal `Application`s can take over each other's tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from abers.exceptions import ConfigError
from abers.stream import Processor
from abers_connectors.runtime.checkpoint import snapshot_scope
from abers_connectors.runtime.routed_record import origins
from abers_connectors.runtime.transport import TopicPartition
from abers_connectors.state_key import state_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers.serialization import Piece
    from abers.stream import Settings
    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.runtime.checkpoint import Checkpoint
    from abers_connectors.runtime.timestamp_merge import MergedRecords

__all__ = ["Application", "kafka_section", "name_at"]


class Application(NamedTuple):
    """An application."""

    id: str  # also the name of the consumer group
    inputs: Sequence[str]  # topics of observations and, if there is another, of labels
    changelog: str  # its topic
    settings: Settings
    outcomes: bool  # whether they are written
    key: bytes | None  # secret that seals the state
    sources: Sequence[str] = ()  # topics that routers route to the only input; none without them
    generation: int = 1  # of the state, which a change of its number of partitions raises

    @classmethod
    def of(cls, config: Config, generation: int = 1) -> Application:
        """Return the application of a configuration; raises a ConfigError without [kafka].

        Its topics have the names of the generation; see `kafka.generations`.
        """
        kafka = kafka_section(config)
        topics = [kafka.observations]
        if config.second_input and kafka.labels is not None:
            topics.append(kafka.labels)
        routed = kafka.route_by is not None
        return cls(
            kafka.application_id,
            [kafka.routed] if routed else topics,
            kafka.changelog,
            config.settings(),
            kafka.outcomes is not None,
            state_key(file=config.state.key_file),
            topics if routed else (),
            generation,
        )

    @property
    def state_id(self) -> str:
        """What identifies the state, in snapshots."""
        return name_at(self.id, self.generation)

    @property
    def router_group(self) -> str:
        """The consumer group of the routers."""
        return f"{self.id}-router"

    def seen(self, merged: MergedRecords) -> MergedRecords:
        """Return records as those of the topics that users write."""
        return origins(merged, self.sources) if self.sources else merged

    def input_partitions(self, partition: int) -> list[TopicPartition]:
        """Return the input partitions of a task."""
        return [TopicPartition(topic, partition) for topic in self.inputs]

    def changelog_partition(self, partition: int) -> TopicPartition:
        """Return the changelog partition of a task."""
        return TopicPartition(self.changelog, partition)

    def new_processor(self) -> Processor:
        """Return an empty processor."""
        return Processor(self.settings, outcomes=self.outcomes, front="toml")

    def restore_processor(self, blob: bytes, scope: str) -> Processor:
        """Restore a processor that is sealed for a scope; raises a StateError if it cannot be."""
        return Processor.restore(
            blob, self.settings, key=self.key, owner=scope, outcomes=self.outcomes, front="toml"
        )

    def snapshot(self, processor: Processor, checkpoint: Checkpoint) -> Iterator[Piece]:
        """Return the snapshot of a processor, in pieces, sealed for its checkpoint."""
        scope = snapshot_scope(
            checkpoint.application_id, checkpoint.partition, checkpoint.changelog_offset
        )
        return processor.snapshot_pieces(msgspec.to_builtins(checkpoint), self.key, scope)


def name_at(name: str, generation: int) -> str:
    """Return the name of a topic or of a state at a generation.

    Examples
    --------
    >>> name_at("app.routed", 1), name_at("app.routed", 2)
    ('app.routed', 'app.routed-2')
    """
    return name if generation == 1 else f"{name}-{generation}"


def kafka_section(config: Config) -> KafkaSection:
    """Return the section [kafka]; raises a ConfigError without it."""
    if config.kafka is None:
        raise ConfigError(["kafka: missing; a section [kafka] names the topics"])
    return config.kafka
