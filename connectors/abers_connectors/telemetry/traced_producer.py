"""Producer that continues the traces of records: event in, output out.

A record may say in its header `traceparent` (W3C Trace Context) that its trace is recorded. Each
output keeps the headers of its record. If the trace is recorded, the output gets a span in it, from
the begin of the transaction to its commit, and a `traceparent` that names this span. No other
record has a cost beyond a look at the names of its headers. Spans of an aborted transaction are
dropped: what they are about did not happen.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from opentelemetry.trace import Link, SpanKind, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from abers_connectors.runtime.transport import NO_NOTES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from opentelemetry.trace import Span, Tracer

    from abers_connectors.runtime.transport import Headers, Producer, TopicPartition

__all__ = ["TracedProducer"]

_PARENT, _STATE = "traceparent", "tracestate"
_FLAG = 54  # index of the digit; its lowest bit says that a trace is recorded
_ODD = b"13579bdf"
_SYSTEM = {"messaging.system": "kafka"}
_context = TraceContextTextMapPropagator()


class TracedProducer:
    """A `runtime.transport.Producer` that traces what another writes to some topics."""

    def __init__(self, producer: Producer, tracer: Tracer, topics: Collection[str]) -> None:
        self._producer, self._tracer, self._topics = producer, tracer, topics
        self._began = 0  # nanoseconds since 1970
        self._spans: list[Span] = []  # of the open transaction

    def begin(self) -> None:
        """Begin a transaction."""
        self._spans, self._began = [], time.time_ns()
        self._producer.begin()

    def send(
        self,
        to: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> None:
        """Send a record in the open transaction."""
        if headers and to.topic in self._topics and _is_recorded(headers):
            headers = self._continued(to, headers)
        self._producer.send(to, key, value, headers, timestamp)

    def send_tracked(self, to: TopicPartition, value: bytes) -> Callable[[], int]:
        """Send a value in the open transaction; the result returns its offset after the commit."""
        return self._producer.send_tracked(to, value)

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        group_metadata: object,
        notes: Mapping[TopicPartition, str] = NO_NOTES,
    ) -> None:
        """Commit the transaction together with input offsets, and end its spans."""
        self._producer.commit(offsets, group_metadata, notes)
        if not self._spans:
            return
        for span in self._spans:
            span.end()
        links = [Link(span.get_span_context()) for span in self._spans]
        self._tracer.start_span(
            "transaction", attributes=_SYSTEM, links=links, start_time=self._began
        ).end()

    def abort(self) -> None:
        """Abort the open transaction."""
        self._producer.abort()

    def leaderless(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions without a leader, as of the last metadata; never waits."""
        return self._producer.leaderless(partitions)

    def close(self) -> None:
        """Close the client; the broker aborts an open transaction."""
        self._producer.close()

    def _continued(self, to: TopicPartition, headers: Headers) -> Headers:
        """Begin a span, and return the headers with its `traceparent`."""
        given = {name: (raw or b"").decode("latin-1") for name, raw in headers}
        parent = _context.extract(
            {name: given[name] for name in (_PARENT, _STATE) if name in given}
        )
        if not get_current_span(parent).get_span_context().is_valid:
            return headers
        span = self._tracer.start_span(
            f"send {to.topic}",
            parent,
            SpanKind.PRODUCER,
            _SYSTEM | {"messaging.destination.name": to.topic},
            start_time=self._began,
        )
        self._spans.append(span)
        carrier: dict[str, str] = {}
        _context.inject(carrier, set_span_in_context(span))
        own = carrier[_PARENT].encode()
        return [(name, own if name == _PARENT else raw) for name, raw in headers]


def _is_recorded(headers: Headers) -> bool:
    """Return whether a header says that a trace is recorded; the last counts.

    >>> trace = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
    >>> [_is_recorded([("traceparent", trace + flags)]) for flags in (b"01", b"00", b"")]
    [True, False, False]
    """
    found = False
    for name, raw in headers:  # of every record, so it is quick
        if name == _PARENT:
            found = raw is not None and len(raw) > _FLAG and raw[_FLAG] in _ODD
    return found
