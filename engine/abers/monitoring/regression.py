"""The all-time scores of the quantiles that one regression calibrator predicted.

Governing rule: a prediction is judged once, as it was issued, when its label
comes; a quantile that is infinite has no finite loss, so what it would cost is
counted and not added to a sum.
"""

# ruff: noqa: SLF001 - of the same class

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.monitoring.scores import added

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["RegressionMonitor"]


class RegressionMonitor:
    """Pinball loss of the merged quantiles, and coverage and width of their central intervals.

    Parameters
    ----------
    levels
        Of the quantiles, ascending. Each pair that is as far from 0 as from 1 bounds a central
        interval.

    Attributes
    ----------
    count
        Predictions judged.
    infinite
        How many of them had an infinite loss, as a quantile was infinite; the mean pinball loss
        leaves them out.

    Notes
    -----
    The pinball loss of a quantile v at level q is q (y - v) for a label y above it, and
    (1 - q) (v - y) otherwise; it is averaged over the levels. An interval covers a label at one
    of its ends. Widths are those of the widest interval, where it is finite.

    Examples
    --------
    >>> monitor = RegressionMonitor([0.25, 0.5, 0.75])
    >>> row = [9.0, 1.0, 2.0, 4.0]  # the score, and the merged quantiles; the band follows
    >>> monitor.update(np.array([row]), np.array([3.0]))
    >>> monitor.views()["calibrated"]
    {'pinball': 0.4166666666666667, 'pinball_infinite': 0, 'coverage_50': 1.0}
    >>> monitor.mean_width
    3.0
    """

    def __init__(self, levels: Sequence[float]) -> None:
        self._levels = np.array(levels)
        self._pairs = _central(levels)
        self.count = self.infinite = 0
        self._loss = self._width = 0.0
        self._wide = 0  # intervals whose width is finite
        self._covered = np.zeros(len(self._pairs), np.int64)

    @property
    def mean_width(self) -> float:
        """Mean width of the widest central interval where it is finite; NaN before the first."""
        return self._width / self._wide if self._wide else math.nan

    def views(self) -> dict[str, dict[str, float]]:
        """Give the mean scores by name; coverages by the per cent they should be."""
        losses = self.count - self.infinite
        coverages = self._covered / self.count if self.count else np.full(len(self._pairs), np.nan)
        return {
            "calibrated": {
                "pinball": self._loss / losses if losses else math.nan,
                "pinball_infinite": self.infinite,
                **{
                    f"coverage_{100 * share:.9g}": covered
                    for (_, _, share), covered in zip(self._pairs, coverages.tolist(), strict=True)
                },
            }
        }

    def update(self, rows: Floats, labels: Floats) -> None:
        """Judge predictions whose labels have come, in their order.

        Parameters
        ----------
        rows
            Array of shape (n, 1 + levels + more): the score, the merged quantiles, and what
            is not judged.
        labels
            Array of shape (n,).
        """
        quantiles = rows[:, 1 : 1 + len(self._levels)]
        with np.errstate(over="ignore"):  # a loss that no double holds is infinite too
            over = labels[:, np.newaxis] - quantiles
            losses = np.maximum(self._levels * over, (self._levels - 1.0) * over).mean(axis=1)
        finite = losses[np.isfinite(losses)]
        self.count += len(labels)
        self.infinite += len(labels) - len(finite)
        self._loss = added(self._loss, finite)
        for number, (low, high, _) in enumerate(self._pairs):
            inside = (quantiles[:, low] <= labels) & (labels <= quantiles[:, high])
            self._covered[number] += int(inside.sum())
        if self._pairs:
            low, high, _ = self._pairs[0]
            with np.errstate(
                over="ignore", invalid="ignore"
            ):  # left out, like one that is infinite
                widths = quantiles[:, high] - quantiles[:, low]
            known = widths[np.isfinite(widths)]
            self._width = added(self._width, known)
            self._wide += len(known)

    def state(self) -> tuple[Any, ...]:
        """Give what is remembered: what `restore` takes."""
        sums = (self.count, self.infinite, self._loss, self._width, self._wide)
        return (self._levels.tolist(), *sums, self._covered.tolist())

    @classmethod
    def restore(cls, state: Sequence[Any]) -> RegressionMonitor:
        """Make the monitor that gave this `state`."""
        levels, count, infinite, loss, width, wide, covered = state
        monitor = cls(levels)
        monitor.count, monitor.infinite, monitor._loss = count, infinite, loss
        monitor._width, monitor._wide = width, wide
        monitor._covered[:] = covered
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
        whole = cls(many[0]._levels.tolist())
        for one in many:
            whole.count += one.count
            whole.infinite += one.infinite
            whole._loss += one._loss
            whole._width += one._width
            whole._wide += one._wide
            whole._covered += one._covered
        return whole


def _central(levels: Sequence[float]) -> list[tuple[int, int, float]]:
    """Find the pairs of levels that bound central intervals, and their shares, widest first."""
    pairs = []
    for low, level in enumerate(levels):
        share = round(1.0 - 2.0 * level, 9)
        for high, other in enumerate(levels):
            if share > 0.0 and math.isclose(level + other, 1.0, abs_tol=1e-9):
                pairs.append((low, high, share))
    return pairs
