from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

from kafka import KafkaProducer, TopicPartition
from tests.connectors.kafka.brokers import Message

from abers_connectors.kafka.client import Log
from abers_connectors.kafka.transport import Bounds, Partition

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.kafka.watchdog import Watchdog


def test_bounds_count_open_transactions(
    broker: Broker, topics: Callable[..., str], reader: Callable[[str], Log]
) -> None:
    """The end of a log counts what is not committed, and reading waits until it is known."""
    topic = topics()
    here = Partition(topic, 0)
    log = reader(topic)
    assert log.bounds(here) == Bounds(0, 0)
    broker.produce(topic, [Message(b"before")])
    foreign = KafkaProducer(transactional_id=f"foreign-{topic}", **broker.client)
    foreign.init_transactions()
    foreign.begin_transaction()
    foreign.send(topic, b"foreign").get()
    assert log.bounds(here) == Bounds(0, 2)
    assert log.stable_end(here) == 1
    found: list[Any] = []
    for records in log.read(here, 0, 2):
        if found and foreign is not None:  # the first is there, and the next is not yet
            foreign.commit_transaction()
            foreign.close()
            foreign = None
        found += [one.value for one in records]
    assert found == [b"before", b"foreign"]


def test_another_leads(brokers: Callable[..., Broker], watchdog: Watchdog) -> None:
    """A partition whose leader has changed is asked about at the new one, by all questions."""
    broker = brokers("--nodes", "2")
    topic = broker.create()
    broker.produce(topic, [Message(b"x", time=1000)])
    log = Log(f"group-of-{topic}", settings=broker.client, watchdog=watchdog)
    here = Partition(topic, 0)

    def found() -> tuple[Bounds, int, int | None]:
        return log.bounds(here), log.stable_end(here), log.at_time(here, 500)

    assert found() == (Bounds(0, 1), 1, 0)
    with broker.admin() as admin:
        (before,) = (one["partitions"][0] for one in admin.describe_topics([topic]))
        nodes = {TopicPartition(*here): before["replica_nodes"][::-1]}
        admin.alter_partition_reassignments(nodes)
        admin.elect_leaders(0, {topic: [0]})
        (after,) = (one["partitions"][0] for one in admin.describe_topics([topic]))
    assert after["leader_id"] != before["leader_id"]
    assert found() == (Bounds(0, 1), 1, 0)
    log.close()


def test_topics_and_times(
    broker: Broker, topics: Callable[..., str], reader: Callable[[str], Log]
) -> None:
    """A topic that is not there has no partitions, and a time has the first record from then."""
    topic = topics(partitions=3)
    broker.produce(topic, [Message(b"x", partition=1, time=1000 * one) for one in (1, 2, 3)])
    log = reader(topic)
    assert log.partitions(topic) == 3
    assert log.partitions(f"{topic}-not") == 0
    assert log.at_time(Partition(topic, 1), 1500) == 1
    assert log.at_time(Partition(topic, 1), 4000) is None


NOBODY = """
from abers_connectors.kafka.client import Log
from abers_connectors.kafka.watchdog import Watchdog

settings = {"bootstrap_servers": ["127.0.0.1:1"], "bootstrap_timeout_ms": 500}
Log("group", settings=settings, watchdog=Watchdog(60, print))
"""


def test_no_broker() -> None:
    """Where nobody answers, the error says so; the exit code is to try again."""
    # In a process of its own, as the client leaves the sockets open that nobody answered.
    words = [sys.executable, "-c", NOBODY]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "BrokerError: no answer from a broker at 127.0.0.1:1: 111 ECONNREFUSED" in ran.stderr
