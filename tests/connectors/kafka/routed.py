"""Applications with routers for tests: inputs with any keys, and what must come of them."""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import time
from collections import defaultdict
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition
from kafka.errors import KafkaError
from tests.connectors.kafka.brokers import PATIENCE, Broker, Message, unique
from tests.connectors.kafka.clients import CLIENTS

from abers.stream import Label, Observation, Processor
from abers_connectors.config.model import load
from abers_connectors.runtime.task import Assembler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from kafka.consumer.fetcher import ConsumerRecord

    from abers_connectors.config.model import Config

__all__ = ["ORIGIN", "START", "Place", "RoutedApplication", "place", "traffic"]

START = 1_700_000_000_000
ORIGIN = "abers.origin"
MODELS = 12
NO_MODELS: Mapping[str, str] = MappingProxyType({})
_TASKS = 5
_ORIGIN = struct.Struct(">BIqq")


class Place(NamedTuple):
    """Where a routed record comes from."""

    which: int
    partition: int
    offset: int


def place(record: ConsumerRecord) -> Place:
    """Return the place in the last header of a routed record."""
    name, value = record.headers[-1]
    assert name == ORIGIN
    bits, partition, offset, _ = _ORIGIN.unpack(value)
    return Place(bits & 1, partition, offset)


def traffic(
    count: int, partitions: tuple[int, int], seed: int = 0
) -> tuple[list[Message], list[Message]]:
    """Return observations and late labels of some models, with random keys, in random partitions.

    Some have no key. Each time of an observation is its own, and some labels have one of these.
    """
    random = Random(seed)  # noqa: S311 - not for secrets
    seen, labels = [], []
    for number in range(count):
        time_, model = START + 100 * number, f"model {random.randrange(MODELS)}"
        one = {"id": f"o{number}", "time": time_, "model": model}
        key = random.choice([None, random.randbytes(4)])
        trace = [("trace", str(number).encode())] * random.randrange(2)
        value = json.dumps(one | {"score": random.random()}).encode()
        seen.append(Message(value, key, random.randrange(partitions[0]), time_, trace))
        late = time_ + random.choice([2_000, 2_050])
        value = json.dumps(one | {"time": late, "label": random.randrange(2)}).encode()
        labels.append(Message(value, random.randbytes(3), random.randrange(partitions[1]), late))
    return seen, sorted(labels, key=lambda label: label.time or 0)


class RoutedApplication:
    """An application with routers, in a folder of its own."""

    def __init__(  # noqa: PLR0913 - each is independent
        self,
        broker: Broker,
        folder: Path,
        start: Callable[..., subprocess.Popen[bytes]],
        client: str,
        partitions: tuple[int, int] = (4, 3),
        *,
        sections: Mapping[str, dict[str, Any]] | None = None,
        **kafka: object,
    ) -> None:
        """Make its inputs; there may be keys of other sections."""
        self._more = sections or {}
        self.broker, self.folder, self._start = broker, folder, start
        self.name = unique("app")
        self._kafka = {
            "bootstrap_servers": broker.bootstrap,
            "application_id": self.name,
            "observations": broker.create("observations", partitions[0]),
            "labels": broker.create("labels", partitions[1]),
            "predictions": broker.create("predictions", 2),
            "route_by": "model",
            "partitions": _TASKS,
            "max_records": 50,
            "session_timeout": "3s",
            "transaction_timeout": "4s",
            "stall_timeout": "30s",
            **CLIENTS[client],
            **kafka,
        }
        if self._kafka.get("group_protocol") == "consumer":
            del self._kafka["session_timeout"]
            for group in (self.name, f"{self.name}-router"):
                broker.set_session_timeout(group, 3.0)

    def topic(self, key: str) -> str:
        """Return the name of a topic by its key."""
        suffixes = {"routed": "routed", "dead_letters": "dead-letters", "changelog": "changelog"}
        return str(self._kafka.get(key) or f"{self.name}.{suffixes[key]}")

    def config(self, instance: str = "0", **kafka: object) -> Config:
        """Return the configuration of a process."""
        return load(flags=self._sections(instance, kafka), environ={})

    def written(self, instance: str = "0", **kafka: object) -> str:
        """Write the configuration of a process, and return the name of the file."""
        lines = []
        for section, keys in self._sections(instance, kafka).items():
            lines.append(f"[{section}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        name = f"abers-{instance}.toml"
        (self.folder / name).write_text("\n".join(lines) + "\n")
        return name

    def _sections(self, instance: str, kafka: dict[str, object]) -> dict[str, dict[str, Any]]:
        section = {**self._kafka, "group_instance_id": instance, **kafka}
        state = {"path": str(self.folder / f"state-{instance}"), "snapshot_every": 200}
        return {"kafka": section, "state": state, "http": {"enabled": False}, **self._more}

    def run(self, *words: str, instance: str = "0") -> subprocess.Popen[bytes]:
        """Start a process, with more words on its command line."""
        return self._start("run", self.written(instance), "--create-topics", *words)

    def produce(self, key: str, messages: list[Message]) -> list[int]:
        """Write to a topic by its key."""
        return self.broker.produce(self.topic(key), messages)

    def grow(self, key: str, partitions: int) -> None:
        """Add partitions to a topic."""
        with self.broker.admin() as admin:
            admin.create_partitions({self.topic(key): partitions})

    def read(self, key: str) -> list[ConsumerRecord]:
        """Return the committed records of a topic; none if it is not there yet."""
        with self.broker.admin() as admin:
            if self.topic(key) not in admin.list_topics():
                return []
        return self.broker.consume(self.topic(key))

    def until(self, done: Callable[[], bool], *running: subprocess.Popen[bytes]) -> None:
        """Wait for a condition, while all of some processes run."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            for process in running:
                assert process.poll() is None, process.communicate()[1].decode()
            if time.monotonic() > deadline:
                pytest.fail("\n".join(map(_killed, running)) or "it never became so")
            time.sleep(0.1)

    def behind(self, group: str, key: str) -> int | None:
        """Return the records of a topic that a group has not committed; None without an offset."""
        with self.broker.admin() as admin:
            try:
                committed = admin.list_group_offsets([group])[group]
            except KafkaError:  # it is not there yet
                return None
            (found,) = admin.describe_topics([self.topic(key)])
            parts = [TopicPartition(self.topic(key), n) for n in range(len(found["partitions"]))]
            if not {*parts} <= {*committed}:
                return None
            ends = admin.list_partition_offsets(dict.fromkeys(parts, -1))
        return int(sum(ends[one].offset - committed[one].offset for one in parts))

    def taken(self) -> int:
        """Return the number of records that tasks have taken, as their changelog says."""
        assemblers: dict[int, Assembler] = defaultdict(Assembler)
        changes = (assemblers[one.partition].add(one.value) for one in self.read("changelog"))
        return sum(len(one.inputs) for one in changes if one is not None)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a process; the consumer protocol frees its seats after the session time-out."""
        process.kill()
        process.wait()
        if self._kafka.get("group_protocol") == "consumer":
            self.until(lambda: not any(map(self._members, (self.name, f"{self.name}-router"))))

    def _members(self, group: str) -> int:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        try:
            return len(admin.describe_consumer_groups([group])[group].result().members)
        except KafkaException:  # it was never used
            return 0

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """Stop a process in order."""
        process.send_signal(signal.SIGTERM)
        try:
            err = process.communicate(timeout=PATIENCE)[1].decode()
        except subprocess.TimeoutExpired:
            err = _killed(process)
        assert process.returncode == 0, err

    def expected(self, models: Mapping[str, str] = NO_MODELS) -> Iterator[bytes]:
        """Yield the outputs of a processor a partition, fed with the routed records in order.

        Records are decoded here; one that is no event is left out. `models` are those of labels
        that name none, by ids.
        """
        settings, outcomes = self.config().settings(), "outcomes" in self._kafka
        processors: dict[int, Processor] = defaultdict(
            lambda: Processor(settings, outcomes=outcomes)
        )
        for record in self.read("routed"):
            if (event := _event(record, models)) is not None:
                for output in processors[record.partition].process(event):
                    yield msgspec.json.encode(output)


def _event(record: ConsumerRecord, models: Mapping[str, str]) -> Observation | Label | None:
    try:
        one = json.loads(record.value or b"")
    except ValueError:
        return None
    model = one["model"] if "model" in one else models.get(one["id"])
    if not isinstance(model, str):
        return None
    known = {"recorded": record.timestamp, "model": model}
    if "score" in one:
        return Observation(one["id"], one["time"], score=one["score"], **known)
    return Label(one["id"], one["time"], value=one["label"], **known)


def _killed(process: subprocess.Popen[bytes]) -> str:
    """Kill a process, which would be waited for, and return what it has said."""
    process.kill()
    return process.communicate()[1].decode()
