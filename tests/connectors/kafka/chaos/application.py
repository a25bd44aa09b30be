"""An application under attack: its topics, and the configuration of each of its workers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove
from kafka.errors import KafkaError
from tests.connectors.kafka.brokers import Broker, unique

from abers_connectors.config import Config, load

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Application"]

_SHORT = {"session_timeout": "3s", "transaction_timeout": "4s", "watchdog": "10s"}


class Application:
    """An application that nobody else has.

    Parameters
    ----------
    broker
        Where its topics are; replaced when it is started again.
    folder
        Of its configurations, logs and snapshots.
    partitions
        Of its topics.
    sections
        More of the configuration, by section.
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
        self.topics = broker.create_all(partitions)
        self._sections: dict[str, dict[str, Any]] = sections

    def configured(self, instance: str = "0", **kafka: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401
        """Give the sections of a worker's configuration."""
        given = self._sections
        return {
            **given,
            "kafka": {
                "bootstrap": self.broker.bootstrap.split(","),
                "app": self.name,
                "instance": instance,
                **self.topics,
                **_SHORT,
                **given.get("kafka", {}),
                **kafka,
            },
            "state": {"path": str(self.snapshots(instance)), "every": 300} | given.get("state", {}),
            "http": {"port": 0},
        }

    def snapshots(self, instance: str = "0") -> Path:
        """Name the folder of a worker's snapshots: each has its own, as on another machine."""
        return self.folder / f"snapshots-{instance}"

    def config(self, instance: str = "0", **kafka: Any) -> Config:  # noqa: ANN401
        """Give a worker's configuration."""
        return load(flags=self.configured(instance, **kafka), environ={})

    def written(self, instance: str = "0", **kafka: Any) -> Path:  # noqa: ANN401
        """Write a worker's configuration, and give its path."""
        lines = []
        for section, keys in self.configured(instance, **kafka).items():
            lines.append(f"[{section}]")
            # What JSON writes of texts, numbers and lists means the same in TOML.
            lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        path = self.folder / f"worker-{instance}.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def leave(self, instance: str) -> None:
        """Take the seat of a worker away, as its session's end would."""
        with KafkaAdminClient(**self.broker.client) as admin:
            seat = MemberToRemove(group_instance_id=f"{self.name}-{instance}")
            admin.remove_group_members(self.name, [seat])

    def seated(self, instance: str) -> bool:
        """Tell whether a worker has its seat in the group, and the group is at rest."""
        try:
            with KafkaAdminClient(**self.broker.client) as admin:
                group = admin.describe_groups([self.name])[self.name]
        except KafkaError:  # the broker, or its coordinator, has only just been started
            return False
        names = [one["group_instance_id"] for one in group["members"]]
        return group["group_state"] == "Stable" and f"{self.name}-{instance}" in names
