"""Methods that a protected distribution mixes: the specification of the native core.

The sets of Venn-Abers bands are those of the core, which have a definition of their own.
"""

from __future__ import annotations

import math
from bisect import insort
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tests.oracles.elementary import exponential
from tests.oracles.experts import scale
from tests.oracles.quantile_forecasts import moved, normal, pit, recalibrated, shrunk
from tests.oracles.residual_line import Lesson, Moments, ResidualLine

from abers.backends import core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats

__all__ = ["FORECASTS", "DistributionMethods", "Kept"]

FORECASTS = 9
"""Number of methods that are no share."""

_RECENT, _FEW, _SOME = 1000, 100, 300  # labels
_FEWEST = 10  # labels, with which more than the base is known
_RATES = (0.0, 1e-3, 1e-2, 1e-1)
_BASE = 0.3  # weight of the base in a share at first
_MOST = 300.0
_ERROR_RATE = 0.02
_LARGEST = float(np.finfo(np.float64).max)


class Kept(NamedTuple):
    """What an observation keeps until its label comes."""

    forecasts: Floats  # a row a method
    shares: list[list[float]]  # the weights that each share gives to the methods
    lesson: Lesson


class _Share:
    """Fixed share over methods, at several rates."""

    def __init__(self, divisor: float) -> None:
        self.divisor = divisor
        self.prior = [_BASE, *[(1.0 - _BASE) / (FORECASTS - 1)] * (FORECASTS - 1)]
        self.table = [self.prior.copy() for _ in _RATES]

    def weights(self) -> list[float]:
        """Return the weight of each method, over all rates."""
        found, total = [0.0] * FORECASTS, 0.0
        for row in self.table:
            for k, one in enumerate(row):
                found[k] += one
                total += one
        return [one / total for one in found]

    def learn(self, losses: Sequence[float], mean: float) -> None:
        """Learn the losses of the methods, given the mean loss of the base."""
        least = min(losses)
        away = [(loss - least) / (self.divisor * mean) for loss in losses]
        likelihoods = [exponential(-min(one, _MOST)) for one in away]
        for rate, row in zip(_RATES, self.table, strict=True):
            total = 0.0
            for k, likelihood in enumerate(likelihoods):
                row[k] *= likelihood
                total += row[k]
            for k, one in enumerate(row):
                row[k] = (1.0 - rate) * one + rate * self.prior[k] * total
        flat = [one for row in self.table for one in row]
        scale(flat)
        self.table = [flat[i : i + FORECASTS] for i in range(0, len(flat), FORECASTS)]


class DistributionMethods:
    """Forecasts of all methods, of `members` quantiles each, within a support."""

    def __init__(
        self, support: tuple[float, float], members: int, window: int, *, pointwise: bool
    ) -> None:
        self.support, self.members, self.pointwise = support, members, pointwise
        self.width = support[1] - support[0]
        self.sets = [core.PredictiveSet(window), core.PredictiveSet(_RECENT)]
        self.counts = np.zeros(members, np.int64)
        self.residuals: list[float] = []  # by arrival
        self.of_line: list[float] = []
        self.errors, self.line = Moments(), ResidualLine()
        self.base_loss = 0.0
        self.shares = [_Share(1.0), _Share(4.0)]

    def forecast(self, score: Floats) -> Kept:
        """Return what an observation keeps."""
        at = self._inside(self._point(score))
        base = self._clipped(
            self._moved(at, self.residuals, _RECENT) if self.pointwise else np.array(score)
        )
        bands = [one.predict(self._point(score))[2] for one in self.sets]
        rows = [base, recalibrated(base, self.counts), *(shrunk(one, base) for one in bands)]
        if self.errors.count < _FEWEST:
            rows += [base] * 3
        else:
            rows += [self._moved(at, self.residuals, most) for most in (_FEW, _SOME)]
            deviation = self.width * math.sqrt(self.errors.variance)
            rows.append(normal(at + self.width * self.errors.mean, deviation, self.members))
        features, spread, shift = self.line.forecast((at - self.support[0]) / self.width)
        along = self._inside(at + self.width * shift)
        if self.line.labels < _FEWEST:
            rows += [base] * 2
        else:
            deviation = self.width * math.sqrt(self.line.variance)
            rows.append(normal(along, deviation, self.members))
            rows.append(self._moved(along, self.of_line, _SOME))
        shares = [one.weights() for one in self.shares]
        return Kept(self._clipped(np.array(rows)), shares, Lesson(features, spread, along))

    def issue(self, score: Floats) -> None:
        """Note that an observation waits for its label."""
        at = self._inside(self._point(score))
        self.line.scores.add((at - self.support[0]) / self.width)

    def learn(
        self, score: Floats, label: float, kept: Kept | None, losses: Sequence[float]
    ) -> None:
        """Learn a label; nothing is kept of an observation that is not known."""
        for one in self.sets:
            one.learn(self._point(score), label)
        residual = label - self._inside(self._point(score))
        self.residuals.append(residual)
        self.errors.add(residual / self.width, _ERROR_RATE)
        if kept is None:
            return
        base = kept.forecasts[0]
        if base[0] < base[-1]:
            level = pit(base, label)
            self.counts[min(int(level * self.members), self.members - 1)] += 1
        from_line = label - kept.lesson.moved
        self.of_line.append(from_line)
        self.line.learn(kept.lesson, residual / self.width, from_line / self.width)
        self.base_loss += losses[0]
        mean = self.base_loss / self.line.labels
        if mean > 0.0:
            for share in self.shares:
                share.learn(losses[:FORECASTS], mean)

    def _point(self, score: Floats) -> float:
        if self.pointwise:
            return float(score[0])
        with np.errstate(over="ignore"):
            mean = np.cumsum(np.array(score) / self.members)[-1]
        return float(np.clip(mean, -_LARGEST, _LARGEST)) + 0.0

    def _moved(self, at: float, residuals: list[float], most: int) -> Floats:
        held: list[float] = []
        for one in residuals[-most:]:
            insort(held, one)
        return moved(at, held, self.members)

    def _clipped(self, values: Floats) -> Floats:
        return np.clip(values, *self.support) + 0.0

    def _inside(self, value: float) -> float:
        low, high = self.support
        return min(max(value, low), high) + 0.0
