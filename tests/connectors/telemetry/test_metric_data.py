"""Metrics for OpenTelemetry, against the samples of the same registry."""

from __future__ import annotations

import time
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.metrics.export import Gauge, Histogram, Metric, NumberDataPoint, Sum
from opentelemetry.sdk.resources import Resource
from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served

from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.runtime.status import Status
from abers_connectors.telemetry import metrics_data

if TYPE_CHECKING:
    from collections.abc import Iterator

SINCE = 1_700_000_000_000_000_000
# They differ from one reading of the registry to the next.
MOVING = ("process_", "python_", "abers_event_time_lag_seconds")


def busy() -> Status:
    """Return the status of a service that has predicted, learned and committed."""
    status, task = Status(60.0), Served()
    status.assign([("in", 0)])
    status.restored(task)
    template = '{"id": "a%d", "time": %d, "model": "m", %s}'
    records = [
        Read((template % (n, 1_700_000_000_000 + n, given)).encode())
        for given in ('"score": 0.5', '"label": 1')
        for n in range(20)
    ]
    status.batch_committed(task, task.take(*records, Read(b"{")))
    for seconds in (0.001, 0.03, 99.0):
        status.transaction_committed(seconds)
    status.update_evidence([task])
    return status


def samples(metric: Metric) -> Iterator[tuple[str, dict[str, Any], float]]:
    """Yield the samples of Prometheus that a metric stands for."""
    if not isinstance(metric.data, Histogram):
        ending = "_total" if isinstance(metric.data, Sum) else ""
        for point in metric.data.data_points:
            assert isinstance(point, NumberDataPoint)
            yield f"{metric.name}{ending}", dict(point.attributes or {}), point.value
        return
    for row in metric.data.data_points:
        labels = dict(row.attributes or {})
        names = [*map(str, row.explicit_bounds), "+Inf"]
        for name, value in zip(names, accumulate(row.bucket_counts), strict=True):
            yield f"{metric.name}_bucket", {**labels, "le": name}, value
        yield f"{metric.name}_count", labels, row.count
        yield f"{metric.name}_sum", labels, row.sum


def test_all_samples_of_prometheus() -> None:
    """Each sample has its name, its labels and its value, and no other is there."""
    registry = registry_of(busy())
    before = time.time_ns()
    data = metrics_data(registry, Resource({"service.name": "app"}), SINCE)
    (of_resource,) = data.resource_metrics
    assert of_resource.resource.attributes["service.name"] == "app"
    (scope,) = of_resource.scope_metrics
    found = [one for metric in scope.metrics for one in samples(metric)]
    expected = [
        (one.name, one.labels, float(one.value))
        for family in registry.collect()
        for one in family.samples
    ]
    assert len(found) == len(expected)
    for (name, labels, value), other in zip(found, expected, strict=True):
        assert (name, labels) == other[:2]
        if not name.startswith(MOVING):
            assert float(value) == pytest.approx(other[2], nan_ok=True), name
    mine = {"application": "abers", "process": "0"}
    assert ("abers_predictions_total", mine, 20.0) in found
    assert ("abers_commit_seconds_bucket", {**mine, "le": "0.05"}, 2) in found
    for metric in scope.metrics:
        for point in metric.data.data_points:
            assert point.start_time_unix_nano == SINCE
            assert point.time_unix_nano >= before


def test_kinds() -> None:
    """Counters and histograms are cumulative, a counter never falls, and all else is a gauge."""
    data = metrics_data(registry_of(busy()), Resource({}), SINCE)
    (scope,) = data.resource_metrics[0].scope_metrics
    kinds = {one.name: one.data for one in scope.metrics}
    counter, histogram = kinds["abers_records"], kinds["abers_commit_seconds"]
    assert isinstance(counter, Sum)
    assert isinstance(histogram, Histogram)
    assert counter.is_monotonic
    assert counter.aggregation_temporality == histogram.aggregation_temporality == 2
    assert isinstance(kinds["abers_pending_observations"], Gauge)
    assert isinstance(kinds["abers_build_info"], Gauge)
