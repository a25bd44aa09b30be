from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

from kafka import KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition
from tests.connectors.kafka.brokers import Message

from abers_connectors.kafka.client import PartitionReader
from abers_connectors.runtime.transport import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.process import Watchdog


def test_bounds_count_open_transactions(
    broker: Broker, topics: Callable[..., str], reader: Callable[[str], PartitionReader]
) -> None:
    """The end of a log counts uncommitted records, and reading waits for their transaction."""
    topic = topics()
    here = TopicPartition(topic, 0)
    log = reader(topic)
    assert log.offset_range(here) == OffsetRange(0, 0)
    broker.produce(topic, [Message(b"before")])
    foreign = KafkaProducer(transactional_id=f"foreign-{topic}", **broker.client)
    foreign.init_transactions()
    foreign.begin_transaction()
    foreign.send(topic, b"foreign").get()
    assert log.offset_range(here) == OffsetRange(0, 2)
    assert log.last_stable_offset(here) == 1
    found: list[Any] = []
    for records in log.read(here, 0, 2):
        if found and foreign is not None:  # the first is there, and the next is not yet
            foreign.commit_transaction()
            foreign.close()
            foreign = None
        found += [one.value for one in records]
    assert found == [b"before", b"foreign"]


def test_another_leads(brokers: Callable[..., Broker], watchdog: Watchdog) -> None:
    """All requests about a partition find its new leader."""
    broker = brokers("--nodes", "2")
    topic = broker.create()
    broker.produce(topic, [Message(b"x", time=1000)])
    log = PartitionReader(f"group-of-{topic}", settings=broker.client, watchdog=watchdog)
    here = TopicPartition(topic, 0)

    def found() -> tuple[OffsetRange, int, int | None]:
        return log.offset_range(here), log.last_stable_offset(here), log.offset_for_time(here, 500)

    assert found() == (OffsetRange(0, 1), 1, 0)
    with broker.admin() as admin:
        (before,) = (one["partitions"][0] for one in admin.describe_topics([topic]))
        nodes = {KafkaTopicPartition(*here): before["replica_nodes"][::-1]}
        admin.alter_partition_reassignments(nodes)
        after = before
        while after["leader_id"] in {before["leader_id"], -1}:
            admin.elect_leaders(0, {topic: [0]}, raise_errors=False)
            (after,) = (one["partitions"][0] for one in admin.describe_topics([topic]))
    assert found() == (OffsetRange(0, 1), 1, 0)
    log.close()


def test_topics_and_times(
    broker: Broker, topics: Callable[..., str], reader: Callable[[str], PartitionReader]
) -> None:
    """A missing topic has no partitions, and a time has the first record from then on."""
    topic = topics(partitions=3)
    broker.produce(topic, [Message(b"x", partition=1, time=1000 * one) for one in (1, 2, 3)])
    log = reader(topic)
    assert log.partition_count(topic) == 3
    assert log.partition_count(f"{topic}-not") == 0
    assert log.offset_for_time(TopicPartition(topic, 1), 1500) == 1
    assert log.offset_for_time(TopicPartition(topic, 1), 4000) is None


def test_a_partition_that_was_added(
    broker: Broker, topics: Callable[..., str], reader: Callable[[str], PartitionReader]
) -> None:
    """Several partitions are asked for together, also if one is new."""
    topic = topics()
    old, new = (TopicPartition(topic, number) for number in range(2))
    log = reader(topic)
    assert log.last_stable_offsets([old]) == {old: 0}
    with broker.admin() as admin:
        admin.create_partitions({topic: 2})
    broker.produce(topic, [Message(b"x", partition=1)])
    assert log.last_stable_offsets([old, new]) == {old: 0, new: 1}


NOBODY = """
from abers_connectors.kafka.client import PartitionReader
from abers_connectors.process import Watchdog

settings = {"bootstrap_servers": ["127.0.0.1:1"], "bootstrap_timeout_ms": 500}
PartitionReader("group", settings=settings, watchdog=Watchdog(60))
"""


def test_no_broker() -> None:
    """Without a broker, the error says so; the exit code is to try again."""
    # In a process of its own, as the client leaves the sockets open that nobody answered.
    words = [sys.executable, "-c", NOBODY]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "BrokerError: no answer from a broker at 127.0.0.1:1: 111 ECONNREFUSED" in ran.stderr
