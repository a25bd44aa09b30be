from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaProducer
from tests.connectors.kafka.brokers import Message

from abers.exceptions import BrokerError
from abers_connectors.kafka.client import Group, Log, Transactions
from abers_connectors.kafka.transport import Bounds, Partition, Reached, TransactionError
from abers_connectors.kafka.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.kafka.transport import Membership


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    """Give a watchdog that nothing here should wake."""
    one = Watchdog(60, pytest.fail)
    yield one
    one.close()


def member(broker: Broker, watchdog: Watchdog, instance: str, *topics: str) -> Group:
    """Join a group that is named after the first topic."""
    return Group(
        topics,
        f"group-of-{topics[0]}",
        instance,
        session=10,
        settings=broker.client,
        watchdog=watchdog,
    )


def writer(broker: Broker, watchdog: Watchdog, identity: str) -> Transactions:
    """Make a producer."""
    return Transactions(
        identity, timeout=10, compression="lz4", settings=broker.client, watchdog=watchdog
    )


@pytest.fixture
def reader(broker: Broker, watchdog: Watchdog) -> Iterator[Callable[[str], Log]]:
    """Read beside the group that is named after a topic."""
    with ExitStack() as stack:

        def made(topic: str) -> Log:
            log = Log(f"group-of-{topic}", settings=broker.client, watchdog=watchdog)
            stack.callback(log.close)
            return log

        yield made


def settled(*groups: Group, owned: int) -> list[Membership]:
    """Poll until the members own so many partitions together, each some."""
    while True:
        for one in groups:
            one.poll(0.05, 500)
        found = [one.membership() for one in groups]
        count = sum(len(one.assigned) for one in found)
        if count == owned and all(one.proof and one.assigned for one in found):
            return found


def test_committed_records_only(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog, reader: Callable[[str], Log]
) -> None:
    """An aborted record is never given, and the marks of transactions count as read."""
    topic = topics()
    here = Partition(topic, 0)
    producer = writer(broker, watchdog, f"id-{topic}")
    group = member(broker, watchdog, "a", topic)
    (owner,) = settled(group, owned=1)
    for value in (b"one", b"two"):
        producer.begin()
        told = producer.send(here, b"key", value, [("name", b"header")], 1234)
        producer.commit({here: 0}, owner.proof)
        assert told() == {b"one": 0, b"two": 2}[value]
    producer.begin()
    producer.send(here, None, b"never")
    producer.close()
    group.seek(here, 0)
    found: list[Any] = []
    while (reached := group.reached(here)).lag != 0:
        for records in group.poll(0.1, 500).values():
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


def test_who_lost_a_partition_cannot_commit(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog, reader: Callable[[str], Log]
) -> None:
    """An offset that is committed with the proof of an older generation aborts everything."""
    seen, told = topics("seen", 2), topics("told", 2)
    first = member(broker, watchdog, "a", seen, told)
    (before,) = settled(first, owned=4)
    second = member(broker, watchdog, "b", seen, told)
    after, _ = settled(first, second, owned=4)
    assert after.epoch > before.epoch
    assert {one.number for one in after.assigned} == {0}
    assert len(after.assigned) == 2, "of both topics the same partitions"
    producer = writer(broker, watchdog, f"id-{seen}")
    producer.begin()
    producer.send(Partition(seen, 1), None, b"late")
    with pytest.raises(TransactionError, match="the transaction was aborted"):
        producer.commit({Partition(seen, 1): 7}, before.proof)
    producer.begin()
    producer.commit({Partition(seen, 0): 1}, after.proof)
    log = reader(seen)
    assert log.committed(Partition(seen, 0)) == 1
    assert log.committed(Partition(seen, 1)) is None
    assert broker.consume(seen) == []
    for one in (producer, first, second):
        one.close()


def test_namesake_fences(broker: Broker, topics: Callable[..., str], watchdog: Watchdog) -> None:
    """Who comes with the same identity ends the transactions of the one before."""
    topic = topics()
    group = member(broker, watchdog, "a", topic)
    (owner,) = settled(group, owned=1)
    zombie = writer(broker, watchdog, f"id-{topic}")
    zombie.begin()
    zombie.send(Partition(topic, 0), None, b"never")
    heir = writer(broker, watchdog, f"id-{topic}")
    with pytest.raises(BrokerError, match="took the place of this one"):
        zombie.commit({Partition(topic, 0): 1}, owner.proof)
    assert broker.consume(topic) == []
    heir.close()
    group.close()


def test_restart_keeps_the_seat(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A member that comes back under its name owns what it owned, and nobody else moved."""
    topic = topics(partitions=2)
    first, second = (member(broker, watchdog, name, topic) for name in "ab")
    before = settled(first, second, owned=2)
    first.close()
    back = member(broker, watchdog, "a", topic)
    after = settled(back, second, owned=2)
    assert [one.assigned for one in after] == [one.assigned for one in before]
    assert after[1].epoch == before[1].epoch
    back.close()
    second.close()


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


def test_lost_history(broker: Broker, topics: Callable[..., str], watchdog: Watchdog) -> None:
    """Reading at an offset that a topic no longer has is an error that names the place."""
    topic = topics()
    broker.produce(topic, [Message(b"x")] * 5)
    group = member(broker, watchdog, "a", topic)
    settled(group, owned=1)
    group.seek(Partition(topic, 0), 99)

    def read_until_it_fails() -> None:
        while True:
            group.poll(0.1, 500)

    with pytest.raises(BrokerError, match=rf"{topic}\[0\]@99: the topic has no such offset"):
        read_until_it_fails()
    group.close()


def test_unknown_partition(broker: Broker, topics: Callable[..., str], watchdog: Watchdog) -> None:
    """Of a partition that is not owned nothing is known, and nothing is done to it.

    It may have been owned a moment ago: partitions move while nobody polls.
    """
    topic = topics()
    here = Partition(topic, 0)
    group = member(broker, watchdog, "a", topic)
    group.seek(here, 0)
    group.pause(here)
    group.resume(here)
    assert group.reached(here) == Reached(None, None)
    group.close()


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


def test_resumed_partition_goes_on(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """What was fetched of a partition before it was paused is given when it is resumed."""
    topic = topics(partitions=2)
    for number in range(2):
        broker.produce(topic, [Message(b"x", partition=number)] * 100)
    group = member(broker, watchdog, "a", topic)
    settled(group, owned=2)
    for number in range(2):
        group.seek(Partition(topic, number), 0)
    count = [0, 0]

    def read(until: Callable[[], bool]) -> None:
        while not until():
            for partition, records in group.poll(0.1, 10).items():
                count[partition[1]] += len(records)

    read(lambda: sum(count) > 0)
    first = int(count[1] > 0)
    group.pause(Partition(topic, first))
    read(lambda: count[1 - first] == 100)
    group.resume(Partition(topic, first))
    read(lambda: count == [100, 100])
    group.close()


def test_answer_between_polls(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """What the broker answers while nobody polls counts, though nothing asks for it any more.

    So it is where the metadata of a topic seem to change for a moment.
    """
    topic = topics()
    group = member(broker, watchdog, "a", topic)
    settled(group, owned=1)
    coordinator = group._consumer._coordinator  # noqa: SLF001 - when it comes nobody tells
    coordinator.request_rejoin()
    while coordinator._join_task is None:  # noqa: SLF001
        group.poll(0.0, 500)
    while coordinator._join_task is not None and not coordinator._join_task.came:  # noqa: SLF001
        pass
    coordinator.rejoin_needed = False
    polls = 0
    while group.membership().proof is None and polls < 100:
        group.poll(0.05, 500)
        polls += 1
    assert group.membership().assigned == {Partition(topic, 0)}
    group.close()
