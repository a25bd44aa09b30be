"""The metrics of a service, as Prometheus asks for them.

Governing rule: nothing is kept here; each scrape makes all samples of one view
of the status, so that counting costs the loop no more than adding numbers, and
no label has values without bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.registry import Collector

import abers
from abers_connectors.http.calibration import calibration
from abers_connectors.kafka.status import INPUTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client import Metric

    from abers_connectors.kafka.status import Counts, Histogram, Status, View

__all__ = ["registry_of"]

_LN10 = math.log(10.0)
_RESULTS = ("saved", "failed")
_POSTED = ("sent", "failed", "dropped")


def registry_of(status: Status) -> CollectorRegistry:
    """Make a registry of what a service tells, and of its process.

    Parameters
    ----------
    status
        Of the service.

    Returns
    -------
    CollectorRegistry
        It.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Service(status))
    ProcessCollector(registry=registry)
    return registry


class _Service(Collector):
    def __init__(self, status: Status) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        """Name nothing beforehand: no other collector has these names."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Give all samples of this moment."""
        view = self._status.view()
        yield InfoMetricFamily(
            "abers_build",
            "What is running.",
            {"version": abers.__version__, "backend": abers.backend()},
        )
        yield from _counters(view.counts)
        yield from _histograms(view.counts)
        yield from _gauges(view)
        yield from calibration(view.counts.tallies)
        yield from _evidence(view)


def _counters(counts: Counts) -> Iterator[Metric]:
    zero = dict.fromkeys(INPUTS, 0)
    yield _by("abers_records", "Records read and applied.", "input", zero | counts.records)
    yield _one("abers_predictions", "Predictions written.", counts.written["predictions"])
    yield _one("abers_outcomes", "Outcomes written.", counts.written["outcomes"])
    yield _by("abers_dead_letters", "Records that could not be used.", "reason", counts.dead)
    yield _one("abers_tombstones", "Records without a value, passed over.", counts.tombstones)
    yield _one("abers_commits", "Transactions committed.", counts.commits)
    yield _one("abers_aborts", "Transactions given up.", counts.aborts)
    yield _one("abers_assignments", "Assignments of partitions.", counts.assignments)
    yield _one("abers_restores", "Shards restored.", counts.restores)
    results = dict.fromkeys(_RESULTS, 0) | counts.snapshots
    yield _by("abers_snapshots", "Snapshots, by what became of them.", "result", results)
    posted = dict.fromkeys(_POSTED, 0) | counts.webhook
    yield _by(
        "abers_webhook", "Alarms told to a web hook, by what became of them.", "result", posted
    )


def _histograms(counts: Counts) -> Iterator[Metric]:
    yield _histogram(
        "abers_commit_seconds",
        "From the beginning of a transaction to its commit.",
        counts.commit_seconds,
    )
    yield _histogram(
        "abers_label_delay_seconds",
        "How much later than its observation a label is, in event time.",
        counts.label_delay,
    )


def _gauges(view: View) -> Iterator[Metric]:
    pending = _gauge("abers_pending_labels", "Observations that wait for a label.", "partition")
    early = _gauge("abers_early_labels", "Labels that wait for an observation.", "partition")
    behind = _gauge(
        "abers_event_time_lag_seconds", "The age of the newest event of a shard.", "partition"
    )
    for number, gauge in view.gauges.items():
        pending.add_metric([str(number)], gauge.pending)
        early.add_metric([str(number)], gauge.early)
        if gauge.clock is not None:
            behind.add_metric([str(number)], (view.now - gauge.clock) / 1000)
    lag = _gauge("abers_consumer_lag_records", "Records still to be read.", "topic", "partition")
    for (topic, number), records in view.lags.items():
        lag.add_metric([topic, str(number)], records)
    yield from (pending, early, behind, lag)
    yield _whole("abers_assigned_partitions", "Partitions assigned.", len(view.assigned))
    yield _whole("abers_restored_partitions", "Partitions that are served.", len(view.restored))


def _evidence(view: View) -> Iterator[Metric]:
    tests = {(model, one.name): one for model, many in view.evidence.items() for one in many}
    alarms = CounterMetricFamily(
        "abers_alarm_episodes", "Alarms, one an episode.", labels=["model", "test"]
    )
    for key, count in (dict.fromkeys(tests, 0) | view.counts.alarms).items():
        alarms.add_metric(key, count)
    ringing = _gauge("abers_alarm_ringing", "Whether an episode is open.", "model", "test")
    now = _gauge("abers_evidence_log10", "Evidence against the predictions.", "model", "test")
    line = _gauge("abers_evidence_line_log10", "The evidence that rings.", "model", "test")
    for key, one in tests.items():
        ringing.add_metric(key, one.ringing)
        now.add_metric(key, one.log_wealth / _LN10)
        line.add_metric(key, one.line / _LN10)
    yield from (alarms, ringing, now, line)


def _one(name: str, what: str, value: float) -> Metric:
    return CounterMetricFamily(name, what, value)


def _by(name: str, what: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, what, labels=[label])
    for key in sorted(values):
        family.add_metric([key], values[key])
    return family


def _gauge(name: str, what: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, what, labels=labels)


def _whole(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(name, what, value)


def _histogram(name: str, what: str, seen: Histogram) -> Metric:
    return HistogramMetricFamily(name, what, buckets=seen.cumulated(), sum_value=seen.sum)
