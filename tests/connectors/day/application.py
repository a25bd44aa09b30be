"""The application of a day: routers, processes of tasks with ports that stay, and a bucket."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families
from tests.connectors.day.hostile import LIMIT
from tests.connectors.day.records import WAIT
from tests.connectors.kafka.chaos.elastic_application import ElasticApplication
from tests.connectors.kafka.chaos.judge import log_of

from abers_connectors.kafka.topic_checks import create_topics
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping
    from pathlib import Path

    from prometheus_client.samples import Sample
    from tests.connectors.kafka.brokers import Broker

__all__ = [
    "OUTPUTS",
    "PROCESSES",
    "DayApplication",
    "scraped",
    "sections",
]

PROCESSES = {"router-0": "router", "tasks-0": "tasks", "tasks-1": "tasks"}
"""Processes, and the stage of each."""

OUTPUTS = ("predictions", "outcomes", "dead_letters")
_SNAPSHOT_EVERY = 500  # records
_NAMED = 10  # models with metrics of their own: the first, and those with the strongest evidence
_COOLDOWN = 100  # labels of the busy model without evidence, after which an incident is over


def sections(
    bucket_url: str, registry: str, unit: float, **kafka: object
) -> dict[str, dict[str, Any]]:
    """Return the sections of the configuration."""
    return {
        "kafka": {
            "route_by": "model",
            "client": "librdkafka",
            "replication_factor": 3,
            "session_timeout": "6s",
            "transaction_timeout": "20s",
            "stall_timeout": "60s",
            **kafka,
        },
        "schema_registry": {"url": registry},
        "task": {"scores": "probability"},
        "calibrator": {"window": 1_000},
        "input": {"format": "avro", "max_record_bytes": LIMIT},
        "input.fields": {"passthrough": ["channel"]},
        "output": {"format": "json"},
        "limits": {
            "label_timeout": f"{1000 * WAIT * unit:.0f}ms",
            "max_models": 150,
        },
        "monitoring": {"cooldown": _COOLDOWN},
        "state": {"path": bucket_url, "snapshot_every": _SNAPSHOT_EVERY},
    }


class DayApplication(ElasticApplication):
    """An application whose processes keep their ports, so that they are scraped after a restart.

    Attributes
    ----------
    ports
        Port of each process.
    counts
        Partitions of the tasks of each generation.
    """

    def __init__(
        self,
        broker: Broker,
        folder: Path,
        ports: Mapping[str, int],
        partitions: int,
        **sections: Any,  # noqa: ANN401
    ) -> None:
        """Make its topics."""
        self.ports, self.counts = ports, {1: int(sections["kafka"]["partitions"])}
        super().__init__(broker, folder, partitions, **sections)
        create_topics(self.config())

    def configured(self, instance: str = "0", **kafka: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401
        """Return the sections of a process's configuration."""
        port = self.ports.get(instance, 0)
        return super().configured(instance, **kafka) | {
            "http": {"port": port, "max_models": _NAMED}
        }

    def output_ends(self) -> dict[tuple[str, int], int]:
        """Return the ends of the topics of outputs, by topic and partition."""
        topics = [self.topics[key] for key in OUTPUTS]
        with log_of(self) as log:
            return {
                one: log.offset_range(one).end
                for topic in topics
                for one in (TopicPartition(topic, n) for n in range(log.partition_count(topic)))
            }

    def scrape(self) -> dict[str, list[Sample]]:
        """Return the samples of each process."""
        return {name: [*scraped(port)] for name, port in self.ports.items() if name in PROCESSES}

    def labels_by_model(self) -> dict[str, int]:
        """Return the number of labels of each model, as the live pages of the tasks list them."""
        found: dict[str, int] = {}
        for name, stage in PROCESSES.items():
            if stage == "tasks":
                for one in _asked(self.ports[name], "/live/models?limit=10000")["models"]:
                    found[one["model"]] = found.get(one["model"], 0) + one["labels"]
        return found


def scraped(port: int, names: Container[str] | None = None) -> Iterator[Sample]:
    """Yield the samples of a process, or only those with some names."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines(keepends=True)
    if names is not None:
        lines = [one for one in lines if re.split(r"[{ ]", one, maxsplit=1)[0] in names]
    for family in text_string_to_metric_families("".join(lines)):
        yield from family.samples


def _asked(port: int, path: str) -> Any:  # noqa: ANN401 - as JSON has it
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return json.load(answer)
