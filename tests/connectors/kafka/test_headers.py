"""Records with headers of every shape, on each client: they pass, or are dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from confluent_kafka import Producer
from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.brokers import Message
from tests.connectors.kafka.clients import CLIENTS, on_each_classic_client, on_each_client
from tests.connectors.kafka.joining import Reading, member, settled, writer
from tests.connectors.kafka.streams import observations, written

from abers_connectors.kafka.topic_history import TopicHistory
from abers_connectors.runtime.transport import BadHeaders, TopicPartition

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.kafka.client import PartitionReader
    from abers_connectors.process import Watchdog
    from abers_connectors.runtime.transport import Headers

VALID: list[Headers] = [
    [],
    [("null", None)],
    [("", b"no name")],
    [("", None), ("", b"")],
    [("twice", b"1"), ("twice", None), ("twice", b"1")],
    [("é", b"\xff\0")],
    [("traceparent", None), ("tracestate", None)],
    [("traceparent", b"00-" + b"\xff" * 60), ("content-type", None), ("ce_id", None)],
    [("many", b"x")] * 300,
]
"""Headers that every client can carry."""


class Raw(str):
    """A header's name as kafka-python writes it: of any bytes."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        """Return the bytes of the characters."""
        return super().encode("latin-1")


INVALID: list[Headers] = [
    [(Raw("\xff"), b"1")],
    [("fine", b"1"), (Raw("a\xc3"), b"2"), (Raw("\xed\xa0\x80"), b""), ("fine", b"3")],
    [(Raw("\xfe\xff"), b"")] * 300,
]
"""Headers with a name that is not UTF-8."""


def write(broker: Broker, topic: str, messages: list[Message], partition: int = 0) -> None:
    """Write messages one after the other, by the client that can write their headers."""
    client = Producer({"bootstrap.servers": broker.bootstrap})
    for one in messages:
        if any(type(name) is Raw for name, _ in one.headers):
            broker.produce(topic, [one._replace(partition=partition)], compression_type="gzip")
            continue
        client.produce(
            topic,
            one.value,
            one.key,
            partition,
            timestamp=one.time or 0,
            headers=[*one.headers],
        )
        client.flush()


def mixed(broker: Broker, topic: str) -> list[Any]:
    """Write headers of all shapes, and return what a client is to return."""
    messages, expected = list[Message](), list[Any]()
    for valid, invalid in zip(VALID, INVALID * 3, strict=True):
        messages += [Message(b"x", headers=one) for one in (valid, invalid)]
        expected += [valid, BadHeaders()]
    write(broker, topic, messages)
    return expected


def found_in(records: list[Any]) -> list[Any]:
    """Return the headers of records as lists; those that are lost are of their own type."""
    return [one.headers if type(one.headers) is BadHeaders else [*one.headers] for one in records]


@on_each_client
def test_a_consumer_returns_records_with_headers_of_any_shape(
    client: str, broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A name that is not UTF-8 costs a record its headers, and no other record anything."""
    topic = topics()
    expected = mixed(broker, topic)
    group = member(broker, watchdog, "a", topic, client=client)
    settled(group, owned=1)
    here = TopicPartition(topic, 0)
    reading, records = Reading(group, {here: 0}), list[Any]()
    while len(records) < len(expected):
        records += reading.poll(0.1, 7).get(here, ())
    assert [one.offset for one in records] == [*range(len(expected))]
    assert found_in(records) == expected
    assert [*map(type, found_in(records))] == [*map(type, expected)]
    group.close()


def test_all_other_readers_do_too(
    broker: Broker, topics: Callable[..., str], reader: Callable[[str], PartitionReader]
) -> None:
    """So do the reader of changelogs, and the history that is replayed and sampled."""
    topic = topics()
    expected = mixed(broker, topic)
    here = TopicPartition(topic, 0)
    batches = reader(topic).read(here, 0, len(expected))
    assert found_in([one for batch in batches for one in batch]) == expected
    history = TopicHistory([topic], broker.client, timeout=60)
    assert found_in([one.record for one in history.read(history.ranges())]) == expected
    history.close()


@on_each_classic_client
def test_a_producer_writes_headers_of_any_shape(
    client: str, broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A null value stays null, and is not an empty one."""
    topic = topics()
    group = member(broker, watchdog, "a", topic, client=client)
    (membership,) = settled(group, owned=1)
    producer = writer(broker, watchdog, topic, client=client)
    producer.begin()
    for headers in VALID:
        producer.send(TopicPartition(topic, 0), None, b"x", headers)
    producer.commit({}, membership.group_metadata)
    producer.close()
    group.close()
    assert [one.headers for one in broker.consume(topic)] == VALID


@on_each_classic_client
def test_a_service_of_records_with_headers_of_any_shape(
    client: str,
    broker: Broker,
    tmp_path: Path,
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    """Predictions keep headers; a record whose headers cannot be read is a dead letter."""
    served = Served(broker, tmp_path, start)
    topic = served.topics["observations"]
    keys = "\n".join(f'kafka.{key} = "{value}"' for key, value in CLIENTS[client].items())
    served.configure(f"{keys}\noutput.max_dead_letter_ratio = 1.0")
    shapes = [one for pair in zip(VALID, INVALID * 3, strict=True) for one in pair]
    messages = [
        one._replace(headers=shape)
        for one, shape in zip(written(observations(len(shapes), PARTITIONS)), shapes, strict=True)
    ]
    write(broker, topic, messages)
    served.serve()
    kept = [[one for one in shape if one[0] not in {"content-type", "ce_id"}] for shape in VALID]
    assert [one.headers for one in broker.consume(served.topics["predictions"])] == kept
    dead = [msgspec.json.decode(one.value) for one in broker.consume(served.topics["dead_letters"])]
    assert [(one["reason"], one["offset"]) for one in dead] == [
        ("not-utf8", row) for row in range(1, len(shapes), 2)
    ]
    assert {one["where"] for one in dead} == {f"{topic}[0]@{row}" for row in range(1, 18, 2)}
    assert "the name of a header is not UTF-8" in dead[0]["detail"]
    with served.log() as log:
        assert log.tasks()[0].processor.counters["predictions"] == len(VALID)
