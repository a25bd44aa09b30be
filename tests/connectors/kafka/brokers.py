"""Brokers for the tests, and functions that write to them and read from them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kafka.consumer.fetcher import ConsumerRecord

T = TypeVar("T")
SCRIPT = Path(__file__).parents[3] / "scripts" / "kafka-broker"
PATIENCE = 240  # seconds for what a broker does in the end, on a machine however slow
_TIMEOUT = 10_000  # ms of a question that a client asks a dead leader again and again


def unique(name: str) -> str:
    """Return a name that is used on no broker."""
    return f"{name}-{uuid.uuid4().hex[:12]}"


def patiently(attempt: Callable[[], T]) -> T:
    """Return the outcome of an attempt that opens a client, and repeat it if a node is gone.

    It is repeated after the errors that the client itself calls retriable: the client may choose a
    node that has only just died, or one that has only just started and knows little yet.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return attempt()
        except KafkaError as error:
            if not error.retriable or time.monotonic() > until:
                raise
            time.sleep(0.1)


class Message(NamedTuple):
    """A message to write; the client chooses what is None."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    time: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


class Broker:
    """A broker, by its address.

    Parameters
    ----------
    bootstrap
        "host:port", with commas between those of several nodes.
    process
        Its process: `kill` it as if the machine failed, or `terminate` it in order. None for a
        broker that is not ours.
    security
        Settings of its clients.
    """

    def __init__(
        self,
        bootstrap: str,
        process: subprocess.Popen[str] | None = None,
        security: dict[str, Any] | None = None,
    ) -> None:
        """Store the address."""
        self.bootstrap = bootstrap
        self.process = process
        self.client = {"bootstrap_servers": bootstrap, **(security or {})}

    @classmethod
    def started(cls, *words: str | Path, security: dict[str, Any] | None = None) -> Broker:
        """Start a broker with options of scripts/kafka-broker, and wait until it serves."""
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
        """Wait until the broker knows the coordinators of groups, which it finds late."""

        def ask() -> None:
            with KafkaConsumer(**self.client, group_id="first") as consumer:
                consumer.committed(TopicPartition("none", 0))

        patiently(ask)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Stop the broker from answering in a `with` block; its connections stay open."""
        assert self.process is not None
        pid = self.process.pid
        (java,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(java), signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(int(java), signal.SIGCONT)

    def stop(self) -> None:
        """Stop the broker in order, if it is ours and runs."""
        if self.process is not None:
            self.process.terminate()
            self.process.communicate()

    def kill(self, node: int) -> None:
        """Kill a node of several, as if its machine failed."""
        self._order(f"kill {node}")

    def start(self, node: int) -> None:
        """Restart a node that was killed, and wait until it serves."""
        self._order(f"start {node}")

    def pause(self, node: int) -> None:
        """Stop a node of several from answering; its connections stay open."""
        self._order(f"pause {node}")

    def resume(self, node: int) -> None:
        """Let a paused node go on."""
        self._order(f"resume {node}")

    def _order(self, command: str) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline().strip()
        assert said == command, "scripts/kafka-broker has said why"

    def whole(self) -> bool:
        """Return whether every partition has all its replicas in sync, as far as is known."""
        parts = self._partitions()
        return bool(parts) and all(
            len(one["isr_nodes"]) == len(one["replica_nodes"]) for one in parts
        )

    def leaders(self) -> set[int]:
        """Return the nodes that lead a partition; -1 where no leader is known."""
        return {one["leader_id"] for one in self._partitions()} or {-1}

    def leader(self, topic: str, partition: int) -> int:
        """Return the node that leads a partition."""
        return patiently(lambda: self._leader(topic, partition))

    def _leader(self, topic: str, partition: int) -> int:
        with self.admin() as admin:
            (found,) = admin.describe_topics([topic])
        return int(found["partitions"][partition]["leader_id"])

    def coordinator(self, topic: str, name: str) -> int:
        """Return the node that coordinates a group or a transactional id, by the log of either."""
        value = 0
        for one in name:  # the hash code of Java's strings
            value = (31 * value + ord(one)) & 0xFFFFFFFF
        with self.admin() as admin:
            (found,) = admin.describe_topics([topic])
        return self.leader(topic, (value & 0x7FFFFFFF) % len(found["partitions"]))

    def configure(self, topic: str, config: dict[str, str]) -> None:
        """Change the configuration of a topic."""
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, config)
        with self.admin() as admin:
            admin.alter_configs([resource])

    def recreate(self, topic: str, partitions: int) -> None:
        """Delete a topic, and create another of the same name."""
        with self.admin() as admin:
            admin.delete_topics([topic])
            admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": -1}})
            admin.wait_for_topics([topic], timeout_ms=1000 * PATIENCE)

    def _partitions(self) -> list[dict[str, Any]]:
        try:
            with self.admin() as admin:
                topics = admin.describe_topics()
        except KafkaError:  # a node has only just died
            return []
        return [each for one in topics for each in one["partitions"]]

    def admin(self) -> KafkaAdminClient:
        """Return an admin client."""
        return patiently(lambda: KafkaAdminClient(**self.client))

    def set_session_timeout(self, group: str, seconds: float) -> None:
        """Set the session time-out of a group of the consumer protocol."""
        value = {"consumer.session.timeout.ms": str(int(1000 * seconds))}
        with self.admin() as admin:
            said = admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, group, value)])
        assert said == {"group": {group: "OK"}}, said

    def create(self, name: str = "topic", partitions: int = 1, **config: str) -> str:
        """Create a topic under an unused name, and return the name.

        Events of tests are old, so records are never deleted by default.
        """
        return self._created({name: config}, partitions)[name]

    def create_all(self, partitions: int) -> dict[str, str]:
        """Create the topics of an application; return their names by their keys in [kafka]."""
        keys = ("observations", "labels", "predictions", "outcomes", "dead_letters")
        changelog = {"message_timestamp_type": "LogAppendTime"}
        return self._created({**{key: {} for key in keys}, "changelog": changelog}, partitions)

    def _created(self, topics: dict[str, dict[str, str]], partitions: int) -> dict[str, str]:
        # Under other names each time: an attempt without an answer may have made them.
        return patiently(lambda: self._create(topics, partitions))

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
            admin.create_topics(made)
            admin.wait_for_topics([*made], timeout_ms=1000 * PATIENCE)
        return names

    def produce(self, topic: str, messages: Iterable[Message], **settings: Any) -> list[int]:  # noqa: ANN401 - the client's
        """Write messages, with settings of the producer such as its compression; return offsets.

        Each is written once: only what comes before the first one is repeated with a new producer,
        and a producer repeats under sequence numbers, by which brokers know what they have.
        """
        with patiently(lambda: self._producer(topic, settings)) as producer:
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

    def _producer(self, topic: str, settings: dict[str, Any]) -> KafkaProducer:
        """Open a producer that knows a topic."""
        producer = KafkaProducer(**self.client, **settings)
        try:
            producer.partitions_for(topic)
        except KafkaError:
            producer.close()
            raise
        return producer

    def consume(self, topic: str, isolation: str = "read_committed") -> list[ConsumerRecord]:
        """Read the records of a topic, by partition and offset.

        Transactions that are open are waited for: one that was committed is open for a moment more,
        until its end is written to each partition.
        """
        return patiently(lambda: self._consume(topic, isolation))

    def _consume(self, topic: str, isolation: str) -> list[ConsumerRecord]:
        until = time.monotonic() + PATIENCE
        with (
            KafkaConsumer(**self.client, group_id=None) as uncommitted,
            KafkaConsumer(
                **self.client,
                isolation_level=isolation,
                auto_offset_reset="earliest",
                group_id=None,
            ) as consumer,
        ):
            parts = [TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic)]
            if not parts:
                raise UnknownTopicOrPartitionError(topic)  # a node has not heard of it yet
            consumer.assign(parts)
            consumer.seek_to_beginning(*parts)
            ends = _ends(uncommitted, parts)
            found: list[ConsumerRecord] = []
            while any((consumer.position(part) or 0) < ends[part] for part in parts):
                assert time.monotonic() < until, "a transaction stays open"
                for records in consumer.poll(timeout_ms=200).values():
                    found += [one for one in records if one.offset < ends[_part(one)]]
        return sorted(found, key=lambda one: (one.partition, one.offset))

    def await_transactions(self, *topics: str) -> None:
        """Wait until no transaction is open in topics, as a committed one is for a moment more."""
        patiently(lambda: self._await_transactions(topics))

    def _await_transactions(self, topics: Sequence[str]) -> None:
        with (
            KafkaConsumer(**self.client, group_id=None) as uncommitted,
            KafkaConsumer(
                **self.client, isolation_level="read_committed", group_id=None
            ) as committed,
        ):
            parts = [
                TopicPartition(topic, n)
                for topic in topics
                for n in committed.partitions_for_topic(topic)
            ]
            while _ends(committed, parts) != _ends(uncommitted, parts):
                time.sleep(0.05)


def _ends(consumer: KafkaConsumer, parts: list[TopicPartition]) -> dict[TopicPartition, int]:
    ends: dict[TopicPartition, int] = consumer.end_offsets(parts, _TIMEOUT)
    return ends


def _part(record: ConsumerRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)
