"""An application with routers under attack: inputs with any keys, and tasks in generations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.connectors.kafka.chaos.application import Application
from tests.connectors.kafka.chaos.judge import log_of

from abers_connectors.kafka.generations import Generation, generation_in_use
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["ElasticApplication"]


class ElasticApplication(Application):
    """An application that routes; its processes share a folder of snapshots."""

    def _created_topics(self) -> dict[str, str]:
        created = self.broker.create_all(self.partitions)
        del created["changelog"]  # the service makes its own
        return created

    @property
    def groups(self) -> Sequence[str]:
        """Its consumer groups."""
        return [self.name, self.router_group]

    @property
    def router_group(self) -> str:
        """The consumer group of the routers."""
        return f"{self.name}-router"

    def snapshots(self, instance: str = "0") -> Path:
        """Return the folder of all snapshots."""
        del instance
        return self.folder / "snapshots"

    def generation(self) -> Generation:
        """Return the generation in use."""
        return generation_in_use(self.config())

    def grow(self, partitions: int) -> None:
        """Add partitions to the inputs."""
        topics = [self.topics[key] for key in ("observations", "labels")]
        with self.broker.admin() as admin:
            admin.create_partitions(dict.fromkeys(topics, partitions))

    def ends(self) -> dict[tuple[str, int], int]:
        """Return the ends of the inputs."""
        with log_of(self) as log:
            return {
                one: log.offset_range(one).end
                for topic in (self.topics["observations"], self.topics["labels"])
                for one in (TopicPartition(topic, n) for n in range(log.partition_count(topic)))
            }

    def unrouted(self) -> dict[tuple[str, int], tuple[int | None, int]]:
        """Return the inputs with records that routers have not committed: offset and end."""
        ends = self.ends()
        with log_of(self, self.router_group) as log:
            committed = {one: log.committed(TopicPartition(*one)) for one in ends}
        return {
            one: (committed[one], end) for one, end in ends.items() if (committed[one] or 0) < end
        }

    def untaken(self) -> list[TopicPartition]:
        """Return the routed partitions with records that tasks have not committed."""
        found = []
        application = self.generation().application
        with log_of(self) as log:
            for number in range(log.partition_count(application.inputs[0])):
                (one,) = application.input_partitions(number)
                start, end = log.committed(one) or 0, log.offset_range(one).end
                if any(map(len, log.read(one, start, end))):  # not only marks of transactions
                    found.append(one)
        return found
