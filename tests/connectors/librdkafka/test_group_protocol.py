"""The consumer group protocol of KIP-848, whose sessions and assignments are the brokers'."""

from __future__ import annotations

import signal
from contextlib import closing
from typing import TYPE_CHECKING, cast

import pytest
from tests.connectors.kafka import zombie
from tests.connectors.kafka.brokers import Message
from tests.connectors.kafka.chaos.application import SESSION, Application
from tests.connectors.kafka.chaos.campaign import SECTIONS, drained
from tests.connectors.kafka.chaos.judge import judge
from tests.connectors.kafka.chaos.traffic import Traffic
from tests.connectors.kafka.chaos.workers import Supervisor, Worker
from tests.connectors.kafka.clients import CLIENTS, CONSUMER
from tests.connectors.kafka.joining import member, settled, transport, writer

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.errors import UNAVAILABLE
from abers_connectors.librdkafka.consumer import member_epoch
from abers_connectors.runtime.transport import TRANSPORTS, TopicPartition, TransactionError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.kafka.client import PartitionReader
    from abers_connectors.process import Watchdog
    from abers_connectors.runtime.transport import GroupMembership


def numbers(found: GroupMembership, topic: str) -> list[int]:
    """Return the partitions of a topic that a member owns."""
    return sorted(one.partition for one in found.assigned if one.topic == topic)


def test_both_topics_are_assigned_alike(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """After each reconciliation, members own the same partitions of both topics, and all of them.

    What a member keeps stays as it is.
    """
    both = observations, labels = topics("observations", 6), topics("labels", 6)
    members = []
    for name in "abc":
        members.append(member(broker, watchdog, name, *both, client=CONSUMER))
        found = settled(*members, owned=12)
        assert [numbers(one, observations) for one in found] == [
            numbers(one, labels) for one in found
        ]
    members.pop().leave()
    found = settled(*members, owned=12)
    assert [numbers(one, labels) for one in found] == [[0, 1, 2], [3, 4, 5]]
    for one in members:
        one.close()


def test_a_commit_of_what_is_kept_outlives_a_rebalance(
    broker: Broker,
    topics: Callable[..., str],
    watchdog: Watchdog,
    reader: Callable[[str], PartitionReader],
) -> None:
    """The epoch of a member grows without a change of its partitions, and so do its metadata."""
    topic = topics()
    here = TopicPartition(topic, 0)
    first = member(broker, watchdog, "a", topic, client=CONSUMER)
    (before,) = settled(first, owned=1)
    spare = member(broker, watchdog, "b", topic, client=CONSUMER)
    assert spare.membership().group_metadata is not None, "a member without partitions is one"
    while (after := first.membership()).group_metadata == before.group_metadata:
        first.poll(0.05, 500)
    epochs = [member_epoch(cast("bytes", one.group_metadata)) for one in (before, after)]
    assert epochs[0] < epochs[1]
    assert after.epoch == before.epoch
    with closing(writer(broker, watchdog, topic, client=CONSUMER)) as producer:
        producer.begin()
        producer.commit({here: 7}, after.group_metadata)
    assert reader(topic).committed(here) == 7
    first.close()
    spare.close()


def test_a_commit_of_what_has_moved_fails(
    broker: Broker,
    topics: Callable[..., str],
    watchdog: Watchdog,
    reader: Callable[[str], PartitionReader],
) -> None:
    """Metadata from before a partition moved commit nothing of it."""
    topic = topics(partitions=2)
    first = member(broker, watchdog, "a", topic, client=CONSUMER)
    (before,) = settled(first, owned=2)
    second = member(broker, watchdog, "b", topic, client=CONSUMER)
    after, _ = settled(first, second, owned=2)
    (moved,) = before.assigned - after.assigned
    with closing(writer(broker, watchdog, topic, client=CONSUMER)) as producer:
        producer.begin()
        producer.send(moved, None, b"never")
        with pytest.raises(TransactionError):
            producer.commit({moved: 7}, before.group_metadata)
    assert reader(topic).committed(moved) is None
    assert broker.consume(topic) == []
    first.close()
    second.close()


def test_a_second_member_of_a_name_is_refused(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """The running one goes on, with the same metadata; a closed one gives its place at once."""
    topic = topics()
    first = member(broker, watchdog, "a", topic, client=CONSUMER)
    (before,) = settled(first, owned=1)
    with pytest.raises(
        BrokerError, match=r"joining the group: another process has this kafka\.group_instance_id"
    ):
        member(broker, watchdog, "a", topic, client=CONSUMER)
    first.poll(0.05, 500)
    assert settled(first, owned=1) == [before._replace(last_heartbeat=first.membership()[-1])]
    first.close()
    second = member(broker, watchdog, "a", topic, client=CONSUMER)
    settled(second, owned=1)
    second.close()


@pytest.mark.long
def test_the_place_of_a_killed_member_is_free_after_its_session(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """Until then a restarted process is refused, as its supervisor tries again and again."""
    topic = topics()
    broker.produce(topic, [Message(b"one")])
    with zombie.started(CONSUMER, broker, topic, "before") as process:
        process.kill()
    refused, restarted = 0, None
    while restarted is None:
        try:
            restarted = member(broker, watchdog, "zombie", topic, session=3, client=CONSUMER)
        except BrokerError:
            refused += 1
    assert refused > 0
    settled(restarted, owned=1)
    restarted.close()


@pytest.mark.long
def test_a_partition_of_one_topic_alone_waits_for_the_other(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """It does not count while another member may still release its partner, and then is reported.

    Here another program reads one of the topics in the group.
    """
    both = observations, labels = topics("observations", 2), topics("labels", 2)
    group = f"group-of-{observations}"
    stranger = transport(broker, watchdog, CONSUMER).consumer(
        [labels], group, "stranger", session_timeout=300
    )
    settled(stranger, owned=2)
    one = member(broker, watchdog, "a", *both, client=CONSUMER)
    settled(one, stranger, owned=3)
    found = one.membership()
    assert numbers(found, observations) == numbers(found, labels) == [0]
    one._assignment._patience = 1.0  # noqa: SLF001 - by default minutes
    while (later := one.membership()).epoch == found.epoch:
        one.poll(0.05, 500)
        stranger.poll(0.0, 500)
    assert (numbers(later, observations), numbers(later, labels)) == ([0, 1], [0])
    one.close()
    stranger.close()


@pytest.mark.long
@pytest.mark.parametrize(
    "lacking", ["group.coordinator.rebalance.protocols=classic", "group.consumer.assignors=uniform"]
)
def test_brokers_without_the_protocol(
    lacking: str, brokers: Callable[..., Broker], watchdog: Watchdog
) -> None:
    """Brokers that lack the protocol or the assignor end the process with 78."""
    own = brokers("--properties", lacking)
    with pytest.raises(ConfigError, match=r"^kafka\.group_protocol: the brokers do not support"):
        transport(own, watchdog, CONSUMER).consumer(
            [own.create()], "group", "a", session_timeout=45
        )


def test_a_twin_is_refused(broker: Broker, tmp_path: Path) -> None:
    """The younger of two processes of a name ends with 75, and the older serves on."""
    application = Application(broker, tmp_path, 2, **SECTIONS, kafka=CLIENTS[CONSUMER])
    broker.set_session_timeout(application.name, 60)
    traffic = Traffic(application, 1, 300)
    with closing(Supervisor(application)) as supervisor, closing(traffic):
        older = supervisor.add("0", leave_group_on_close=True)
        traffic.play(300)
        drained(application)
        before = application.group()
        younger = Worker(application, "0")
        assert younger.ended() == UNAVAILABLE
        assert "another process has this kafka.group_instance_id" in younger.said()
        traffic.play(1_000)
        drained(application)
        assert application.group() == before
        supervisor.retire("0")
        assert older.exits == [0]
        assert application.group() == ("EMPTY", {}), "it left"
        judge(application, traffic.ids, traffic.poison)


@pytest.mark.long
def test_a_restarted_self_waits_for_the_session_of_the_one_before(
    broker: Broker, tmp_path: Path
) -> None:
    """It ends with 75 until then, and the older one ends when it returns; nothing comes twice."""
    application = Application(broker, tmp_path, 2, **SECTIONS, kafka=CLIENTS[CONSUMER])
    broker.set_session_timeout(application.name, 20)  # longer than a start takes
    traffic = Traffic(application, 1, 300)
    with closing(Supervisor(application)) as supervisor, closing(traffic):
        older = supervisor.add("0")
        traffic.play(300)
        drained(application)
        older.send(signal.SIGSTOP)
        traffic.play(1_000)
        older.wanted = False
        supervisor.retired.append(older)
        younger = supervisor.add("0")
        drained(application)
        assert UNAVAILABLE in younger.exits
        older.send(signal.SIGCONT)
        assert older.ended() == UNAVAILABLE
        supervisor.retire("0")
        judge(application, traffic.ids, traffic.poison)


@pytest.mark.long
@pytest.mark.parametrize("classic", TRANSPORTS)
def test_processes_change_the_protocol_in_turn(
    classic: str, broker: Broker, tmp_path: Path
) -> None:
    """Processes of both protocols share a group, there and back, and nothing is lost or doubled."""
    application = Application(broker, tmp_path, 4, **SECTIONS, kafka=CLIENTS[classic])
    broker.set_session_timeout(application.name, SESSION)
    traffic = Traffic(application, 1, 2_500)
    with closing(Supervisor(application)) as supervisor, closing(traffic):
        workers = {name: supervisor.add(name) for name in "01"}
        for keys in (CLIENTS[CONSUMER], CLIENTS[classic] | {"group_protocol": "classic"}):
            for name in workers:
                traffic.play(800)
                supervisor.retire(name)
                supervisor.add(name, **keys)
                drained(application, look=supervisor.require_all)
        traffic.play(10_000)
        drained(application, look=supervisor.require_all)
        for name in workers:
            supervisor.retire(name)
        judge(application, traffic.ids, traffic.poison)
