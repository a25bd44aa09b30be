"""Group members and producers for tests."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.clients import CLIENTS, CONSUMER

from abers_connectors.config.sections import KafkaSection
from abers_connectors.runtime.transport import TopicPartition, open_transport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.process import Watchdog
    from abers_connectors.runtime.transport import (
        Consumer,
        GroupMembership,
        Record,
        Transport,
    )

__all__ = ["Reading", "member", "out_of_reach", "seats", "settled", "transport", "writer"]

SESSION = 300  # seconds: no machine is so slow that a member seems to be gone meanwhile


def transport(broker: Broker, watchdog: Watchdog, client: str) -> Transport:
    """Open a client of a broker by its name."""
    kafka = KafkaSection(
        bootstrap_servers=tuple(broker.bootstrap.split(",")),
        observations="observations",
        predictions="predictions",
        **CLIENTS[client],  # type: ignore[arg-type] # keys of the section
    )
    return open_transport(kafka, watchdog)


def member(
    broker: Broker,
    watchdog: Watchdog,
    instance: str,
    *topics: str,
    session: float = SESSION,
    client: str = "kafka-python",
) -> Any:  # noqa: ANN401 - tests reach into it
    """Join a group that is named after the first topic."""
    opened, group = transport(broker, watchdog, client), f"group-of-{topics[0]}"
    if client == CONSUMER:
        broker.set_session_timeout(group, session)
    return opened.consumer(topics, group, instance, session_timeout=session)


def writer(
    broker: Broker,
    watchdog: Watchdog,
    topic: str,
    timeout: float = 10,
    client: str = "kafka-python",
) -> Any:  # noqa: ANN401 - tests reach into it
    """Open a producer that is named after its topic."""
    return transport(broker, watchdog, client).producer(
        f"id-{topic}",
        topics=[topic],
        group=f"group-of-{topic}",
        timeout=timeout,
        compression="lz4",
    )


def out_of_reach(client: Any) -> None:  # noqa: ANN401 - has no types
    """Cut the connection to a coordinator; the client reconnects after three seconds."""
    done = threading.Event()

    def cut() -> None:
        for node in [*client._manager._conns]:
            if str(node).startswith("coordinator"):
                client.close(node)
                for _ in range(7):
                    client._manager.update_backoff(node)
        done.set()

    client._net.call_soon_threadsafe(cut)
    assert done.wait(PATIENCE)


def settled(*groups: Consumer, owned: int) -> list[GroupMembership]:
    """Poll until the members own that many partitions together, and each at least one."""
    while True:
        for one in groups:
            one.poll(0.05, 500)
        found = [one.membership() for one in groups]
        count = sum(len(one.assigned) for one in found)
        if count == owned and all(one.group_metadata and one.assigned for one in found):
            return found


def seats(broker: Broker, topic: str) -> set[str | None]:
    """Return the names of the members that a broker keeps a seat for."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    group = f"group-of-{topic}"
    found = admin.describe_consumer_groups([group])[group].result()
    return {one.group_instance_id for one in found.members}


class Reading:
    """Reads partitions from offsets on, as a worker does: it seeks again after each assignment.

    A group may meet once more at any time, as when the metadata of a new topic change. A member
    without committed offsets then returns no record until it seeks.
    """

    def __init__(self, consumer: Consumer, offsets: Mapping[TopicPartition, int]) -> None:
        """Seek with the first poll."""
        self._consumer, self._offsets = consumer, dict(offsets)
        self._epoch: int | None = None

    def poll(self, seconds: float, max_records: int) -> Mapping[TopicPartition, Sequence[Record]]:
        """Return the records that have arrived."""
        epoch = self._consumer.membership().epoch
        if epoch != self._epoch:
            for partition, offset in self._offsets.items():
                self._consumer.seek(partition, offset)
            self._epoch = epoch
        found = self._consumer.poll(seconds, max_records)
        for records in found.values():
            last = records[-1]
            self._offsets[TopicPartition(last.topic, last.partition)] = last.offset + 1
        return found
