"""Metrics of a service, as Prometheus scrapes them.

All metrics of a service, from definitions.csv, in the order in which they are written. Counters
count what this process has committed since it started. Those of calibration are sums that can be
added up over processes and subtracted over time, so Prometheus computes any score of any window
from them. Means and calibration errors cannot be added up, so they are left out. The gauges of
monitors are defined by `Monitor.measures`.

Nothing is kept here: each scrape makes all samples of one view of the status, so counting costs the
loop no more than adding numbers. No label has an unbounded number of values. Every sample, also of
the process, says which application and which process of it counted: rules add up by these labels.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Sample,
)
from prometheus_client.registry import Collector

import abers
from abers.monitoring import ANSWERS, TESTS, answer_numbers
from abers.monitoring.answers import answers_of
from abers_connectors.process import memory_limit
from abers_connectors.runtime.models import BINS, PIT_BOUNDS, WIDTH_BOUNDS
from abers_connectors.runtime.status import INPUTS, ROUTER, TASKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from prometheus_client import Metric

    from abers.monitoring import Number
    from abers.monitoring.answers import Sums
    from abers_connectors.runtime.models import ModelTotals
    from abers_connectors.runtime.status import Histogram, Status, StatusView

__all__ = ["METRICS", "AnswerCache", "LabelCache", "Labels", "registry_of"]

_Key: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]  # names and values

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Labels(dict[str, str]):
    r"""Labels of a sample.

    Attributes
    ----------
    text
        The labels as both formats have them; empty without labels.

    Examples
    --------
    >>> Labels({"view": "raw", "model": 'a "b"'}).text
    '{model="a \\"b\\"",view="raw"}'
    """

    __slots__ = ("text",)

    def __init__(self, labels: dict[str, str]) -> None:
        super().__init__(labels)
        pairs = [f'{name}="{labels[name].translate(_ESCAPES)}"' for name in sorted(labels)]
        self.text = f"{{{','.join(pairs)}}}" if pairs else ""


class LabelCache:
    """Labels that the last scrape used, and those of this scrape: no others are kept.

    Parameters
    ----------
    common
        Labels of all samples.

    Examples
    --------
    >>> cache = LabelCache({"process": "0"})
    >>> first = cache.of(("model",), ("a",))
    >>> cache.next_scrape()
    >>> cache.of(("model",), ("a",)) is first
    True
    >>> first.text
    '{model="a",process="0"}'
    """

    def __init__(self, common: Mapping[str, str]) -> None:
        self._common = dict(common)
        self._last: dict[_Key, Labels] = {}
        self._now: dict[_Key, Labels] = {}

    def next_scrape(self) -> None:
        """Forget the labels that the last scrape did not use."""
        self._last, self._now = self._now, {}

    def of(self, names: tuple[str, ...], values: tuple[str, ...]) -> Labels:
        """Return the labels with these names and values, and the common labels.

        A label without a value is left out, which means the same to Prometheus.
        """
        key = (names, values)
        found = self._now.get(key)
        if found is None:
            known = self._last.get(key)
            if known is None:
                given = {name: one for name, one in zip(names, values, strict=True) if one}
                known = Labels(given | self._common)
            found = self._now[key] = known
        return found

    def complete(self, metric: Metric) -> Metric:
        """Add the common labels to all samples of a metric, and return it."""
        metric.samples = [
            one._replace(labels=self.of((*one.labels,), (*one.labels.values(),)))
            for one in metric.samples
        ]
        return metric


class _Known(NamedTuple):
    """Samples of a model by metric, and the sums that they were made of."""

    sums: Sequence[Sums]
    samples: dict[str, list[Sample]]


class AnswerCache:
    """Samples of the last scrape; no others are kept.

    Answers take about half a millisecond a model, so they are made where a scrape is, and not in
    the loop of the stream, which only copies the sums behind them.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def metrics(self, sums: Mapping[str, Sequence[Sums]], labels: LabelCache) -> Iterator[Metric]:
        """Yield the gauge of each number that a model has; none of models without tests."""
        last, self._known = self._known, {}
        for model, many in sums.items():
            if many:
                known = last.get(model)
                if known is None or known.sums != many:
                    known = _Known(many, _samples(model, many, labels))
                self._known[model] = known
        for measure in ANSWERS:
            name = measure.metric
            family = GaugeMetricFamily(name, measure.help)
            by_model = (one.samples.get(name, ()) for one in self._known.values())
            family.samples = [*chain.from_iterable(by_model)]
            if family.samples:
                yield family


def _samples(model: str, many: Sequence[Sums], labels: LabelCache) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for number in answer_numbers(answers_of(many)):
        found.setdefault(number.metric, []).append(_sample(model, number, labels))
    return found


def _sample(model: str, number: Number, labels: LabelCache) -> Sample:
    view = {"view": number.view} if number.view else {}
    named = {"model": model, **view, **number.labels}
    return Sample(number.metric, labels.of((*named,), (*named.values(),)), number.value)


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


_ENDS = ("learned", "assumed", "expired", "evicted", "retired")  # of predictions
_SNAPSHOTS = ("saved", "failed")
_WEBHOOK = ("sent", "failed", "dropped")
_BIN_NAMES = [f"{number / BINS:g}" for number in range(BINS)]
_BOUNDS = {"width": WIDTH_BOUNDS, "pit": PIT_BOUNDS}


def registry_of(status: Status) -> CollectorRegistry:
    """Return a registry with the metrics of a service and of its process."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Service(status))
    return registry


class _Service(Collector):
    def __init__(self, status: Status) -> None:
        self._status, self._of_process = status, ProcessCollector(registry=None)
        self._answers = AnswerCache()
        self._labels = LabelCache({"application": status.application, "process": status.process})

    def describe(self) -> list[Metric]:
        """Return no names: no other collector has these."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics with their current samples."""
        view, labels = self._status.view(), self._labels
        labels.next_scrape()
        rows = _rows(view) | _calibration(view.counts.model_totals)
        yield from (one.family(rows[one.name], labels) for one in METRICS)
        yield from _gauges(view, labels)
        yield from self._answers.metrics(view.answer_sums, labels)
        yield from map(labels.complete, self._of_process.collect())


def _rows(view: StatusView) -> dict[str, Iterable[Row]]:
    """Return the samples of each metric of the service."""
    counts, gauges = view.counts, {str(n): one for n, one in view.gauges.items()}
    clocks = {n: one.clock for n, one in gauges.items() if one.clock is not None}
    tests = [(model, one.view, one.name) for model, many in view.evidence.items() for one in many]
    return {
        "abers_build": [((), {"version": abers.__version__, "backend": abers.backend()})],
        "abers_records": _staged(view, _by(counts.records, INPUTS), _by(counts.routed, INPUTS)),
        "abers_predictions": [((), counts.written["predictions"])],
        "abers_outcomes": [((), counts.written["outcomes"])],
        "abers_dead_letters": _by(counts.dead),
        "abers_tombstones": [((), counts.tombstones)],
        "abers_events": _events(counts.ends),
        "abers_predictions_ended": [((name,), counts.ends[name]) for name in _ENDS],
        "abers_unbalanced_partitions": [((), len(view.unbalanced))],
        "abers_transactions_committed": _staged(
            view, [((), counts.commits[TASKS])], [((), counts.commits[ROUTER])]
        ),
        "abers_transactions_aborted": _staged(
            view, [((), counts.aborts[TASKS])], [((), counts.aborts[ROUTER])]
        ),
        "abers_rebalances": [((), counts.assignments)],
        "abers_state_restores": [((), counts.restores)],
        "abers_snapshots": _by(counts.snapshots, _SNAPSHOTS),
        "abers_webhook": _by(counts.webhook, _WEBHOOK),
        "abers_commit_seconds": _buckets(counts.commit_seconds),
        "abers_label_delay_seconds": _buckets(counts.label_delay),
        "abers_pending_observations": [((n,), one.pending) for n, one in gauges.items()],
        "abers_early_labels": [((n,), one.early) for n, one in gauges.items()],
        "abers_state_bytes": [((str(n),), size) for n, size in view.sizes.items()],
        "abers_model_share_ratio": [((one.model,), one.share) for one in view.largest],
        "abers_model_state_bytes": [((one.model,), one.bytes) for one in view.largest],
        "abers_memory_limit_bytes": [((), one) for one in (memory_limit(),) if one is not None],
        "abers_event_time_lag_seconds": [
            ((n,), (view.now - clock) / 1000) for n, clock in clocks.items()
        ],
        "abers_consumer_lag_records": _staged(view, _lags(view.lags), _lags(view.router_lags)),
        "abers_records_to_replay": [((n,), one.to_replay) for n, one in gauges.items()],
        "abers_snapshot_every_records": (
            [] if view.snapshot_every is None else [((), view.snapshot_every)]
        ),
        "abers_input_partitions": (
            [] if view.input_partitions is None else [((), view.input_partitions)]
        ),
        "abers_following_partitions": _by(view.following),
        "abers_assigned_partitions": [((), len(view.assigned))],
        "abers_restored_partitions": [((), len(view.restored))],
        "abers_alarm_episodes": (dict.fromkeys(tests, 0) | counts.alarms).items(),
    }


def _staged(view: StatusView, tasks: Iterable[Row], router: Iterable[Row]) -> list[Row]:
    """Return samples with their stage, which is empty if the application has no routers."""
    if not view.stages:
        return [(("", *labels), value) for labels, value in tasks]
    rows = {one: router if one == ROUTER else tasks for one in view.stages}
    return [((stage, *labels), value) for stage, some in rows.items() for labels, value in some]


def _lags(lags: Mapping[tuple[str, int], int]) -> list[Row]:
    return [((topic, str(number)), lag) for (topic, number), lag in lags.items()]


def _events(ends: Mapping[str, int]) -> list[Row]:
    """Return how events ended; observations that are not predicted or duplicates are dead."""
    rejected = ends["observations"] - ends["predictions"] - ends["duplicate_observations"]
    return [
        (("observations", "predicted"), ends["predictions"]),
        (("observations", "duplicate"), ends["duplicate_observations"]),
        (("observations", "dead-letter"), rejected),
        (("labels", "learned"), ends["learned"]),
        (("labels", "duplicate"), ends["duplicate_labels"]),
        (("labels", "late"), ends["late_labels"]),
        (("labels", "evicted"), ends["evicted_labels"]),
        (("labels", "dead-letter"), ends["dead_letters"] - rejected - ends["evicted_labels"]),
    ]


def _by(values: Mapping[str, int], always: Iterable[str] = ()) -> list[Row]:
    known = {**dict.fromkeys(always, 0), **values}
    return [((key,), known[key]) for key in sorted(known)]


def _buckets(seen: Histogram) -> list[Row]:
    return [((), (seen.cumulated(), seen.sum))]


def _gauges(view: StatusView, cache: LabelCache) -> Iterator[Metric]:
    """Yield the gauges that monitors define."""
    labels = ("model", "view", "test")
    known = {
        one.metric: Definition("gauge", one.metric, one.unit, one.help, labels) for one in TESTS
    }
    rows: dict[str, list[Row]] = {name: [] for name in known}
    for model, number in view.gauges_of_monitors():
        named = {"model": model, **({"view": number.view} if number.view else {}), **number.labels}
        if (name := number.metric) not in known:
            known[name] = Definition("gauge", name, number.unit, number.help, (*named,))
        rows.setdefault(name, []).append(((*named.values(),), number.value))
    yield from (one.family(rows[name], cache) for name, one in known.items())


def _calibration(totals: ModelTotals) -> dict[str, Iterable[Row]]:
    """Return the samples of calibration: sums over labelled predictions, by model."""
    return {one.name: _calibration_rows(one, totals) for one in METRICS if one.sums}


def _calibration_rows(one: Definition, totals: ModelTotals) -> Iterator[Row]:
    if one.sums in _BOUNDS:
        yield from _histograms(totals, one.sums, _BOUNDS[one.sums])
        return
    for model, which, values in _sums(totals, one.sums):
        if "bin" in one.labels:
            for name, value in zip(_BIN_NAMES, values, strict=True):
                yield (model, which, name), value
        else:
            yield (model, which)[: len(one.labels)], values[0]


def _sums(totals: ModelTotals, table: str) -> Iterator[tuple[str, str, list[float]]]:
    """Yield the sums of each model, and of each view or level."""
    for (name, which), sums in totals.tables.items():
        if name == table:
            for model, row in zip(totals.rows, sums.tolist(), strict=True):
                yield model, which, row


def _histograms(totals: ModelTotals, table: str, bounds: Sequence[float]) -> Iterator[Row]:
    names = [*map(str, bounds), "+Inf"]
    rows = zip(_sums(totals, table), _sums(totals, f"{table}_sum"), strict=True)
    for (model, _, counts), (_, _, (total,)) in rows:
        up_to = [*accumulate(counts)]
        up_to += up_to[-1:] * (len(names) - len(up_to))
        yield (model,), ([*zip(names, up_to, strict=True)], total)
