"""What else makes distributions of the predictions of a base on a stream of numbers.

All see the same normal distributions, and learn from each label when it comes. Until ten labels
came they forecast what the base does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from abers.arrays import PREDICT
from abers.regression import PredictiveDistribution

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from benchmarks.papers.streams_rivals import Rival
    from benchmarks.papers.streams_steps import Steps

    Floats = NDArray[np.float64]

__all__ = ["LEVEL", "Base", "ClippedNormal", "Scored", "distribution_rivals", "scored"]

LEVEL = 0.8
"""Probability of the intervals."""

WINDOWS = 100, 300, 1_000
"""Residuals that a window keeps."""

_FIRST = 10  # labels
_RATE = 0.02  # of averages of residuals


class Forecast(Protocol):
    """A distribution."""

    def crps(self, y: float, /) -> float:
        """Return the score of a label."""

    def interval(self, level: float, /) -> tuple[float, float]:
        """Return the central interval."""


class ClippedNormal(NamedTuple):
    """A normal distribution with what lies beyond a support at its ends."""

    mean: float
    std: float
    support: tuple[float, float]

    def crps(self, y: float) -> float:
        """Return the score of a label: the integral of (F - 1{y <= t})^2 over the support."""
        low, at, high = (
            (one - self.mean) / self.std for one in (self.support[0], y, self.support[1])
        )
        return self.std * (_square(at) - _square(low) + _square(-at) - _square(-high))

    def interval(self, level: float) -> tuple[float, float]:
        """Return the central interval."""
        half = self.std * float(ndtri(0.5 + level / 2.0))
        low, high = np.clip((self.mean - half, self.mean + half), *self.support).tolist()
        return low, high


def _square(z: float) -> float:
    """Return the integral of the squared normal CDF up to z."""
    phi, density = ndtr(z), np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return float(z * phi**2 + 2.0 * density * phi - ndtr(z * np.sqrt(2.0)) / np.sqrt(np.pi))


class Base(NamedTuple):
    """Normal distributions of all rows, and the support of the labels."""

    mean: Floats
    std: Floats
    support: tuple[float, float]

    def forecast(self, row: int) -> Forecast:
        """Return the normal distribution."""
        return ClippedNormal(float(self.mean[row]), float(self.std[row]), self.support)

    def learn(self, row: int, label: float) -> None:
        """Learn nothing more."""

    def around(self, points: Floats, below: float = 0.0) -> PredictiveDistribution:
        """Return the distribution of equal masses at points, and others of `below` at the ends."""
        places, counts = np.unique(np.clip(points, *self.support), return_counts=True)
        masses = (1.0 - 2.0 * below) / len(points)
        cdf = below + masses * np.concatenate(([0], counts.cumsum()))
        return PredictiveDistribution(places, np.minimum(cdf, 1.0), support=self.support)


def distribution_rivals(base: Base) -> dict[str, Rival]:
    """Return the rivals that forecast distributions."""
    windows: dict[str, Rival] = {f"residuals, {w:,}": Residuals(base, w) for w in WINDOWS}
    return {**windows, "EWMA normal": AveragedNormal(base), "crepes": Crepes(base)}


class Residuals:
    """The mean of the base plus its last residuals."""

    def __init__(self, base: Base, window: int) -> None:
        """Begin without labels."""
        self._base, self._window = base, window
        self._residuals: list[float] = []

    def forecast(self, row: int) -> Forecast:
        """Return the distribution of the label."""
        last = self._residuals[-self._window :]
        if len(last) < _FIRST:
            return self._base.forecast(row)
        return self._base.around(self._base.mean[row] + np.array(last))

    def learn(self, row: int, label: float) -> None:
        """Keep the residual."""
        self._residuals.append(label - float(self._base.mean[row]))


class AveragedNormal:
    """The mean of the base plus a normal residual: averages of it and its square at a rate of .02.

    The averages are divided by their weights, which add up to less than 1 at first.
    """

    def __init__(self, base: Base) -> None:
        """Begin without labels."""
        self._base, self._labels = base, 0
        self._sums = np.zeros(3)  # weights, residuals, squares

    def forecast(self, row: int) -> Forecast:
        """Return the distribution of the label."""
        weight, total, squares = self._sums.tolist()
        if self._labels < _FIRST:
            return self._base.forecast(row)
        mean = total / weight
        std = max(squares / weight - mean**2, 0.0) ** 0.5
        if not std:
            return self._base.around(self._base.mean[[row]] + mean)
        return ClippedNormal(float(self._base.mean[row]) + mean, std, self._base.support)

    def learn(self, row: int, label: float) -> None:
        """Average the residual and its square."""
        residual = label - float(self._base.mean[row])
        self._sums += _RATE * (np.array([1.0, residual, residual**2]) - self._sums)
        self._labels += 1


class Crepes:
    """The split conformal predictive system of all labels, as the package crepes has it.

    Residuals are divided by the standard deviation of the base. The CDF jumps by 1 / (n + 1) at
    each of n residuals; half of what is left is below them, and half above.
    """

    def __init__(self, base: Base) -> None:
        """Begin without labels."""
        self._base = base
        self._rows: list[int] = []
        self._residuals: list[float] = []
        self._make = import_module("crepes").ConformalPredictiveSystem
        self._system: Any = None

    def forecast(self, row: int) -> Forecast:
        """Return the distribution of the label."""
        n = len(self._rows)
        if n < _FIRST:
            return self._base.forecast(row)
        if self._system is None:
            sigmas = self._base.std[self._rows]
            self._system = self._make().fit(np.array(self._residuals), sigmas)
        one = slice(row, row + 1)
        (points,) = self._system.predict_cpds(self._base.mean[one], self._base.std[one])
        return self._base.around(points, 0.5 / (n + 1))

    def learn(self, row: int, label: float) -> None:
        """Keep the residual."""
        self._rows.append(row)
        self._residuals.append(label - float(self._base.mean[row]))
        self._system = None


class Scored(NamedTuple):
    """CRPS of distributions, and the ends of their intervals, a row each."""

    crps: Floats
    ends: Floats


def scored(rival: Rival, y: Floats, order: Steps) -> Scored:
    """Forecast each row of a stream, and score it."""
    crps, ends = np.empty(len(y)), np.empty((len(y), 2))
    for row, forecast in forecasts(rival, y, order):
        crps[row] = forecast.crps(float(y[row]))
        ends[row] = forecast.interval(LEVEL)
    return Scored(crps, ends)


def forecasts(rival: Rival, y: Floats, order: Steps) -> Iterator[tuple[int, Forecast]]:
    """Yield the forecast of each row when it is made."""
    for kind, row in zip(order.kinds.tolist(), order.rows.tolist(), strict=True):
        if kind == PREDICT:
            yield row, rival.forecast(row)
        else:
            rival.learn(row, float(y[row]))
