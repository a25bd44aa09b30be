"""Traces continue from records to outputs, on a real broker and to a real collector."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.joining import member, settled, writer
from tests.connectors.telemetry.collector import collecting

from abers_connectors.config.sections import KafkaSection
from abers_connectors.runtime.status import Status
from abers_connectors.runtime.transport import TopicPartition, TransactionError
from abers_connectors.telemetry import TracedProducer, exporting

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.process import Watchdog

KAFKA = KafkaSection(bootstrap_servers=("b:1",), observations="in", predictions="out")
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
RECORDED, OTHER = f"00-{TRACE}-{SPAN}-01".encode(), f"00-{TRACE}-{SPAN}-00".encode()
UNCHANGED: list[list[tuple[str, bytes | None]]] = [
    [],
    [("traceparent", None), ("tracestate", None), ("", None)],
    [("trace", RECORDED)],
    [("traceparent", OTHER)],
    [("traceparent", RECORDED), ("traceparent", OTHER)],  # the last one counts
    [("traceparent", b"")],
    [("traceparent", b"00-1")],
    [("traceparent", b"\xff" * 55)],
    [("traceparent", RECORDED.replace(TRACE.encode(), b"0" * 32))],
]


def test_only_a_recorded_trace_is_continued(
    broker: Broker, watchdog: Watchdog, topics: Callable[..., str]
) -> None:
    """Its output has a span of the same trace; all other headers stay as they are."""
    topic, dead = topics("out"), topics("dead")
    traced = [("a", None), ("traceparent", RECORDED), ("tracestate", b"x=y")]
    with (
        collecting() as collector,
        exporting(collector.url, KAFKA, Status(60.0)) as tracer,
        closing(TracedProducer(writer(broker, watchdog, topic), tracer, {topic})) as producer,
    ):
        producer.begin()
        for headers in UNCHANGED:
            producer.send(TopicPartition(topic, 0), None, b"a", headers)
        producer.send(TopicPartition(dead, 0), None, b"a", traced)
        producer.commit({}, f"group-of-{topic}")
        producer.begin()
        producer.send(TopicPartition(topic, 0), None, b"a", traced)
        producer.commit({}, f"group-of-{topic}")
    assert [one.headers for one in broker.consume(dead)] == [traced]
    *others, last = [one.headers for one in broker.consume(topic)]
    assert others == UNCHANGED
    (span,) = collector.sent().values()
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, SPAN)
    assert (span.name, span.trace_state) == (f"send {topic}", "x=y")
    own = f"00-{TRACE}-{span.span_id.hex()}-01".encode()
    assert last == [("a", None), ("traceparent", own), ("tracestate", b"x=y")]
    (transaction,) = collector.transactions()
    assert [one.span_id for one in transaction.links] == [span.span_id]
    assert not transaction.parent_span_id
    assert transaction.start_time_unix_nano == span.start_time_unix_nano
    assert span.start_time_unix_nano < span.end_time_unix_nano <= transaction.end_time_unix_nano


def test_an_aborted_transaction_has_no_spans(
    broker: Broker, watchdog: Watchdog, topics: Callable[..., str]
) -> None:
    """Only the attempt that is committed is exported, and its span is the one in the output."""
    topic = topics("observations", 2)
    first = member(broker, watchdog, "a", topic)
    (before,) = settled(first, owned=2)
    second = member(broker, watchdog, "b", topic)
    after, _ = settled(first, second, owned=2)
    with (
        collecting() as collector,
        exporting(collector.url, KAFKA, Status(60.0)) as tracer,
        closing(TracedProducer(writer(broker, watchdog, topic), tracer, {topic})) as producer,
    ):
        producer.begin()
        producer.send(TopicPartition(topic, 1), None, b"a", [("traceparent", RECORDED)])
        with pytest.raises(TransactionError):
            producer.commit({TopicPartition(topic, 1): 7}, before.group_metadata)
        producer.begin()
        producer.send(TopicPartition(topic, 0), None, b"a", [("traceparent", RECORDED)])
        producer.commit({TopicPartition(topic, 0): 1}, after.group_metadata)
    for one in (first, second):
        one.close()
    (record,) = broker.consume(topic)
    (number,) = collector.sent()
    assert record.headers == [("traceparent", f"00-{TRACE}-{number}-01".encode())]
    assert len(collector.transactions()) == 1
