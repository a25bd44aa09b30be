"""All-time scores of the predictions of a regression calibrator.

A prediction is scored once, as it was issued, when its label comes. The infinite loss of an
infinite quantile is counted and not added to a sum.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.monitoring.base import Figure, TaskMonitor
from abers.monitoring.coverage import FiniteMean
from abers.monitoring.measures import Measure, Number
from abers.serialization import count, numbers, wholes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats, Integers
    from abers.monitoring.base import BandMaker
    from abers.monitoring.measures import ScoredRows

__all__ = ["CentralInterval", "RegressionMonitor", "central_pairs", "spread"]

_UNIT = "unit of the label"
_CRPS = Measure(
    "crps", "CRPS", _UNIT, "Mean continuous ranked probability score.", gauge="", finite=True
)
_PINBALL = Measure(
    "pinball", "pinball loss", _UNIT, "Mean pinball loss over the levels.", gauge="", finite=True
)
_COVERAGE = Measure(
    "coverage",
    "coverage of the {} % interval",
    "share of labels",
    "Share of the labels inside the central {} % interval.",
    "in {} %",
    chart="",
    gauge="",
)
_WIDTH = Measure(
    "width",
    "width of the {} % interval",
    _UNIT,
    "Mean width of the central {} % interval where it is finite.",
    brief="",
    chart="",
    gauge="",
)
_MEAN_WIDTH = Measure(
    "mean_width",
    "",  # the row of the widest interval says the same
    _UNIT,
    "Mean width of the widest central interval where it is finite.",
    "mean width",
    "width of the {} % interval",
    gauge="",
)
_BINS = 20  # of the PIT histogram
_ROUNDED = 1.0 + 1e-9  # sums of many shares of at most 1 may be a little more


class CentralInterval(NamedTuple):
    """Coverage and width of the central intervals of one level.

    Attributes
    ----------
    level
        Share of the labels that they should cover.
    coverage
        Share of the labels that they covered; NaN before the first label.
    width
        Mean of their finite widths; NaN before the first.
    """

    level: float
    coverage: float
    width: float


class RegressionMonitor(TaskMonitor):
    """Pinball loss and CRPS, coverage and width of central intervals, and the PIT histogram.

    Parameters
    ----------
    levels
        Levels of the quantiles, ascending. Each pair that is as far from 0 as from 1 bounds a
        central interval.
    distributions
        Whether whole distributions are scored, and not only their quantiles.

    Notes
    -----
    The pinball loss of a quantile v at level q is q (y - v) for a label y above it, and
    (1 - q) (v - y) otherwise; it is averaged over the levels. An interval covers a label at one
    of its ends. The raw score is scored as a distribution of one point: its quantiles are all the
    score, and its CRPS is the distance from the label. Means leave out infinite terms; where the
    calibrated loss is infinite, the raw loss is left out too, so both have the same predictions.

    Examples
    --------
    >>> from abers.monitoring import ScoredRows
    >>> labels, score, quantiles = np.array([3.5]), np.array([9.0]), np.array([[1.0, 2.0, 4.0]])
    >>> covered = {0.5: np.array([True])}
    >>> monitor = RegressionMonitor([0.25, 0.5, 0.75])
    >>> monitor.update(ScoredRows(labels, scores=score, quantiles=quantiles, covered=covered))
    >>> monitor.views()["calibrated"]
    {'pinball': 0.5, 'pinball_infinite': 0, 'coverage_50': 1.0, 'width_50': 3.0}
    >>> monitor.views()["raw"]["crps"]
    5.5
    """

    name = "regression"
    measures = (*TaskMonitor.measures, _CRPS, _PINBALL, _COVERAGE, _WIDTH, _MEAN_WIDTH)

    def __init__(self, levels: Sequence[float], *, distributions: bool = False) -> None:
        super().__init__()
        self._levels = np.array(levels)
        self._pairs = central_pairs(levels)
        self._count = 0
        self._raw = {"crps": FiniteMean(), "pinball": FiniteMean()}
        self._calibrated = {"crps": FiniteMean()} if distributions else {}
        self._calibrated["pinball"] = FiniteMean()
        self._widths = [FiniteMean() for _ in self._pairs]
        self.means = [*self._raw.values(), *self._calibrated.values(), *self._widths]
        self._covered = np.zeros(len(self._pairs), np.int64)
        self._pit = np.zeros(_BINS) if distributions else None

    @property
    def count(self) -> int:
        """Number of predictions scored."""
        return self._count

    @property
    def levels(self) -> tuple[float, ...]:
        """Levels of the quantiles."""
        return tuple(self._levels.tolist())

    @property
    def intervals(self) -> list[CentralInterval]:
        """Coverage and width of the central intervals, widest first."""
        count = self._count or math.nan
        columns = zip(self._pairs, self._covered.tolist(), self._widths, strict=True)
        return [CentralInterval(share, n / count, width.mean) for (*_, share), n, width in columns]

    @property
    def mean_width(self) -> float:
        """Mean width of the widest central interval where it is finite; NaN before the first."""
        return self._widths[0].mean if self._widths else math.nan

    @property
    def pit_histogram(self) -> Floats | None:
        """Number of PIT values in each of 20 equal parts of [0, 1]; None without distributions.

        The value of a label is spread evenly from the CDF just below it to the CDF at it, so
        that nothing is random (Czado, Gneiting & Held 2009).
        """
        return None if self._pit is None else self._pit.copy()

    @property
    def covered(self) -> Integers:
        """Number of labels that each central interval covered, widest first."""
        return self._covered.copy()

    def _numbers(self) -> list[Number]:
        """Return the losses, coverages and widths as numbers."""
        measures = {"crps": _CRPS, "pinball": _PINBALL}
        if "crps" in self._calibrated:  # a narrow table shows only one of the two losses
            measures["pinball"] = _PINBALL._replace(brief="")
        found = [
            Number(measures[name], one.mean, view, one.infinite)
            for view, losses in (("raw", self._raw), ("calibrated", self._calibrated))
            for name, one in losses.items()
        ]
        intervals = self.intervals
        for one in intervals:
            level = f"{100 * one.level:.9g}"
            labels = {"level": f"{one.level:.9g}"}
            found.append(Number(_COVERAGE.at(level), one.coverage, "calibrated", labels=labels))
            found.append(Number(_WIDTH.at(level), one.width, "calibrated", labels=labels))
        chart = "interval width"
        if intervals:
            chart = f"width of the {100 * intervals[0].level:.9g} % interval"
        return [*found, Number(_MEAN_WIDTH._replace(chart=chart), self.mean_width)]

    def _add(self, scored: ScoredRows) -> None:
        """Add the losses, coverages, widths and PIT values of scored rows."""
        labels, scores, quantiles = scored.labels, scored.scores, scored.quantiles
        if scores is None or quantiles is None:
            raise ValueError("quantiles")
        self._count += len(labels)
        # Overflow is infinite too; ends that are infinite on the same side have no distance.
        with np.errstate(over="ignore", invalid="ignore"):
            raw = self._pinball(scores[:, np.newaxis], labels)
            self._compare("pinball", raw, self._pinball(quantiles, labels))
            crps = np.zeros(len(labels)) if scored.crps is None else scored.crps
            self._compare("crps", np.abs(labels - scores), crps)
            for (low, high, _), width in zip(self._pairs, self._widths, strict=True):
                width.update(quantiles[:, high] - quantiles[:, low])
        for number, (_, _, share) in enumerate(self._pairs):
            self._covered[number] += int(scored.covered[share].sum())
        if self._pit is not None and scored.pit is not None:
            shares = spread(*scored.pit, _BINS)
            self._pit = np.cumsum(np.vstack([self._pit, shares]), axis=0)[-1]

    def _compare(self, name: str, raw: Floats, calibrated: Floats) -> None:
        """Score both views on the same predictions: those with a finite calibrated loss."""
        self._raw[name].update(np.where(np.isfinite(calibrated), raw, np.inf))
        if name in self._calibrated:
            self._calibrated[name].update(calibrated)

    def _pinball(self, quantiles: Floats, labels: Floats) -> Floats:
        over = labels[:, np.newaxis] - quantiles
        return np.maximum(self._levels * over, (self._levels - 1.0) * over).mean(axis=1)

    def _figures(self, bands: BandMaker) -> list[Figure]:
        del bands
        found = []
        if intervals := self.intervals:
            found.append(_coverage_figure(intervals, self._count))
        if self._pit is not None:
            found.append(_pit(self._pit.tolist()))
        return found

    def state(self) -> tuple[Any, ...]:
        """Return the state; see `Monitor.state`."""
        means = [one.state() for one in self.means]
        pit = None if self._pit is None else self._pit.tolist()
        return (self._levels.tolist(), self._count, means, self._covered.tolist(), pit)

    @classmethod
    def difference(cls, later: Sequence[Any], earlier: Sequence[Any]) -> tuple[Any, ...]:
        """Return the totals between two totals; levels are the same in both."""
        return (later[0], *super().difference(later[1:], earlier[1:]))

    @classmethod
    def restore(cls, state: Sequence[Any]) -> RegressionMonitor:
        """Return the monitor with this state; see `Monitor.restore`."""
        levels, scored, means, covered, pit = state
        at = numbers(levels, "levels", None, 0.0, 1.0).tolist()
        monitor = cls(at, distributions=pit is not None)
        monitor._count = count(scored, "counts")
        for mean, one in zip(monitor.means, means, strict=True):
            mean.load(one)
        pairs = len(monitor._pairs)
        monitor._covered[:] = wholes(covered, "intervals", pairs, monitor._count)
        if monitor._pit is not None:
            most = monitor._count * _ROUNDED
            monitor._pit[:] = numbers(pit, "PIT values", _BINS, 0.0, most)
        return monitor

    @classmethod
    def _total(cls, many: Sequence[RegressionMonitor]) -> RegressionMonitor:
        whole = cls(many[0].levels, distributions=many[0].pit_histogram is not None)
        for one in many:
            whole._count += one.count
            whole._covered += one.covered
            for mean, other in zip(whole.means, one.means, strict=True):
                mean.add(other)
            if whole._pit is not None and (pit := one.pit_histogram) is not None:
                whole._pit += pit
        return whole


def _coverage_figure(intervals: Sequence[CentralInterval], count: int) -> Figure:
    """Return the figure of the coverage by nominal level."""
    return Figure(
        "coverage",
        "Coverage",
        "coverage",
        {
            "nominal": [one.level for one in intervals],
            "views": {"calibrated": [one.coverage for one in intervals]},
            "count": count,
        },
        "Of the labels, nine in ten should lie inside the central 90 % intervals. Widths are means "
        "over the intervals that have an end on both sides.",
        ["nominal coverage", "share of labels inside", "mean width"],
        [[f"{one.level:.9g}", one.coverage, one.width] for one in intervals],
    )


def _pit(counts: Sequence[float]) -> Figure:
    """Return the figure of the PIT histogram."""
    n = len(counts)
    return Figure(
        "pit",
        "PIT histogram",
        "pit_histogram",
        {"counts": counts},
        "Where labels fell in their predictive distributions. Level bars are right; high ends mean "
        "distributions that are too narrow, a hump in the middle distributions that are too wide.",
        ["predictive CDF at the label", "labels"],
        [
            [f"{row / n:.2f} to {(row + 1) / n:.2f}", f"{count:,.1f}"]
            for row, count in enumerate(counts)
        ],
    )


def spread(below: Floats, at: Floats, bins: int) -> Floats:
    """Return the share of each bin in a PIT value that is spread evenly between two ends."""
    edges = np.arange(1, bins) / bins
    low, high = below[:, np.newaxis], at[:, np.newaxis]
    # One point lies in one bin; the distance of two ends may overflow.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        shares = np.where(low < high, np.clip((edges - low) / (high - low), 0.0, 1.0), low < edges)
    return np.diff(shares, axis=1, prepend=0.0, append=1.0)


def central_pairs(levels: Sequence[float]) -> list[tuple[int, int, float]]:
    """Return the pairs of levels that bound central intervals, and their shares, widest first."""
    return [
        (low, high, share)
        for low, level in enumerate(levels)
        if (share := round(1.0 - 2.0 * level, 9)) > 0.0
        for high, other in enumerate(levels)
        if math.isclose(level + other, 1.0, abs_tol=1e-9)
    ]
