from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.kafka.brokers import Message
from tests.connectors.kafka.clients import on_each_classic_client, on_each_client
from tests.connectors.kafka.joining import Reading, member, out_of_reach, seats, settled, writer

from abers.exceptions import BrokerError
from abers_connectors.runtime.transport import FetchPosition, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.kafka.client import PartitionReader
    from abers_connectors.process import Watchdog


@on_each_client
def test_committed_records_only(
    client: str,
    broker: Broker,
    topics: Callable[..., str],
    watchdog: Watchdog,
    reader: Callable[[str], PartitionReader],
) -> None:
    """An aborted record is never returned, and transaction markers count as read."""
    topic = topics()
    here = TopicPartition(topic, 0)
    producer = writer(broker, watchdog, topic, client=client)
    group = member(broker, watchdog, "a", topic, client=client)
    (owner,) = settled(group, owned=1)
    for value in (b"one", b"two"):
        producer.begin()
        producer.send(here, b"key", value, [("name", b"header")], 1234)
        producer.commit({here: 0}, owner.group_metadata)
    producer.begin()
    producer.send(here, None, b"never")
    producer.close()
    reading, found = Reading(group, {here: 0}), list[Any]()
    while (reached := group.fetch_position(here)).lag != 0:
        for records in reading.poll(0.1, 500).values():
            found += records
    assert [(one.offset, one.key, one.value, one.timestamp) for one in found] == [
        (0, b"key", b"one", 1234),
        (2, b"key", b"two", 1234),
    ]
    assert [(name, value) for name, value in found[0].headers] == [("name", b"header")]
    assert reached.end is not None
    assert reached.end >= 4
    assert reader(topic).committed(here) == 0
    group.close()


@on_each_client
def test_restart_keeps_the_seat(
    client: str, broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A member's seat waits for it: it owns the same partitions again, and no other moved.

    The group may meet once more at any time, when a client learns of its topic's partitions, so
    the broker is asked who is seated, and not how often the group met.
    """
    topic = topics(partitions=2)
    first, second = (member(broker, watchdog, name, topic, client=client) for name in "ab")
    before = settled(first, second, owned=2)
    first.close()
    assert seats(broker, topic) == {"a", "b"}
    back = member(broker, watchdog, "a", topic, client=client)
    after = settled(back, second, owned=2)
    assert [one.assigned for one in after] == [one.assigned for one in before]
    back.close()
    second.close()


@on_each_classic_client
def test_a_taken_seat(
    client: str, broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A member whose name another process takes fails, even if there is nothing to read."""
    topic = topics()
    older = member(broker, watchdog, "a", topic, client=client)
    settled(older, owned=1)
    younger = member(broker, watchdog, "a", topic, client=client)

    def poll_until_it_fails() -> None:
        while True:
            younger.poll(0.05, 500)
            older.poll(0.05, 500)

    with pytest.raises(
        BrokerError, match=r"another process took the place .* kafka\.group_instance_id"
    ):
        poll_until_it_fails()
    settled(younger, owned=1)
    older.close()
    younger.close()


def test_a_broker_that_hangs(brokers: Callable[..., Broker], watchdog: Watchdog) -> None:
    """A member without an answer for its session is no member, and waits without a busy loop."""
    own = brokers()
    topic = own.create()
    group = member(own, watchdog, "a", topic, session=3)
    (owner,) = settled(group, owned=1)
    polled = 0
    consumer = group._consumer
    once = consumer._poll_once

    def counted(*words: Any, **more: Any) -> Any:  # noqa: ANN401 - the client's
        nonlocal polled
        polled += 1
        return once(*words, **more)

    consumer._poll_once = counted
    polls = 0
    with own.hanging():
        while (now := group.membership()).group_metadata is not None:
            group.poll(0.1, 500)
            polls += 1
    assert now.assigned == owner.assigned
    assert polled <= 10 * polls
    group.close()


@on_each_client
def test_lost_history(
    client: str, broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """Reading at an offset that a topic no longer has is an error that names the offset."""
    topic = topics()
    broker.produce(topic, [Message(b"x")] * 5)
    group = member(broker, watchdog, "a", topic, client=client)
    settled(group, owned=1)
    reading = Reading(group, {TopicPartition(topic, 0): 99})

    def read_until_it_fails() -> None:
        while True:
            reading.poll(0.1, 500)

    with pytest.raises(BrokerError, match=rf"{topic}\[0\]@99: the topic has no such offset"):
        read_until_it_fails()
    group.close()


@on_each_client
def test_unknown_partition(
    client: str, broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """Calls about a partition that is not owned return nothing and do nothing.

    Such a partition may have been owned a moment ago: partitions move between two polls.
    """
    topic = topics()
    here = TopicPartition(topic, 1)
    group = member(broker, watchdog, "a", topic, client=client)
    group.seek(here, 0)
    group.pause(here)
    group.resume(here)
    assert group.fetch_position(here) == FetchPosition(None, None)
    group.close()


@on_each_client
def test_resumed_partition_goes_on(
    client: str, broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """Records that were fetched before a pause are returned after the resume."""
    topic = topics(partitions=2)
    for number in range(2):
        broker.produce(topic, [Message(b"x", partition=number)] * 100)
    group = member(broker, watchdog, "a", topic, client=client)
    settled(group, owned=2)
    reading = Reading(group, {TopicPartition(topic, number): 0 for number in range(2)})
    count = [0, 0]

    def read(until: Callable[[], bool]) -> None:
        while not until():
            for partition, records in reading.poll(0.1, 10).items():
                count[partition[1]] += len(records)

    read(lambda: sum(count) > 0)
    first = int(count[1] > 0)
    group.pause(TopicPartition(topic, first))
    read(lambda: count[1 - first] == 100)
    group.resume(TopicPartition(topic, first))
    read(lambda: count == [100, 100])
    group.close()


def test_answer_between_polls(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A response of the broker between two polls counts, although nothing waits for it.

    This happens if the metadata of a topic seem to change for a moment.
    """
    topic = topics()
    group = member(broker, watchdog, "a", topic)
    settled(group, owned=1)
    coordinator = group._consumer._coordinator
    while coordinator._join_task is None:  # one that is answered within a poll is gone after it
        coordinator.request_rejoin()
        group.poll(0.0, 500)
    while coordinator._join_task is not None and not coordinator._join_task.arrived:
        time.sleep(0.001)
    coordinator.rejoin_needed = False
    (again,) = settled(group, owned=1)
    assert again.assigned == {TopicPartition(topic, 0)}
    group.close()


def test_a_coordinator_out_of_reach_is_asked_for_at_leisure(
    broker: Broker,
    topics: Callable[..., str],
    watchdog: Watchdog,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """While the brokers name an unreachable coordinator, lookups are ten a second."""
    group = member(broker, watchdog, "a", topics())
    settled(group, owned=1)
    coordinator = group._consumer._coordinator
    caplog.clear()
    began = time.monotonic()
    out_of_reach(coordinator._client)
    while not coordinator._client.connected(coordinator.coordinator()):
        group.poll(0.05, 500)
    seconds = time.monotonic() - began
    asked = [one for one in caplog.messages if one.startswith("Marking the coordinator dead")]
    assert 1 <= len(asked) <= 10 * seconds + 5
    (again,) = settled(group, owned=1)
    assert again.group_metadata is not None
    group.close()
