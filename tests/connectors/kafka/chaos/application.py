"""An application under attack: its topics, and the configuration of each of its workers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove
from tests.connectors.kafka.brokers import Broker, unique

from abers_connectors.config.model import Config, load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["SESSION", "Application"]

SESSION = 3.0  # seconds
_SHORT = {"session_timeout": "3s", "transaction_timeout": "4s", "stall_timeout": "10s"}


class Application:
    """An application that is used by one campaign.

    Parameters
    ----------
    broker
        Broker of its topics; replaced when it is restarted.
    folder
        Folder of its configurations, logs and snapshots.
    partitions
        Number of partitions of its topics.
    sections
        Further sections of the configuration.
    """

    def __init__(
        self,
        broker: Broker,
        folder: Path,
        partitions: int = 3,
        **sections: Any,  # noqa: ANN401
    ) -> None:
        """Make its topics."""
        self.broker, self.folder, self.partitions = broker, folder, partitions
        self.name = unique("app")
        self.topics = self._created_topics()
        self._sections: dict[str, dict[str, Any]] = sections
        if _is_consumer(sections.get("kafka", {})):
            for group in self.groups:
                broker.set_session_timeout(group, SESSION)

    @property
    def groups(self) -> Sequence[str]:
        """Its consumer groups."""
        return [self.name]

    def _created_topics(self) -> dict[str, str]:
        """Create its topics, and return their names by their keys in [kafka]."""
        return self.broker.create_all(self.partitions)

    def configured(self, instance: str = "0", **kafka: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401
        """Return the sections of a worker's configuration."""
        given = self._sections
        section = {
            "bootstrap_servers": self.broker.bootstrap.split(","),
            "application_id": self.name,
            "group_instance_id": instance,
            **self.topics,
            **_SHORT,
            **given.get("kafka", {}),
            **kafka,
        }
        if _is_consumer(section):
            del section["session_timeout"]
        return {
            **given,
            "kafka": section,
            "state": {"path": str(self.snapshots(instance)), "snapshot_every": 300}
            | given.get("state", {}),
            "http": {"port": 0},
        }

    def snapshots(self, instance: str = "0") -> Path:
        """Return the folder of a worker's snapshots: each has its own, as on another machine."""
        return self.folder / f"snapshots-{instance}"

    def config(self, instance: str = "0", **kafka: Any) -> Config:  # noqa: ANN401
        """Return a worker's configuration."""
        return load(flags=self.configured(instance, **kafka), environ={})

    def written(self, instance: str = "0", **kafka: Any) -> Path:  # noqa: ANN401
        """Write a worker's configuration, and return its path."""
        lines = []
        for section, keys in self.configured(instance, **kafka).items():
            lines.append(f"[{section}]")
            # What JSON writes of texts, numbers and lists means the same in TOML.
            lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        path = self.folder / f"worker-{instance}.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def leave(self, instance: str) -> None:
        """Remove a worker from the group, as the end of its session would."""
        with KafkaAdminClient(**self.broker.client) as admin:
            seat = MemberToRemove(group_instance_id=f"{self.name}-{instance}")
            admin.remove_group_members(self.name, [seat])

    def seated(self, instance: str) -> bool:
        """Return whether a worker is in the group, and the group is stable."""
        group = self.group()
        return group is not None and group[0] == "STABLE" and f"{self.name}-{instance}" in group[1]

    def group(self) -> tuple[str, dict[str, str]] | None:
        """Return the state of the group, of any protocol, and its members' ids by instance."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        try:
            found = admin.describe_consumer_groups([self.name])[self.name].result()
        except KafkaException:  # the broker, or its coordinator, has only just been started
            return None
        return found.state.name, {one.group_instance_id: one.member_id for one in found.members}


def _is_consumer(kafka: dict[str, Any]) -> bool:
    """Return whether a section [kafka] chooses the consumer protocol."""
    return kafka.get("group_protocol") == "consumer"
