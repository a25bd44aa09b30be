"""What else makes intervals of 80 % around the predictions of a base on a stream of numbers.

The first labels are for calibration: until these came all have the interval of the base. Labels are
taken in the order in which they come, and it is the interval that was forecast that hit or missed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.papers.streams_rivals_numbers import LEVEL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.papers.streams_rivals_numbers import Base

    Floats = NDArray[np.float64]
    Ends = tuple[float, float]

__all__ = ["CALIBRATION", "AdaptiveInterval", "ConformalPID", "StronglyAdaptive", "interval_rivals"]

CALIBRATION = 38
"""Labels for calibration, as many as the authors of SAOCP take: ln(2 / .1) / (2 x .2^2)."""

_DIGITS = 12  # of gains: an expert that begins as the mean gains 0, and no rounding error


class IntervalRival(ABC):
    """The mean of the base, less one distance and plus another."""

    def __init__(self, base: Base) -> None:
        """Begin without labels."""
        self._base = base
        self._first: list[float] = []  # residuals
        self._forecast: dict[int, Ends] = {}  # of the rows that wait

    def forecast(self, row: int) -> Ends:
        """Return the interval."""
        if len(self._first) < CALIBRATION:
            self._forecast[row] = self._base.forecast(row).interval(LEVEL)
        else:
            (below, above), mean = self._distances(), float(self._base.mean[row])
            self._forecast[row] = mean - below, mean + above
        return self._forecast[row]

    def learn(self, row: int, label: float) -> None:
        """Learn the residual, and on which side the label lies outside."""
        low, high = self._forecast.pop(row)
        residual = label - float(self._base.mean[row])
        if len(self._first) < CALIBRATION:
            self._first.append(residual)
            if len(self._first) == CALIBRATION:
                self._begin(np.array(self._first))
        else:
            self._step(residual, np.array([label < low, label > high], np.float64))

    @abstractmethod
    def _begin(self, residuals: Floats) -> None:
        """Begin with the labels for calibration."""

    @abstractmethod
    def _distances(self) -> tuple[float, float]:
        """Return the distances of both ends from the mean."""

    @abstractmethod
    def _step(self, residual: float, misses: Floats) -> None:
        """Learn a label."""


class AdaptiveInterval(IntervalRival):
    """Adaptive conformal inference of absolute residuals.

    Gibbs & Candes (2021), equation (2), with gamma = .005 and the last 1,250 scores, as they have.
    The interval is the whole line where alpha is 0 or less, and the mean where it is 1 or more.
    """

    _rate, _window = 0.005, 1_250

    def _begin(self, residuals: Floats) -> None:
        self._scores = np.abs(residuals).tolist()
        self._alpha = 1.0 - LEVEL

    def _distances(self) -> tuple[float, float]:
        if self._alpha <= 0.0:
            return math.inf, math.inf
        if self._alpha >= 1.0:
            return 0.0, 0.0
        last = self._scores[-self._window :]
        half = float(np.quantile(last, 1.0 - self._alpha, method="inverted_cdf"))
        return half, half

    def _step(self, residual: float, misses: Floats) -> None:
        self._scores.append(abs(residual))
        self._alpha += self._rate * (1.0 - LEVEL - float(misses.sum()))


class ConformalPID(IntervalRival):
    """Quantile tracking and error integration of signed residuals, each end by itself.

    Angelopoulos, Candes & Tibshirani (2023), Conformal PID control for time series prediction,
    without a model of the scores. The rate is .1 times the range of the last 100 scores. The
    integral is K tan(x log(t) / (C t)), with K in units of the largest score for calibration.
    """

    _rate, _window, _miss = 0.1, 100, (1.0 - LEVEL) / 2.0

    def __init__(self, base: Base, k: float, c: float) -> None:
        """Begin without labels."""
        super().__init__(base)
        self._k, self._c = k, c

    def _begin(self, residuals: Floats) -> None:
        self._scores = np.column_stack((-residuals, residuals)).tolist()
        self._tracked = np.quantile(self._scores, 1.0 - self._miss, axis=0, method="inverted_cdf")
        self._scale = self._k * float(np.abs(residuals).max())
        self._errors = np.zeros(2)

    def _distances(self) -> tuple[float, float]:
        t = len(self._scores) + 1
        angles = self._errors * math.log(t) / (self._c * t)
        below, above = self._tracked + self._scale * np.array([_tangent(one) for one in angles])
        return float(below), float(above)

    def _step(self, residual: float, misses: Floats) -> None:
        self._scores.append([-residual, residual])
        error = misses - self._miss
        self._tracked += self._rate * np.ptp(self._scores[-self._window :], axis=0) * error
        self._errors += error


def _tangent(angle: float) -> float:
    """Return the tangent, which stays infinite beyond a right angle."""
    return math.tan(angle) if abs(angle) < math.pi / 2.0 else math.copysign(math.inf, angle)


class StronglyAdaptive(IntervalRival):
    """Strongly adaptive online conformal prediction of absolute residuals.

    Bhatnagar, Wang, Xiong & Bai (2023), algorithm 1: experts that live for a while take scale-free
    gradient steps, and are weighed by betting coins. As in their package, lifetimes begin at 8, and
    the scale is the square root of 3 times the largest score for calibration. A late label teaches
    the experts as they are when it comes.
    """

    _shortest = 8

    def _begin(self, residuals: Floats) -> None:
        scores = np.abs(residuals)
        self._scale = math.sqrt(3.0) * float(scores.max())
        self._labels = 0
        self._experts = np.empty((7, 0))
        for score in scores.tolist():
            self._take(score)

    def _distances(self) -> tuple[float, float]:
        half = self._half()
        return half, half

    def _step(self, residual: float, misses: Floats) -> None:  # noqa: ARG002 - of no use to it
        self._take(abs(residual))

    def _half(self) -> float:
        """Return the mean distance of the experts, by weight."""
        born, _, age, half, _, gain, bets = self._experts
        if not len(born):
            return 0.0
        prior = 1.0 / (born**2 * (1.0 + np.floor(np.log2(born))))
        weights = prior * np.maximum(_fractions(age, gain, bets), 0.0)
        weights = weights if weights.any() else prior
        return float(weights @ half / weights.sum())

    def _take(self, score: float) -> None:
        """Let experts end and begin, then teach them."""
        self._labels += 1
        t, half = self._labels, self._half()
        life = self._shortest * (t & -t)  # the largest power of 2 that divides it
        alive = self._experts[:, self._experts[2] <= self._experts[1]]
        fresh = np.array([t, life, 0.0, half, 0.0, 0.0, 0.0])
        self._experts = np.column_stack((alive, fresh))
        loss = _pinball(score, np.array([self._half()]))
        _, _, age, halves, squares, gain, bets = self._experts
        share = _fractions(age, gain, bets)
        gains = (loss - _pinball(score, halves)) / (self._scale * LEVEL)
        gains = np.clip(gains, np.where(share > 0.0, -1.0, 0.0), 1.0).round(_DIGITS)
        gain += gains
        bets += gains * share
        age += 1.0
        slope = np.where(score > halves, -LEVEL, np.where(score < halves, 1.0 - LEVEL, 0.0))
        squares += slope**2
        rates = self._scale / np.sqrt(3.0 * np.where(squares > 0.0, squares, 1.0))
        np.maximum(halves - rates * slope, 0.0, out=halves)


def _fractions(age: Floats, gain: Floats, bets: Floats) -> Floats:
    """Return what share of its wealth a coin bets, times that wealth."""
    found: Floats = gain / np.maximum(age, 1.0) * (1.0 + bets)
    return found


def _pinball(score: float, halves: Floats) -> Floats:
    found: Floats = np.maximum(LEVEL * (score - halves), (1.0 - LEVEL) * (halves - score))
    return found


def interval_rivals(base: Base) -> dict[str, IntervalRival]:
    """Return the rivals that forecast intervals."""
    whole = math.log(len(base.mean))
    return {
        "PID, C 5": ConformalPID(base, 10.0, 5.0),
        "PID, C by length": ConformalPID(base, 1.0, 2.0 / math.pi * (1.0 - 1.0 / whole)),
        "ACI": AdaptiveInterval(base),
        "SAOCP": StronglyAdaptive(base),
    }
