from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from kafka import TopicPartition as KafkaPartition
from tests.connectors.kafka.brokers import Message
from tests.connectors.kafka.clients import CONSUMER
from tests.connectors.kafka.joining import Reading, member, settled

from abers_connectors.librdkafka import consumer
from abers_connectors.librdkafka.consumer import Assignment
from abers_connectors.runtime.transport import FetchPosition, TopicPartition, sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.process import Watchdog


@pytest.mark.parametrize("most", [consumer._MAX_HELD, 0])  # noqa: SLF001 - the limit
def test_a_paused_partition_holds_what_was_fetched(
    most: int,
    broker: Broker,
    topics: Callable[..., str],
    watchdog: Watchdog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its records come after the resume, in order, and also if the client was stopped."""
    monkeypatch.setattr(consumer, "_MAX_HELD", most)
    topic = topics(partitions=2)
    for number in range(2):
        broker.produce(topic, [Message(b"x", partition=number)] * 2_000)
    group = member(broker, watchdog, "a", topic, client="librdkafka")
    settled(group, owned=2)
    here, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    reading = Reading(group, {here: 0, other: 0})
    found = [one.offset for one in reading.poll(0.0, 1).get(here, ())]  # seeks
    group.pause(here)
    partition = group._assignment.partitions[here]  # noqa: SLF001 - the records that are held
    while not partition.held or group.fetch_position(other).lag != 0:
        assert here not in reading.poll(0.1, 100)
    assert partition.stopped is (most == 0)
    assert group.fetch_position(here) == FetchPosition(len(found), 2_000)
    group.resume(here)
    while len(found) < 2_000:
        found += [one.offset for one in reading.poll(0.1, 300).get(here, ())]
    assert found == [*range(2_000)]
    assert group.fetch_position(here) == FetchPosition(2_000, 2_000)
    group.close()


def test_headers_count_in_what_is_held(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A paused partition of records with large headers is stopped, whatever the last one is."""
    topic = topics()
    large, small = Message(b"x", headers=[("h", b"x" * 500_000)]), Message(b"x")
    broker.produce(topic, [large, small] * 60)
    group = member(broker, watchdog, "a", topic, client="librdkafka")
    settled(group, owned=1)
    here = TopicPartition(topic, 0)
    group.seek(here, 0)
    group.pause(here)
    partition = group._assignment.partitions[here]  # noqa: SLF001 - the records that are held
    while not partition.stopped:
        assert group.poll(0.1, 1) == {}
    assert 16 << 20 < partition.held_size == sum(sizes_of(partition.held)) < 30 << 20
    group.resume(here)
    found: list[int] = []
    while len(found) < 120:
        found += [one.offset for one in group.poll(0.1, 7).get(here, ())]
    assert found == [*range(120)]
    group.close()


def test_a_member_that_never_polls_closes(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A client that is closed before its first poll, and is assigned partitions then, ends."""
    topic = topics()
    group = member(broker, watchdog, "a", topic, client="librdkafka")
    name, state = f"group-of-{topic}", ""
    while state != "Stable":
        with broker.admin() as admin:
            state = admin.describe_groups([name])[name]["group_state"]
    group.close()


@pytest.mark.parametrize("client", ["librdkafka", CONSUMER])
def test_a_topic_whose_first_records_are_gone(
    client: str, broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A partition is read from the offset that is sought, and another one goes on."""
    topic = topics(partitions=2)
    here, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    for number in range(2):
        broker.produce(topic, [Message(b"x", partition=number)] * 10)
    with broker.admin() as admin:
        admin.delete_records({KafkaPartition(topic, 0): 5})
    group = member(broker, watchdog, "a", topic, client=client)
    settled(group, owned=2)
    found: dict[TopicPartition, list[int]] = {here: [], other: []}

    def read(count: int) -> None:
        while sum(map(len, found.values())) < count:
            for one, records in group.poll(0.1, 100).items():
                found[one] += [record.offset for record in records]

    group.seek(other, 3)
    read(7)
    group.seek(here, 5)
    broker.produce(topic, [Message(b"x", partition=1)])
    read(13)
    assert found == {here: [*range(5, 10)], other: [*range(3, 11)]}
    group.close()


def test_what_is_held_is_dropped_by_a_seek(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A partition continues at the offset that is sought, wherever it was."""
    topic = topics()
    broker.produce(topic, [Message(b"x")] * 100)
    group = member(broker, watchdog, "a", topic, client="librdkafka")
    settled(group, owned=1)
    here = TopicPartition(topic, 0)
    group.seek(here, 10)
    group.pause(here)
    partition = group._assignment.partitions[here]  # noqa: SLF001 - the records that are held
    while len(partition.held) < 90:
        assert group.poll(0.1, 100) == {}
    group.seek(here, 50)
    group.resume(here)
    found: list[int] = []
    while len(found) < 50:
        found += [one.offset for one in group.poll(0.1, 100).get(here, ())]
    assert found == [*range(50, 100)]
    group.close()


@pytest.mark.parametrize("client", ["librdkafka", pytest.param(CONSUMER, marks=pytest.mark.long)])
def test_a_seek_counts_although_the_broker_was_slow_at_the_assignment(
    client: str,
    brokers: Callable[..., Broker],
    watchdog: Watchdog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A partition continues where it was sought, not where the client would have begun."""
    broker = brokers()
    topic = broker.create()
    broker.produce(topic, [Message(bytes(50_000))] * 100)  # of many fetches
    assigned = Assignment.assigned
    with ExitStack() as hanging:

        def slow(self: Assignment, *given: Any) -> None:  # noqa: ANN401 - of the client
            hanging.enter_context(broker.hanging())
            assigned(self, *given)

        monkeypatch.setattr(Assignment, "assigned", slow)
        group = member(broker, watchdog, "a", topic, client=client)
        while not group.membership().assigned:
            group.poll(0.1, 100)
        group.seek(TopicPartition(topic, 0), 7)
    found: list[int] = []
    while len(found) < 93:
        found += [one.offset for part in group.poll(0.1, 100).values() for one in part]
    assert found == [*range(7, 100)]
    group.close()
