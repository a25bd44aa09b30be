"""Export of the metrics and the traces of a service to a collector, by OTLP over HTTP.

Both are sent in threads of their own: a collector that is away costs the loop nothing, and what
does not reach it is lost. The variables of OpenTelemetry's SDK set headers, certificates,
time-outs, the sampler and more.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import OTEL_METRIC_EXPORT_INTERVAL
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import abers
from abers.exceptions import ConfigError
from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.telemetry.metric_data import metrics_data

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.trace import Tracer

    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.runtime.status import Status

__all__ = ["exporting"]

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
