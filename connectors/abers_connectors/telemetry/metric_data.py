"""The metrics of a service as OpenTelemetry has them, from the same registry as Prometheus'."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING

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
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

import abers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.resources import Resource
    from prometheus_client import CollectorRegistry
    from prometheus_client import Metric as Family

__all__ = ["metrics_data"]

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
