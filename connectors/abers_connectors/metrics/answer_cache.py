"""Gauges of the answers about models, made again only after new labels."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.core import GaugeMetricFamily, Sample

from abers.monitoring import ANSWERS, answer_numbers
from abers.monitoring.answers import answers_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prometheus_client import Metric

    from abers.monitoring import Number
    from abers.monitoring.answers import Sums
    from abers_connectors.metrics.labels import LabelCache

__all__ = ["AnswerCache"]


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
