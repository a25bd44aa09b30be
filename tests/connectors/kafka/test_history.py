"""What topics held, read from the outside: merged by time, up to where they ended."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaProducer
from tests.connectors.kafka.brokers import Message

from abers.exceptions import ParameterError
from abers_connectors.kafka.history import History, Moment, Span
from abers_connectors.kafka.transport import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.connectors.kafka.brokers import Broker


@pytest.fixture
def opened(broker: Broker) -> Iterator[Callable[..., History]]:
    """Open topics."""
    found: list[History] = []

    def open_(*topics: str) -> History:
        found.append(History(topics, broker.client, patience=20))
        return found[-1]

    yield open_
    for one in found:
        one.close()


def test_all_is_read_in_the_order_of_time(
    opened: Callable[..., History],
    topics: Callable[..., str],
    produce: Callable[..., list[int]],
) -> None:
    """Of a shard a label before an observation of its time, and the shards by time too."""
    seen, told = topics("seen", 2), topics("told", 2)
    produce(
        seen,
        [
            Message(f"s{t}".encode(), partition=p, time=t)
            for t, p in [(1, 0), (5, 1), (7, 0), (3, 0)]
        ],
    )
    produce(
        told, [Message(f"t{t}".encode(), partition=p, time=t) for t, p in [(7, 0), (2, 1), (9, 1)]]
    )
    history = opened(seen, told)
    found = [*history.read(history.part())]
    assert [one.record.value for one in found] == [b"s1", b"t2", b"s5", b"t7", b"s7", b"s3", b"t9"]
    assert [one.shard for one in found] == [0, 1, 1, 0, 0, 0, 1]
    assert [one.which for one in found] == [0, 1, 0, 1, 0, 0, 1]


def test_much_more_than_is_held_is_read_whole(
    opened: Callable[..., History],
    topics: Callable[..., str],
    produce: Callable[..., list[int]],
) -> None:
    """However far one input is ahead of the other, nothing is lost or out of order."""
    seen, told = topics("seen"), topics("told")
    produce(seen, (Message(b"s", time=t) for t in range(30_000)), linger_ms=50)
    produce(told, (Message(b"t", time=29_000 + t) for t in range(2_000)), linger_ms=50)
    history = opened(seen, told)
    found = [*history.read(history.part())]
    assert [one.record.timestamp for one in found] == sorted(
        [*range(30_000), *range(29_000, 31_000)]
    )
    assert all(
        one.which == 1
        for one, other in pairwise(found)
        if one.record.timestamp == other.record.timestamp
    )


def test_a_part_is_found_by_times_or_offsets(
    opened: Callable[..., History],
    topics: Callable[..., str],
    produce: Callable[..., list[int]],
) -> None:
    """From the first record of a time or later, to before one; a time after all is the end."""
    topic = topics("seen", 2)
    produce(
        topic, [Message(b"x", partition=p, time=t) for t, p in [(10, 0), (20, 0), (30, 0), (15, 1)]]
    )
    history = opened(topic)

    def spans(**more: Moment) -> list[tuple[int, int]]:
        return [(span.start, span.end) for span in history.part(**more).values()]

    assert spans() == [(0, 3), (0, 1)]
    assert spans(since=Moment(time=20)) == [(1, 3), (1, 1)]
    assert spans(until=Moment(time=20)) == [(0, 1), (0, 1)]
    assert spans(since=Moment(time=11), until=Moment(time=16)) == [(1, 1), (0, 1)]
    assert spans(since=Moment(offset=2)) == [(2, 3), (1, 1)]
    assert spans(until=Moment(offset=2)) == [(0, 2), (0, 1)]
    assert spans(since=Moment(time=99)) == [(3, 3), (1, 1)]
    assert [*history.read(history.part(since=Moment(time=99)))] == []


def test_what_comes_later_is_not_read(
    broker: Broker,
    opened: Callable[..., History],
    topics: Callable[..., str],
) -> None:
    """Reading ends where the topics ended; aborted and open transactions are not there."""
    topic = topics("seen")
    with KafkaProducer(**broker.client, transactional_id=topic) as producer:
        producer.init_transactions()
        for name, end in [(b"a", True), (b"no", False), (b"b", True)]:
            producer.begin_transaction()
            producer.send(topic, name).get()
            (producer.commit_transaction if end else producer.abort_transaction)()
        history = opened(topic)
        spans = history.part()
        producer.begin_transaction()
        producer.send(topic, b"late").get()
        assert history.part() == spans == {Partition(topic, 0): Span(0, 6)}
        assert [one.record.value for one in history.read(spans)] == [b"a", b"b"]
        producer.commit_transaction()
    assert [one.record.value for one in history.read(spans)] == [b"a", b"b"]


def test_topics_that_do_not_fit_are_refused(
    opened: Callable[..., History], topics: Callable[..., str]
) -> None:
    """Partitions must be as many, and a topic must be there."""
    seen, told = topics("seen", 2), topics("told", 1)
    with pytest.raises(ParameterError, match=r"seen-[0-9a-f]* has 2, told-[0-9a-f]* has 1"):
        opened(seen, told)
    with pytest.raises(ParameterError, match="there is no topic nowhere"):
        opened("nowhere")


def test_reading_takes_no_part_in_a_group(
    broker: Broker,
    opened: Callable[..., History],
    topics: Callable[..., str],
    produce: Callable[..., list[int]],
) -> None:
    """No group is there afterwards that was not there before."""
    topic = topics("seen")
    produce(topic, [Message(b"x")])

    def groups() -> Any:  # noqa: ANN401 - the client's
        with broker.admin() as admin:
            return admin.list_groups()

    before = groups()
    history = opened(topic)
    assert len([*history.read(history.part())]) == 1
    assert groups() == before
