"""Brokers for the tests, and what is written to them and read from them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kafka.consumer.fetcher import ConsumerRecord

SCRIPT = Path(__file__).parents[3] / "scripts" / "kafka-broker"


def unique(name: str) -> str:
    """Return a name that nobody has on any broker."""
    return f"{name}-{uuid.uuid4().hex[:12]}"


class Message(NamedTuple):
    """What is written to a topic; what is None is left to the client."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    time: int | None = None
    headers: Sequence[tuple[str, bytes]] = ()


class Broker:
    """A broker, by its address.

    Parameters
    ----------
    bootstrap
        "host:port", with commas between those of several nodes.
    process
        What runs it: `kill` it as if the machine failed, or `terminate` it in order. None for a
        broker that is not ours.
    security
        Settings that clients need to reach it.
    """

    def __init__(
        self,
        bootstrap: str,
        process: subprocess.Popen[str] | None = None,
        security: dict[str, Any] | None = None,
    ) -> None:
        """Take its address."""
        self.bootstrap = bootstrap
        self.process = process
        self.client = {"bootstrap_servers": bootstrap, **(security or {})}

    @classmethod
    def started(cls, *words: str | Path, security: dict[str, Any] | None = None) -> Broker:
        """Start one with options of scripts/kafka-broker, and wait until it serves."""
        process = subprocess.Popen(
            [sys.executable, SCRIPT, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        ready, _, bootstrap = process.stdout.readline().strip().partition(" ")
        assert ready == "ready", "scripts/kafka-broker has said why"
        return cls(bootstrap, process, security)

    def settle(self) -> None:
        """Return when it knows the coordinators of groups: the first one is found late."""
        with KafkaConsumer(**self.client, group_id="first") as consumer:
            consumer.committed(TopicPartition("none", 0))

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Let it answer nobody in a `with` block, while its connections stay open."""
        assert self.process is not None
        pid = self.process.pid
        (java,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(java), signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(int(java), signal.SIGCONT)

    def stop(self) -> None:
        """Stop it in order, if it is ours and runs."""
        if self.process is not None:
            self.process.terminate()
            self.process.communicate()

    def kill(self, node: int) -> None:
        """End a node of several as a machine does that fails."""
        self._order(f"kill {node}")

    def start(self, node: int) -> None:
        """Start a node again that was killed, and wait until it serves."""
        self._order(f"start {node}")

    def _order(self, command: str) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline().strip()
        assert said == command, "scripts/kafka-broker has said why"

    def whole(self) -> bool:
        """Tell whether every partition has all its copies in sync, as far as is known."""
        parts = self._partitions()
        return bool(parts) and all(
            len(one["isr_nodes"]) == len(one["replica_nodes"]) for one in parts
        )

    def leaders(self) -> set[int]:
        """Name the nodes that lead a partition; -1 where no leader is known."""
        return {one["leader_id"] for one in self._partitions()} or {-1}

    def _partitions(self) -> list[dict[str, Any]]:
        try:
            with self.admin() as admin:
                topics = admin.describe_topics()
        except KafkaError:  # a node has only just died
            return []
        return [each for one in topics for each in one["partitions"]]

    def admin(self) -> KafkaAdminClient:
        """Return a client that manages it."""
        return KafkaAdminClient(**self.client)

    def create(self, name: str = "topic", partitions: int = 1, **config: str) -> str:
        """Make a topic under a name that nobody has, and return the name.

        Events of tests are old, so that they are kept for ever by default.
        """
        return self._create({name: config}, partitions)[name]

    def create_all(self, partitions: int) -> dict[str, str]:
        """Make the topics of an application; their names by their keys in [kafka]."""
        keys = ("observations", "labels", "predictions", "outcomes", "dead_letters")
        changelog = {"message_timestamp_type": "LogAppendTime"}
        return self._create({**{key: {} for key in keys}, "changelog": changelog}, partitions)

    def _create(self, topics: dict[str, dict[str, str]], partitions: int) -> dict[str, str]:
        names = {name: unique(name) for name in topics}
        options = {"num_partitions": partitions, "replication_factor": -1}  # the broker's default
        # kafka-python's own keyword for a setting with dots in its name is a dictionary.
        configs = {
            names[name]: {"retention.ms": "-1"}
            | {k.replace("_", "."): v for k, v in config.items()}
            for name, config in topics.items()
        }
        made = {name: {**options, "configs": config} for name, config in configs.items()}
        with self.admin() as admin:
            admin.create_topics(made, wait_for_metadata=True)
        return names

    def produce(self, topic: str, messages: Iterable[Message], **settings: Any) -> list[int]:  # noqa: ANN401 - the client's
        """Write messages, with settings of the producer such as its compression; return offsets."""
        with KafkaProducer(**self.client, **settings) as producer:
            sent = [
                producer.send(
                    topic,
                    one.value,
                    key=one.key,
                    partition=one.partition,
                    timestamp_ms=one.time,
                    headers=[*one.headers],
                )
                for one in messages
            ]
            return [one.get().offset for one in sent]

    def consume(self, topic: str, isolation: str = "read_committed") -> list[ConsumerRecord]:
        """Read what a topic holds now, by partition and offset."""
        with KafkaConsumer(
            **self.client, isolation_level=isolation, auto_offset_reset="earliest", group_id=None
        ) as consumer:
            parts = [TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic)]
            consumer.assign(parts)
            consumer.seek_to_beginning(*parts)
            ends = consumer.end_offsets(parts)
            found: list[ConsumerRecord] = []
            while any(consumer.position(part) < ends[part] for part in parts):
                for records in consumer.poll(timeout_ms=200).values():
                    found += [one for one in records if one.offset < ends[_part(one)]]
        return sorted(found, key=lambda one: (one.partition, one.offset))


def _part(record: ConsumerRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)
