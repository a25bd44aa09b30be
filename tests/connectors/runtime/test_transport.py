"""The contract of a Kafka client, which each registered transport fulfils on a real broker."""

from __future__ import annotations

import ast
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.brokers import Message
from tests.connectors.kafka.joining import Reading

from abers.exceptions import BrokerError
from abers_connectors import runtime
from abers_connectors.config.sections import KafkaSection
from abers_connectors.runtime.transport import (
    TRANSPORTS,
    FetchPosition,
    OffsetRange,
    RefusedRecordError,
    TopicPartition,
    open_transport,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.process import Watchdog
    from abers_connectors.runtime.transport import (
        Consumer,
        GroupMembership,
        Producer,
        Reader,
        Record,
        Transport,
    )


def imported(module: Path) -> Iterator[str]:
    """Name the packages that a module imports, for types only too."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_the_runtime_imports_no_client() -> None:
    """No module of the runtime names a Kafka client, except as text in the registry."""
    (folder,) = runtime.__path__
    modules = [*Path(folder).glob("*.py")]
    assert modules
    for module in modules:
        roots = {name.split(".")[0] for name in imported(module)}
        assert not roots & {"kafka", "confluent_kafka", "aiokafka"}, module.name


class Clients:
    """The clients of a transport, for one topic and its group."""

    def __init__(self, transport: Transport, topic: str, stack: ExitStack) -> None:
        self.topic, self.group = topic, f"group-of-{topic}"
        self._transport, self._stack = transport, stack
        self.reader: Reader = transport.reader(self.group)
        stack.callback(self.reader.close)

    def producer(self) -> Producer:
        """Open a producer, of the same identity each time."""
        found = self._transport.producer(
            f"id-{self.topic}",
            topics=[self.topic],
            group=self.group,
            timeout=10,
            compression="lz4",
        )
        self._stack.callback(found.close)
        return found

    def consumer(self, instance: str = "a") -> Consumer:
        """Join the group."""
        return self._transport.consumer([self.topic], self.group, instance, session_timeout=300)

    def at(self, number: int = 0) -> TopicPartition:
        """Return a partition of the topic."""
        return TopicPartition(self.topic, number)


@pytest.fixture(params=[*TRANSPORTS])
def open_clients(
    request: pytest.FixtureRequest,
    broker: Broker,
    topics: Callable[..., str],
    watchdog: Watchdog,
) -> Iterator[Callable[..., Clients]]:
    """Open the clients of each transport, for a new topic."""
    kafka = KafkaSection(
        bootstrap_servers=(broker.bootstrap,),
        observations="observations",
        predictions="predictions",
        client=request.param,
    )
    transport = open_transport(kafka, watchdog)
    with ExitStack() as stack:
        yield lambda partitions=1: Clients(transport, topics(partitions=partitions), stack)


def settled(consumer: Consumer, owned: int) -> GroupMembership:
    """Poll until a member owns so many partitions."""
    while True:
        consumer.poll(0.05, 500)
        found = consumer.membership()
        if found.group_metadata is not None and len(found.assigned) == owned:
            return found


def read(consumer: Consumer, partition: TopicPartition) -> list[Record]:
    """Read a partition from its first offset until nothing is left."""
    reading = Reading(consumer, {partition: 0})
    found: list[Record] = []
    while consumer.fetch_position(partition).lag != 0:
        found += [one for records in reading.poll(0.1, 500).values() for one in records]
    return found


def test_a_transaction_is_all_or_nothing(open_clients: Callable[..., Clients]) -> None:
    """Records and offsets are committed together, and those of an open transaction do not count."""
    clients = open_clients()
    here, consumer, producer = clients.at(), clients.consumer(), clients.producer()
    metadata = settled(consumer, owned=1).group_metadata
    assert metadata is not None
    producer.begin()
    producer.send(here, b"key", b"value", [("name", b"header")], 1234)
    offset = producer.send_tracked(here, b"tracked")
    assert clients.reader.committed(here) is None
    producer.commit({here: 0}, metadata)
    assert (offset(), clients.reader.committed(here)) == (1, 0)
    producer.begin()
    producer.send(here, None, b"never")
    producer.close()
    one, tracked = read(consumer, here)
    assert (tracked.offset, tracked.key, tracked.value, [*tracked.headers]) == (
        1,
        None,
        b"tracked",
        [],
    )
    assert (one.topic, one.partition, one.offset) == (clients.topic, 0, 0)
    assert (one.key, one.value, one.timestamp) == (b"key", b"value", 1234)
    assert [(name, value) for name, value in one.headers] == [("name", b"header")]
    consumer.close()


@pytest.mark.parametrize("setting", [("max.message.bytes", "100"), ("cleanup.policy", "compact")])
def test_a_record_that_the_brokers_refuse(
    setting: tuple[str, str], open_clients: Callable[..., Clients], broker: Broker
) -> None:
    """It ends the commit with an error of its own: a repetition would be refused, too."""
    clients = open_clients()
    consumer, producer = clients.consumer(), clients.producer()
    metadata = settled(consumer, owned=1).group_metadata
    assert metadata is not None
    broker.configure(clients.topic, dict([setting]))

    def commit_until_it_fails() -> None:
        while True:
            producer.begin()
            for _ in range(40):
                producer.send(clients.at(), None, os.urandom(200))
            producer.commit({clients.at(): 0}, metadata)

    with pytest.raises(RefusedRecordError, match="committing: the brokers refuse a record"):
        commit_until_it_fails()
    consumer.close()


def test_a_second_producer_fences_the_first(open_clients: Callable[..., Clients]) -> None:
    """Of two producers with one identity, the first cannot commit any more."""
    clients = open_clients()
    consumer, first = clients.consumer(), clients.producer()
    metadata = settled(consumer, owned=1).group_metadata
    assert metadata is not None
    first.begin()
    first.send(clients.at(), None, b"never")
    second = clients.producer()
    with pytest.raises(BrokerError):
        first.commit({clients.at(): 0}, metadata)
    second.begin()
    second.send(clients.at(), None, b"second")
    second.commit({clients.at(): 7}, metadata)
    assert clients.reader.committed(clients.at()) == 7
    consumer.close()


def test_offsets(open_clients: Callable[..., Clients], broker: Broker) -> None:
    """A reader knows the offsets of a partition, and reads a range of them."""
    clients = open_clients(2)
    reader, here = clients.reader, clients.at(1)
    broker.produce(
        clients.topic, [Message(b"%d" % n, partition=1, time=1000 * n) for n in range(4)]
    )
    assert reader.partition_count(clients.topic) == 2
    assert reader.partition_count(f"{clients.topic}-not") == 0
    assert reader.offset_range(here) == OffsetRange(0, 4)
    assert reader.last_stable_offset(here) == 4
    assert [reader.offset_for_time(here, time) for time in (1500, 9999)] == [2, None]
    found = [one.value for records in reader.read(here, 1, 3) for one in records]
    assert found == [b"1", b"2"]


def test_a_paused_partition_continues_where_it_was(
    open_clients: Callable[..., Clients], broker: Broker
) -> None:
    """A paused partition returns no records, and all of them once it is resumed."""
    clients = open_clients()
    here, consumer = clients.at(), clients.consumer()
    settled(consumer, owned=1)
    consumer.pause(here)
    reading = Reading(consumer, {here: 0})
    broker.produce(clients.topic, [Message(b"x")] * 100)
    assert [*reading.poll(0.5, 500)] == []
    consumer.resume(here)
    found: list[int] = []
    while len(found) < 100:
        found += [one.offset for records in reading.poll(0.1, 7).values() for one in records]
    assert found == [*range(100)]
    consumer.close()


def test_a_partition_that_is_not_assigned(open_clients: Callable[..., Clients]) -> None:
    """Calls about a partition that is not assigned do nothing."""
    clients = open_clients()
    here, consumer = clients.at(), clients.consumer()
    consumer.seek(here, 0)
    consumer.pause(here)
    consumer.resume(here)
    assert consumer.fetch_position(here) == FetchPosition(None, None)
    consumer.close()


def test_a_member_that_leaves_frees_its_partitions(open_clients: Callable[..., Clients]) -> None:
    """Another member gets the partitions at once, and not after the session has timed out."""
    clients = open_clients(2)
    first = clients.consumer("a")
    settled(first, owned=2)
    first.leave()
    second = clients.consumer("b")
    found = settled(second, owned=2)
    assert found.assigned == {clients.at(0), clients.at(1)}
    second.close()


def test_leaders(open_clients: Callable[..., Clients]) -> None:
    """On a healthy cluster no partition lacks a leader."""
    clients = open_clients()
    producer = clients.producer()
    assert producer.leaderless([clients.at()]) == []
