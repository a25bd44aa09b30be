"""History of topics, read from outside the group: merged by time, up to a fixed end."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaProducer
from tests.connectors.kafka.brokers import PATIENCE, Message

from abers.exceptions import ParameterError
from abers_connectors.kafka.topic_history import TimeOrOffset, TopicHistory
from abers_connectors.runtime.transport import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.connectors.kafka.brokers import Broker


@pytest.fixture
def opened(broker: Broker) -> Iterator[Callable[..., TopicHistory]]:
    """Open the history of topics."""
    found: list[TopicHistory] = []

    def open_(*topics: str) -> TopicHistory:
        found.append(TopicHistory(topics, broker.client, timeout=PATIENCE))
        return found[-1]

    yield open_
    for one in found:
        one.close()


def test_all_is_read_in_the_order_of_time(
    opened: Callable[..., TopicHistory],
    topics: Callable[..., str],
    produce: Callable[..., list[int]],
) -> None:
    """In a task a label precedes an observation of its time, and tasks are merged by time."""
    observations, labels = topics("observations", 2), topics("labels", 2)
    produce(
        observations,
        [
            Message(f"s{t}".encode(), partition=p, time=t)
            for t, p in [(1, 0), (5, 1), (7, 0), (3, 0)]
        ],
    )
    produce(
        labels,
        [Message(f"t{t}".encode(), partition=p, time=t) for t, p in [(7, 0), (2, 1), (9, 1)]],
    )
    history = opened(observations, labels)
    found = [*history.read(history.ranges())]
    assert [one.record.value for one in found] == [b"s1", b"t2", b"s5", b"t7", b"s7", b"s3", b"t9"]
    assert [one.partition for one in found] == [0, 1, 1, 0, 0, 0, 1]
    assert [one.which for one in found] == [0, 1, 0, 1, 0, 0, 1]


def test_much_more_than_is_held_is_read_whole(
    opened: Callable[..., TopicHistory],
    topics: Callable[..., str],
    produce: Callable[..., list[int]],
) -> None:
    """However far one input is ahead of the other, nothing is lost or out of order."""
    observations, labels = topics("observations"), topics("labels")
    produce(observations, (Message(b"s", time=t) for t in range(30_000)), linger_ms=50)
    produce(labels, (Message(b"t", time=29_000 + t) for t in range(2_000)), linger_ms=50)
    history = opened(observations, labels)
    found = [*history.read(history.ranges())]
    assert [one.record.timestamp for one in found] == sorted(
        [*range(30_000), *range(29_000, 31_000)]
    )
    assert all(
        one.which == 1
        for one, other in pairwise(found)
        if one.record.timestamp == other.record.timestamp
    )


def test_a_part_is_found_by_times_or_offsets(
    opened: Callable[..., TopicHistory],
    topics: Callable[..., str],
    produce: Callable[..., list[int]],
) -> None:
    """A part is from the first record of a time or later to before another one."""
    topic = topics("observations", 2)
    produce(
        topic, [Message(b"x", partition=p, time=t) for t, p in [(10, 0), (20, 0), (30, 0), (15, 1)]]
    )
    history = opened(topic)

    def ranges(**more: TimeOrOffset) -> list[tuple[int, int]]:
        return [(span.start, span.end) for span in history.ranges(**more).values()]

    assert ranges() == [(0, 3), (0, 1)]
    assert ranges(since=TimeOrOffset(time=20)) == [(1, 3), (1, 1)]
    assert ranges(until=TimeOrOffset(time=20)) == [(0, 1), (0, 1)]
    assert ranges(since=TimeOrOffset(time=11), until=TimeOrOffset(time=16)) == [(1, 1), (0, 1)]
    assert ranges(since=TimeOrOffset(offset=2)) == [(2, 3), (1, 1)]
    assert ranges(until=TimeOrOffset(offset=2)) == [(0, 2), (0, 1)]
    assert ranges(since=TimeOrOffset(time=99)) == [(3, 3), (1, 1)]
    assert [*history.read(history.ranges(since=TimeOrOffset(time=99)))] == []


def test_what_comes_later_is_not_read(
    broker: Broker,
    opened: Callable[..., TopicHistory],
    topics: Callable[..., str],
) -> None:
    """Reading ends where the topics ended, without aborted and open transactions."""
    topic = topics("observations")
    with KafkaProducer(**broker.client, transactional_id=topic) as producer:
        producer.init_transactions()
        for name, end in [(b"a", True), (b"no", False), (b"b", True)]:
            producer.begin_transaction()
            producer.send(topic, name).get()
            (producer.commit_transaction if end else producer.abort_transaction)()
        broker.await_transactions(topic)
        history = opened(topic)
        ranges = history.ranges()
        producer.begin_transaction()
        producer.send(topic, b"late").get()
        assert history.ranges() == ranges == {TopicPartition(topic, 0): OffsetRange(0, 6)}
        assert [one.record.value for one in history.read(ranges)] == [b"a", b"b"]
        producer.commit_transaction()
    assert [one.record.value for one in history.read(ranges)] == [b"a", b"b"]


def test_topics_that_do_not_fit_are_refused(
    opened: Callable[..., TopicHistory], topics: Callable[..., str]
) -> None:
    """Numbers of partitions must be equal, and a topic must exist."""
    observations, labels = topics("observations", 2), topics("labels", 1)
    with pytest.raises(
        ParameterError, match=r"observations-[0-9a-f]* has 2, labels-[0-9a-f]* has 1"
    ):
        opened(observations, labels)
    with pytest.raises(ParameterError, match="there is no topic nowhere"):
        opened("nowhere")


def test_reading_takes_no_part_in_a_group(
    broker: Broker,
    opened: Callable[..., TopicHistory],
    topics: Callable[..., str],
    produce: Callable[..., list[int]],
) -> None:
    """Reading creates no consumer group."""
    topic = topics("observations")
    produce(topic, [Message(b"x")])

    def groups() -> Any:  # noqa: ANN401 - the client's
        with broker.admin() as admin:
            return admin.list_groups()

    before = groups()
    history = opened(topic)
    assert len([*history.read(history.ranges())]) == 1
    assert groups() == before


@pytest.mark.parametrize("late", ["labels", "observations"])
@pytest.mark.parametrize(
    "shape",
    [(1, 30_000, 330), (2, 50_000, 330), (1, 6_000, 10_000)],
    ids=["many", "many in partitions", "large"],
)
def test_records_that_are_late_are_read(
    opened: Callable[..., TopicHistory], broker: Broker, late: str, shape: tuple[int, int, int]
) -> None:
    """All is read in order, although one input is ahead by more than may queue.

    What has arrived of an input while it was paused comes once it is resumed.
    """
    partitions, count, size = shape
    names = {name: broker.create(name, partitions) for name in ("observations", "labels")}
    lag = count * 3 // 5
    for name, topic in names.items():
        value = bytes(size if name == "observations" else 50)
        first = lag if name == late else 0
        records = (Message(value, partition=n % partitions, time=first + n) for n in range(count))
        broker.produce(topic, records, linger_ms=50)
    history = opened(*names.values())
    found = [one.record.timestamp for one in history.read(history.ranges())]
    assert found == sorted([*range(count), *range(lag, count + lag)])
