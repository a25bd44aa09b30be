"""Telemetry for OpenTelemetry: metrics, traces, and their export to a collector.

Producer that continues the traces of records: event in, output out. A record may say in its header
`traceparent` (W3C Trace Context) that its trace is recorded. Each output keeps the headers of its
record. If the trace is recorded, the output gets a span in it, from the begin of the transaction to
its commit, and a `traceparent` that names this span. No other record has a cost beyond a look at
the names of its headers. Spans of an aborted transaction are dropped: what they are about did not
happen.

Export of the metrics and the traces of a service to a collector, by OTLP over HTTP. Both are sent
in threads of their own: a collector that is away costs the loop nothing, and what does not reach it
is lost. The variables of OpenTelemetry's SDK set headers, certificates, time-outs, the sampler and
more.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from itertools import pairwise
from threading import Event, Thread
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import OTEL_METRIC_EXPORT_INTERVAL
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanKind, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import abers
from abers.exceptions import ConfigError
from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.runtime.transport import NO_NOTES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from opentelemetry.trace import Span, Tracer
    from prometheus_client import CollectorRegistry
    from prometheus_client import Metric as Family

    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.runtime.status import Status
    from abers_connectors.runtime.transport import Headers, Producer, TopicPartition

__all__ = ["TracedProducer", "exporting", "metrics_data"]

_CUMULATIVE = AggregationTemporality.CUMULATIVE


def metrics_data(registry: CollectorRegistry, resource: Resource, since: int) -> MetricsData:
    """Return all metrics that have samples; `since` is the start of the counts in nanoseconds.

    A counter has no "_total" at the end of its name, which Prometheus adds when it receives one.
    """
    times = since, time.time_ns()
    metrics = [
        Metric(_name(one), one.documentation, "", _data(one, times))
        for one in registry.collect()
        if one.samples
    ]
    scope = ScopeMetrics(InstrumentationScope("abers", abers.__version__), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _name(family: Family) -> str:
    return f"{family.name}_info" if family.type == "info" else family.name


def _data(family: Family, times: tuple[int, int]) -> Sum | Gauge | Histogram:
    if family.type == "histogram":
        return Histogram([*_histograms(family, times)], _CUMULATIVE)
    points = [NumberDataPoint(one.labels, *times, float(one.value)) for one in family.samples]
    return (
        Sum(points, _CUMULATIVE, is_monotonic=True) if family.type == "counter" else Gauge(points)
    )


def _histograms(family: Family, times: tuple[int, int]) -> Iterator[HistogramDataPoint]:
    """Yield a point for the samples of each histogram: its buckets, its count and its sum."""
    bounds: list[float] = []
    up_to = [0]
    for sample in family.samples:
        if sample.name.endswith("_bucket"):
            bounds.append(float(sample.labels["le"]))
            up_to.append(int(sample.value))
        elif sample.name.endswith("_sum"):
            yield HistogramDataPoint(
                sample.labels,
                *times,
                count=up_to[-1],
                sum=float(sample.value),
                bucket_counts=[after - before for before, after in pairwise(up_to)],
                explicit_bounds=bounds[:-1],  # the last bucket has none
                min=None,  # type: ignore[arg-type] # is not known, and may be left out of a message
                max=None,  # type: ignore[arg-type]
            )
            bounds, up_to = [], [0]


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


_INTERVAL = "60000"  # milliseconds between two exports of metrics, as by the SDK


@contextmanager
def exporting(endpoint: str, kafka: KafkaSection, status: Status) -> Iterator[Tracer]:
    """Export metrics and ended spans in a `with` block, at its end those that are left."""
    given = {"service.name": kafka.application_id, "service.instance.id": kafka.group_instance_id}
    resource = Resource.create(given).merge(OTELResourceDetector().detect())  # as in the variables
    seconds, stopping = _interval(os.environ), Event()
    # The service ends in order or not at all, so no handler at exit is needed.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    spans = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(spans))
    metrics = OTLPMetricExporter(f"{endpoint.rstrip('/')}/v1/metrics")
    registry, since = registry_of(status), time.time_ns()

    # Not the SDK's reader: it would run in the copies of this process that make snapshots, too.
    def export_metrics() -> None:
        going_on = True
        while going_on:
            going_on = not stopping.wait(seconds)
            metrics.export(metrics_data(registry, resource, since))

    thread = Thread(target=export_metrics, name="abers-metrics", daemon=True)
    thread.start()
    try:
        yield provider.get_tracer("abers", abers.__version__)
    finally:
        stopping.set()
        provider.shutdown()
        thread.join()
        metrics.shutdown()


def _interval(environ: Mapping[str, str]) -> float:
    """Return the seconds between two exports of metrics.

    >>> _interval({}), _interval({"OTEL_METRIC_EXPORT_INTERVAL": "500"})
    (60.0, 0.5)
    """
    given = environ.get(OTEL_METRIC_EXPORT_INTERVAL, _INTERVAL)
    if not given.isdecimal() or not int(given):
        msg = f"{OTEL_METRIC_EXPORT_INTERVAL}: {given!r} must be a number of milliseconds above 0"
        raise ConfigError([msg])
    return int(given) / 1000
