"""The mark in the group of an application that is taken over, and its final offsets."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from kafka import OffsetAndMetadata
from kafka import TopicPartition as ClientPartition
from kafka.errors import UnknownMemberIdError
from tests.connectors.kafka.brokers import PATIENCE, Message, unique
from tests.connectors.kafka.test_settings import ENVIRON, secured  # noqa: F401 - a fixture

from abers.exceptions import ConfigError, StateError
from abers.stream import Settings
from abers_connectors.kafka.connection import client_settings
from abers_connectors.kafka.predecessor import WatchedGroup, require_not_taken_over
from abers_connectors.runtime.application import Application
from abers_connectors.runtime.take_over import PredecessorView
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.connectors.kafka.brokers import Broker
    from tests.connectors.kafka.test_settings import Secured

PROTOCOLS: dict[str, dict[str, str]] = {
    "classic": {"session.timeout.ms": "6000"},
    "consumer": {"group.protocol": "consumer", "group.remote.assignor": "range"},
}


@pytest.fixture(params=PROTOCOLS)
def member(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Callable[..., Consumer]]:
    """Join members to a group of either protocol: `member(group, topic)`."""
    joined = []

    def join(group: str, topic: str) -> Consumer:
        servers = {"bootstrap.servers": broker.bootstrap, "group.id": group}
        found = Consumer({**servers, "auto.offset.reset": "earliest", **PROTOCOLS[request.param]})
        joined.append(found)
        found.subscribe([topic])
        while not found.assignment():
            found.consume(1, 0.1)
        return found

    yield join
    for one in joined:
        one.close()


def watched(broker: Broker, name: str, group: str, topic: str, mark: str) -> closing[WatchedGroup]:
    """Watch a group for an application of some name."""
    of = Application(name, [topic], "changelog", Settings(), outcomes=False, key=None)
    return closing(WatchedGroup(of, group, mark, broker.client))


def once(watching: WatchedGroup, done: Callable[[PredecessorView], object]) -> PredecessorView:
    """Return the view once something is so."""
    for _ in range(PATIENCE):
        seen = watching.view(fresh=True)
        if done(seen):
            return seen
    raise AssertionError(seen)


def test_only_a_group_without_members_is_marked(
    broker: Broker, topics: Callable[..., str], member: Callable[..., Consumer]
) -> None:
    """The offsets become final once the last member has left, for one successor alone."""
    group, inputs, mark = unique("old"), topics("seen"), topics("predictions")
    broker.produce(inputs, [Message(b"1")] * 9)
    running = member(group, inputs)
    running.commit(offsets=[Place(inputs, 0, 5)], asynchronous=False)
    with watched(broker, "new", group, inputs, mark) as watching:
        watching.take_over(ready=True)
        for _ in range(3):
            seen = watching.view(fresh=True)
            assert seen == PredecessorView({TopicPartition(inputs, 0): 5}, running=True)
        with broker.admin() as admin:  # the brokers refuse a mark that comes late
            place = {ClientPartition(mark, 0): OffsetAndMetadata(0, "late", None)}
            (error,) = admin.alter_group_offsets(group, place).values()
        assert error is UnknownMemberIdError
        require_not_taken_over(group, broker.client)
        running.commit(offsets=[Place(inputs, 0, 7)], asynchronous=False)
        running.close()
        seen = once(watching, lambda seen: seen.final)
        assert (seen.offsets, seen.taken_by) == ({TopicPartition(inputs, 0): 7}, "new")
    with pytest.raises(StateError, match=f"{group} was taken over by new, which publishes from"):
        require_not_taken_over(group, broker.client)
    with watched(broker, "third", group, inputs, mark) as watching:
        watching.take_over(ready=True)
        for _ in range(3):
            seen = watching.view(fresh=True)
            assert (seen.final, seen.taken_by) == (False, "new")


def test_a_group_is_not_marked_before_its_successor_is_ready(
    broker: Broker, topics: Callable[..., str], member: Callable[..., Consumer]
) -> None:
    """A group without members may come back as long as nobody is ready to take over."""
    group, inputs, mark = unique("old"), topics("seen"), topics("predictions")
    running = member(group, inputs)
    running.commit(offsets=[Place(inputs, 0, 5)], asynchronous=False)
    running.close()
    with watched(broker, "new", group, inputs, mark) as watching:
        once(watching, lambda seen: not seen.running)
        for _ in range(3):
            assert not watching.view(fresh=True).final
        require_not_taken_over(group, broker.client)


def test_offsets_of_an_open_transaction_are_waited_for(
    broker: Broker, topics: Callable[..., str], member: Callable[..., Consumer]
) -> None:
    """A transaction that a process had not ended when it left decides the final offsets."""
    group, inputs, mark = unique("old"), topics("seen"), topics("predictions")
    running = member(group, inputs)
    running.commit(offsets=[Place(inputs, 0, 5)], asynchronous=False)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": group})
    producer.init_transactions()
    producer.begin_transaction()
    places = [Place(inputs, 0, 8)]
    producer.send_offsets_to_transaction(places, running.consumer_group_metadata())
    running.close()
    with watched(broker, "new", group, inputs, mark) as watching:
        watching.take_over(ready=True)
        seen = once(watching, lambda seen: not seen.running)
        assert (seen.final, seen.offsets) == (False, {TopicPartition(inputs, 0): 5})
        producer.commit_transaction()
        seen = once(watching, lambda seen: seen.final)
        assert seen.offsets == {TopicPartition(inputs, 0): 8}


@pytest.mark.kafka
def test_missing_permissions_are_reported(secured: Secured) -> None:  # noqa: F811 - the fixture
    """Without READ on the group, or on the topic of the mark, the error names both."""
    kafka, old = secured.kafka(), unique("old")
    secured.broker.settle()
    inputs, mark = secured.broker.create(), secured.broker.create()
    with secured.broker.admin() as admin:
        offset = OffsetAndMetadata(5, "", None)
        admin.alter_group_offsets(old, {ClientPartition(inputs, 0): offset})
    of = Application("new", [inputs], "changelog", Settings(), outcomes=False, key=None)
    allow = f"allow READ on group {old} and on topic {mark}"
    with closing(WatchedGroup(of, old, mark, client_settings(kafka, ENVIRON))) as watching:
        with pytest.raises(ConfigError, match=f"GroupAuthorizationFailedError.*{allow}"):
            watching.view()
        secured.allow("abers", ("READ", "GROUP", old), ("READ", "TOPIC", inputs))
        once(watching, lambda seen: seen.offsets)
        watching.take_over(ready=True)
        with pytest.raises(ConfigError, match=f"TopicAuthorizationFailedError.*{allow}"):
            once(watching, lambda seen: seen.final)
        secured.allow("abers", ("READ", "TOPIC", mark))
        assert once(watching, lambda seen: seen.final).taken_by == "new"
