"""All metrics of a service, from definitions.csv, in the order in which they are written.

Counters count what this process has committed since it started. Those of calibration are sums that
can be added up over processes and subtracted over time, so Prometheus computes any score of any
window from them. Means and calibration errors cannot be added up, so they are left out. The gauges
of monitors are defined by `Monitor.measures`.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Sample,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import Metric

    from abers_connectors.metrics.labels import LabelCache

__all__ = ["METRICS", "Definition", "Row"]

Row: TypeAlias = tuple[tuple[str, ...], Any]
"""Values of the labels, and a number; of a histogram buckets and a sum, of an info its labels."""

_FAMILIES: dict[str, Any] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
    "info": InfoMetricFamily,
}
_SUFFIXES = {"counter": "_total", "gauge": ""}  # of samples that are one number


class Definition(NamedTuple):
    """Definition of a metric."""

    kind: str  # a key of _FAMILIES
    name: str  # without the suffix of its samples
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    sums: str = ""  # table of `ModelTotals` with its samples; empty if it is not of calibration

    def family(self, rows: Iterable[Row], cache: LabelCache) -> Metric:
        """Return the metric with its samples."""
        family: Any = _FAMILIES[self.kind](self.name, self.help, labels=self.labels)
        if self.kind in _SUFFIXES:
            name, names, of = f"{family.name}{_SUFFIXES[self.kind]}", self.labels, cache.of
            family.samples = [Sample(name, of(names, values), number) for values, number in rows]
            found: Metric = family
            return found
        for labels, value in rows:
            family.add_metric(labels, *(value if self.kind == "histogram" else (value,)))
        return cache.complete(family)


def _read() -> tuple[Definition, ...]:
    text = (files("abers_connectors.metrics") / "definitions.csv").read_text("utf-8")
    rows = csv.DictReader(text.splitlines())
    return tuple(Definition(**row | {"labels": (*row["labels"].split(),)}) for row in rows)


METRICS = _read()
"""All metrics."""
