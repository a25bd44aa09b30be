from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.joining import member, settled, writer

from abers.exceptions import BrokerError
from abers_connectors.runtime.transport import TopicPartition, TransactionError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.process import Watchdog


class Failing:
    """A client whose commit fails before it succeeds."""

    def __init__(self, client: object, *errors: KafkaError) -> None:
        """Take the client, and the errors of its first commits."""
        self._client, self._errors = client, [*errors]
        self.commits = 0

    def __getattr__(self, name: str) -> object:
        """Return a part of the client."""
        return getattr(self._client, name)

    def commit_transaction(self) -> None:
        """Raise the next error, or commit."""
        self.commits += 1
        if self._errors:
            raise KafkaException(self._errors.pop(0))
        self._client.commit_transaction()  # type: ignore[attr-defined]


def test_a_commit_without_an_answer_is_repeated(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A commit that timed out is neither assumed nor given up: it goes on until it is answered."""
    topic = topics()
    group = member(broker, watchdog, "a", topic, client="librdkafka")
    (owner,) = settled(group, owned=1)
    producer = writer(broker, watchdog, topic, client="librdkafka")
    unclear = KafkaError(KafkaError._TIMED_OUT, "no answer", retriable=True)  # noqa: SLF001
    producer._producer = failing = Failing(producer._producer, unclear, unclear)  # noqa: SLF001
    producer.begin()
    offset = producer.send_tracked(TopicPartition(topic, 0), b"once")
    producer.commit({TopicPartition(topic, 0): 0}, owner.group_metadata)
    assert (failing.commits, offset()) == (3, 0)
    assert [one.value for one in broker.consume(topic)] == [b"once"]
    producer.close()
    group.close()


def test_a_commit_that_fails_otherwise_ends_the_process(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """An error that says nothing of an abort is one after which the outcome is unknown."""
    topic = topics()
    group = member(broker, watchdog, "a", topic, client="librdkafka")
    (owner,) = settled(group, owned=1)
    producer = writer(broker, watchdog, topic, client="librdkafka")
    strange = KafkaError(KafkaError._STATE, "a strange state")  # noqa: SLF001
    producer._producer = Failing(producer._producer, strange)  # noqa: SLF001
    producer.begin()
    with pytest.raises(BrokerError, match=r"^committing: a strange state \(_STATE\)$"):
        producer.commit({TopicPartition(topic, 0): 0}, owner.group_metadata)
    producer.close()
    group.close()


def test_the_first_millisecond_is_a_time(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A record of time 0 gets the next one, and not the time of now, as 0 means to librdkafka."""
    topic = topics()
    group = member(broker, watchdog, "a", topic, client="librdkafka")
    (owner,) = settled(group, owned=1)
    producer = writer(broker, watchdog, topic, client="librdkafka")
    producer.begin()
    for time in (0, 1, 2):
        producer.send(TopicPartition(topic, 0), None, b"x", timestamp=time)
    producer.commit({TopicPartition(topic, 0): 0}, owner.group_metadata)
    assert [one.timestamp for one in broker.consume(topic)] == [1, 1, 2]
    producer.close()
    group.close()


def test_a_lost_connection_makes_a_new_client(
    brokers: Callable[..., Broker], watchdog: Watchdog, tmp_path: Path
) -> None:
    """After the broker was killed and is back, the last transaction is repaired once."""
    own = brokers("--dir", tmp_path)
    topic = own.create()
    here = TopicPartition(topic, 0)
    group = member(own, watchdog, "a", topic, client="librdkafka")
    producer = writer(own, watchdog, topic, client="librdkafka")

    def commit(value: bytes) -> None:
        while (owner := group.membership()).group_metadata is None:
            group.poll(0.05, 1)
        producer.begin()
        producer.send(here, None, value)
        producer.commit({here: 0}, owner.group_metadata)

    settled(group, owned=1)
    commit(b"one")
    first = producer._producer  # noqa: SLF001
    commit(b"two")
    assert producer._producer is first  # noqa: SLF001
    assert own.process is not None
    own.process.kill()
    own.process.wait()
    own = brokers("--dir", tmp_path)
    commit(b"three")
    second = producer._producer  # noqa: SLF001
    assert second is not first
    commit(b"four")
    assert producer._producer is second  # noqa: SLF001
    assert [one.value for one in own.consume(topic)] == [b"one", b"two", b"three", b"four"]
    producer.close()
    group.close()


@pytest.mark.long
def test_a_commit_that_a_silent_broker_does_not_answer(
    brokers: Callable[..., Broker], watchdog: Watchdog
) -> None:
    """It is waited for past the time-out of a request, and ends as the brokers decided."""
    own = brokers()
    topic = own.create()
    here = TopicPartition(topic, 0)
    group = member(own, watchdog, "a", topic, client="librdkafka")
    (owner,) = settled(group, owned=1)
    producer = writer(own, watchdog, topic, timeout=60, client="librdkafka")
    ends: list[str] = []

    def commit() -> None:
        try:
            producer.commit({here: 1}, owner.group_metadata)
        except TransactionError:
            ends.append("aborted")
        else:
            ends.append("committed")

    producer.begin()
    producer.send(here, None, b"once")
    producer._producer.flush()  # noqa: SLF001 - the record is written, and the commit is not
    committing = threading.Thread(target=commit, daemon=True)
    with own.hanging():
        committing.start()
        committing.join(15)  # longer than a request may take
        assert committing.is_alive()
    committing.join(PATIENCE)
    assert ends in (["committed"], ["aborted"])
    written = [one.value for one in own.consume(topic)]
    assert written == ([b"once"] if ends == ["committed"] else [])
    producer.begin()
    producer.send(here, None, b"more")
    producer.commit({here: 2}, group.membership().group_metadata or owner.group_metadata)
    assert [one.value for one in own.consume(topic)] == [*written, b"more"]
    producer.close()
    group.close()
