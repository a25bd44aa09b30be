"""The all-time scores of what one regression calibrator predicted.

Governing rule: a prediction is judged once, as it was issued, when its label
comes; a quantile that is infinite has no finite loss, so what it would cost is
counted and not added to a sum.
"""

# ruff: noqa: SLF001 - of the same class

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers._saved import count, numbers, wholes
from abers.monitoring._finite import FiniteMean
from abers.monitoring.evidence import Tested

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["CentralInterval", "RegressionMonitor", "central_pairs", "spread"]

_BINS = 20  # of the PIT histogram
_ROUNDED = 1.0 + 1e-9  # sums of many shares of at most 1 may be a little more


class CentralInterval(NamedTuple):
    """What became of the central intervals of one level.

    Attributes
    ----------
    level
        The share of the labels that they should cover.
    coverage
        The share that they covered; NaN before the first label.
    width
        Their mean width where it is finite; NaN before the first such.
    """

    level: float
    coverage: float
    width: float


class RegressionMonitor(Tested):
    """Pinball loss and CRPS, coverage and width of central intervals, and the PIT histogram.

    Parameters
    ----------
    levels
        Of the quantiles, ascending. Each pair that is as far from 0 as from 1 bounds a central
        interval.
    distributions
        Whether whole distributions are judged, and not only their quantiles.

    Attributes
    ----------
    count
        Predictions judged.

    Notes
    -----
    The pinball loss of a quantile v at level q is q (y - v) for a label y above it, and
    (1 - q) (v - y) otherwise; it is averaged over the levels. An interval covers a label at one
    of its ends. The raw score is judged as a distribution of one point, whose quantiles are all
    the score, and whose CRPS is its distance from the label. Means leave out what is infinite,
    and where it is the calibrated loss, the raw one beside it: both are of the same predictions.

    Examples
    --------
    >>> monitor = RegressionMonitor([0.25, 0.5, 0.75])
    >>> row = [9.0, 1.0, 2.0, 4.0]  # the score, and the merged quantiles; the band follows
    >>> monitor.update(np.array([row]), np.array([3.5]))
    >>> monitor.views()["calibrated"]
    {'pinball': 0.5, 'pinball_infinite': 0, 'coverage_50': 1.0, 'width_50': 3.0}
    >>> monitor.views()["raw"]["crps"]
    5.5
    """

    def __init__(self, levels: Sequence[float], *, distributions: bool = False) -> None:
        self._levels = np.array(levels)
        self._pairs = central_pairs(levels)
        self.count = 0
        self._raw = {"crps": FiniteMean(), "pinball": FiniteMean()}
        self._calibrated = {"crps": FiniteMean()} if distributions else {}
        self._calibrated["pinball"] = FiniteMean()
        self._widths = [FiniteMean() for _ in self._pairs]
        self._covered = np.zeros(len(self._pairs), np.int64)
        self._pit = np.zeros(_BINS) if distributions else None

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of the quantiles, as they were given."""
        return tuple(self._levels.tolist())

    @property
    def intervals(self) -> list[CentralInterval]:
        """What became of the central intervals, widest first."""
        count = self.count or math.nan
        return [
            CentralInterval(share, covered / count, width.mean)
            for (_, _, share), covered, width in zip(
                self._pairs, self._covered.tolist(), self._widths, strict=True
            )
        ]

    @property
    def mean_width(self) -> float:
        """Mean width of the widest central interval where it is finite; NaN before the first."""
        return self._widths[0].mean if self._widths else math.nan

    @property
    def pit_histogram(self) -> Floats | None:
        """How many PIT values lie in each of 20 equal parts of [0, 1]; None without distributions.

        The value of a label is spread evenly from the CDF just below it to the CDF at it, so
        that nothing is random (Czado, Gneiting & Held 2009).
        """
        return None if self._pit is None else self._pit.copy()

    def views(self) -> dict[str, dict[str, float]]:
        """Give the mean scores by name; coverages and widths by the per cent of the interval."""
        intervals = {
            f"{name}_{100 * one.level:.9g}": value
            for one in self.intervals
            for name, value in (("coverage", one.coverage), ("width", one.width))
        }
        return {"raw": _means(self._raw), "calibrated": _means(self._calibrated) | intervals}

    def update(self, rows: Floats, labels: Floats) -> None:
        """Judge predictions whose labels have come, in their order.

        Parameters
        ----------
        rows
            Array of shape (n, 1 + levels + more): the score, the merged quantiles, and what
            is not judged. With distributions the last three columns are the CRPS, and the CDF
            just below the label and at it.
        labels
            Array of shape (n,).
        """
        self.count += len(labels)
        scores, quantiles = rows[:, 0], rows[:, 1 : 1 + len(self._levels)]
        # What no double holds is infinite too; infinite ends on one side have no distance.
        with np.errstate(over="ignore", invalid="ignore"):
            self._compare(
                "pinball", self._pinball(rows[:, :1], labels), self._pinball(quantiles, labels)
            )
            crps = rows[:, -3] if self._pit is not None else np.zeros(len(labels))
            self._compare("crps", np.abs(labels - scores), crps)
            for (low, high, _), width in zip(self._pairs, self._widths, strict=True):
                width.update(quantiles[:, high] - quantiles[:, low])
        for number, (low, high, _) in enumerate(self._pairs):
            inside = (quantiles[:, low] <= labels) & (labels <= quantiles[:, high])
            self._covered[number] += int(inside.sum())
        if self._pit is not None:
            shares = spread(rows[:, -2], rows[:, -1], _BINS)
            self._pit = np.cumsum(np.vstack([self._pit, shares]), axis=0)[-1]

    def _compare(self, name: str, raw: Floats, calibrated: Floats) -> None:
        """Judge both views by the same predictions: those that calibration can be judged by."""
        self._raw[name].update(np.where(np.isfinite(calibrated), raw, np.inf))
        if name in self._calibrated:
            self._calibrated[name].update(calibrated)

    def _pinball(self, quantiles: Floats, labels: Floats) -> Floats:
        over = labels[:, np.newaxis] - quantiles
        return np.maximum(self._levels * over, (self._levels - 1.0) * over).mean(axis=1)

    def _means(self) -> list[FiniteMean]:
        return [*self._raw.values(), *self._calibrated.values(), *self._widths]

    def state(self) -> tuple[Any, ...]:
        """Give what is remembered: what `restore` takes."""
        means = [one.state() for one in self._means()]
        pit = None if self._pit is None else self._pit.tolist()
        return (self._levels.tolist(), self.count, means, self._covered.tolist(), pit)

    @classmethod
    def restore(cls, state: Sequence[Any]) -> RegressionMonitor:
        """Make the monitor that gave this `state`; a ValueError if none did."""
        levels, judged, means, covered, pit = state
        at = numbers(levels, "levels", None, 0.0, 1.0).tolist()
        monitor = cls(at, distributions=pit is not None)
        monitor.count = count(judged, "counts")
        for mean, one in zip(monitor._means(), means, strict=True):
            mean.load(one)
        pairs = len(monitor._pairs)
        monitor._covered[:] = wholes(covered, "intervals", pairs, monitor.count)
        if monitor._pit is not None:
            most = monitor.count * _ROUNDED
            monitor._pit[:] = numbers(pit, "PIT values", _BINS, 0.0, most)
        return monitor

    @classmethod
    def total(cls, many: Sequence[RegressionMonitor]) -> RegressionMonitor:
        """Add up the monitors of different calibrators, of the same levels.

        Parameters
        ----------
        many
            The monitors, at least one.

        Returns
        -------
        RegressionMonitor
            That of all predictions together.
        """
        whole = cls(many[0]._levels.tolist(), distributions=many[0]._pit is not None)
        whole.bets = [bets for one in many for bets in one.bets]
        for one in many:
            whole.count += one.count
            whole._covered += one._covered
            for mean, other in zip(whole._means(), one._means(), strict=True):
                mean.add(other)
            if whole._pit is not None and one._pit is not None:
                whole._pit += one._pit
        return whole


def _means(by_name: dict[str, FiniteMean]) -> dict[str, float]:
    """Give means by name, and how many terms each leaves out."""
    return {
        key: value
        for name, one in by_name.items()
        for key, value in ((name, one.mean), (f"{name}_infinite", one.infinite))
    }


def spread(below: Floats, at: Floats, bins: int) -> Floats:
    """Spread each PIT value evenly over the bins between two ends; a row each."""
    edges = np.arange(1, bins) / bins
    low, high = below[:, np.newaxis], at[:, np.newaxis]
    # Of one point, which lies in one bin, and of ends whose distance hardly is a number.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        shares = np.where(low < high, np.clip((edges - low) / (high - low), 0.0, 1.0), low < edges)
    return np.diff(shares, axis=1, prepend=0.0, append=1.0)


def central_pairs(levels: Sequence[float]) -> list[tuple[int, int, float]]:
    """Find the pairs of levels that bound central intervals, and their shares, widest first."""
    pairs = []
    for low, level in enumerate(levels):
        share = round(1.0 - 2.0 * level, 9)
        for high, other in enumerate(levels):
            if share > 0.0 and math.isclose(level + other, 1.0, abs_tol=1e-9):
                pairs.append((low, high, share))
    return pairs
