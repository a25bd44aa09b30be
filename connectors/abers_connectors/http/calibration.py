"""The metrics of calibration: whether predictions mean what they say.

Governing rule: sums that may be added up over processes and subtracted over time, so that
Prometheus finds any score of any window from them; no mean, and no calibration error, which nobody
can add up.
"""

from __future__ import annotations

from itertools import accumulate, chain
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Sample

from abers_connectors.kafka.tallies import BINS, PIT, WIDTHS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client import Metric

    from abers_connectors.kafka.tallies import Tallies

__all__ = ["calibration"]

_RELIABILITY = {
    "predictions": "Predictions whose labels came, by bin of their probability.",
    "score": "Sum of their probabilities.",
    "positives": "How many of them came true.",
}
_SCORES = {
    "brier": ("abers_brier_score", "Sum of Brier scores."),
    "log_loss": ("abers_log_loss_nats", "Sum of the log losses that are finite."),
    "infinite": ("abers_log_loss_infinite", "Log losses that are infinite."),
}
_INTERVALS = {
    "outcomes": "Labels that central intervals of this level might have covered.",
    "expected": "How many of them they should have covered: the level times their number.",
    "covered": "How many of them they covered.",
}
_HISTOGRAMS = {
    "width": ("abers_venn_abers_width_ratio", "Widths of Venn-Abers intervals.", WIDTHS),
    "pit": ("abers_pit_ratio", "Values of predictive distributions at their labels.", PIT),
}


def calibration(tallies: Tallies) -> Iterator[Metric]:
    """Give what became known of predictions.

    Parameters
    ----------
    tallies
        Sums, by model.

    Yields
    ------
    Metric
        All there may be, with samples of what there is.
    """
    yield from _reliability(tallies)
    for table, (metric, what) in _SCORES.items():
        yield _sums(tallies, table, metric, what, "view")
    for table, what in _INTERVALS.items():
        yield _sums(tallies, table, f"abers_interval_{table}", what, "level")
    for table, (metric, what, bounds) in _HISTOGRAMS.items():
        yield _histogram(tallies, table, metric, what, bounds)


def _reliability(tallies: Tallies) -> Iterator[Metric]:
    """Give what is in the bins: most of all samples, so these share their labels."""
    bins = [f"{number / BINS:g}" for number in range(BINS)]
    places = [
        {"model": model, "view": view, "bin": name}
        for model, view, _ in _rows(tallies, "predictions")
        for name in bins
    ]
    for table, what in _RELIABILITY.items():
        family = CounterMetricFamily(f"abers_reliability_{table}", what)
        sums = chain.from_iterable(sums for _, _, sums in _rows(tallies, table))
        family.samples = [
            Sample(f"{family.name}_total", place, value)
            for place, value in zip(places, sums, strict=True)
        ]
        yield family


def _rows(tallies: Tallies, table: str) -> Iterator[tuple[str, str, list[float]]]:
    """Give the sums of each model, and of each view or level."""
    for (name, which), sums in tallies.tables.items():
        if name == table:
            for model, row in zip(tallies.rows, sums.tolist(), strict=True):
                yield model, which, row


def _sums(tallies: Tallies, table: str, metric: str, what: str, label: str) -> Metric:
    family = CounterMetricFamily(metric, what, labels=["model", label])
    for model, which, (value,) in _rows(tallies, table):
        family.add_metric([model, which], value)
    return family


def _histogram(
    tallies: Tallies, table: str, metric: str, what: str, bounds: Sequence[float]
) -> Metric:
    family = HistogramMetricFamily(metric, what, labels=["model"])
    names = [*map(str, bounds), "+Inf"]
    rows = zip(_rows(tallies, table), _rows(tallies, f"{table}_sum"), strict=True)
    for (model, _, counts), (_, _, (total,)) in rows:
        up_to = [*accumulate(counts)]
        up_to += up_to[-1:] * (len(names) - len(up_to))
        family.add_metric([model], [*zip(names, up_to, strict=True)], total)
    return family
