"""A fixed grid of thresholds, kept up to date with every label.

A CDF at a threshold is the probability of a label up to it, which falls as the
score grows; so each threshold has a binary calibration set of negated scores. Its two probabilities
are the lower and the upper CDF there, to the last bit.

Between two thresholds the CDFs are bracketed: the lower stays at its value at the left threshold,
the upper has its value at the right threshold already just after the left.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from abers.arrays import ONE, PREDICT
from abers.backends import core
from abers.cdfs import merged, reached
from abers.regression import predictive_sets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers._core import CalibrationSet, PredictiveSet
    from abers.arrays import Bytes, Floats, Integers

    Answer: TypeAlias = tuple[float, float, Floats]

__all__ = ["GridSet"]

_CHUNK = 4096  # steps of a run with CDFs in memory at once


class GridSet:
    """The CDFs at the thresholds of a grid, and the `PredictiveSet` that it is filled from."""

    def __init__(self, memory: PredictiveSet, thresholds: Floats) -> None:
        """Make a calibration set for each threshold, filled with what `memory` remembers."""
        self.memory, self.thresholds = memory, thresholds
        max_age = 0.0 if memory.half_life else memory.lifetime
        rule = (memory.window, max_age, memory.half_life)
        self._sets: list[CalibrationSet] = [core.CalibrationSet(*rule) for _ in thresholds]
        # Where a CDF steps: the lower at a threshold, the upper just after it.
        with np.errstate(over="ignore"):  # after the largest double comes infinity
            after = np.nextafter(thresholds, np.inf)
        self._points = np.concatenate(([-np.inf], np.stack([thresholds, after]).T.ravel()))
        if memory.size:
            self._fill()

    @property
    def size(self) -> int:
        """Number of observations kept."""
        return self.memory.size

    @property
    def total(self) -> int:
        """Total weight as it was learned."""
        return self.memory.total

    @property
    def late(self) -> int:
        """Number of labels that came too late."""
        return self.memory.late

    def _fill(self) -> None:
        """Fill the set of each threshold from the observations in memory."""
        scores, labels, weights, times = predictive_sets.rows(self.memory)
        if self.memory.window or self.memory.lifetime:
            for t, cdf in zip(self.thresholds.tolist(), self._sets, strict=True):
                cdf.load_observations(-scores + 0.0, _up_to(labels, t), weights, times, self.late)
            return
        starts = np.flatnonzero(np.append(True, scores[1:] != scores[:-1]))
        groups = np.ascontiguousarray(-scores[starts][::-1]) + 0.0
        for t, cdf in zip(self.thresholds.tolist(), self._sets, strict=True):
            below = np.where(labels <= t, weights, 0)
            above, up_to = (
                np.add.reduceat(part, starts)[::-1].copy() for part in (weights - below, below)
            )
            cdf.load_groups(groups, above, up_to, self.size)

    def learn(self, score: float, label: float, weight: int, time: float) -> bool:
        """Learn an observation at every threshold."""
        if not self.memory.learn(score, label, weight, time):
            return False
        for t, cdf in zip(self.thresholds.tolist(), self._sets, strict=True):
            cdf.learn(-score + 0.0, label <= t, weight, time)
        return True

    def remove(self, score: float, label: float, weight: int) -> bool:
        """Remove an observation at every threshold."""
        if not self.memory.remove(score, label, weight):
            return False
        for t, cdf in zip(self.thresholds.tolist(), self._sets, strict=True):
            cdf.remove(-score + 0.0, label <= t, weight)
        return True

    def predict(self, score: float, time: float = math.nan) -> Answer:
        """Return both CDFs at `score`, bracketed between the thresholds."""
        pairs = [cdf.predict(-score + 0.0, time=time) for cdf in self._sets]
        lower, upper = np.array(pairs).T
        return self._answer(lower, upper)

    def quantile(self, score: float, level: float, time: float = math.nan) -> float:
        """Return the quantile of the bracketed merged CDF at `score`."""
        return float(reached(self.predict(score, time)[2], np.array([level]))[0, 0])

    def predict_many(self, scores: Floats, times: Floats | None) -> list[Answer]:
        """Return `predict` of every score."""
        kinds = np.full(len(scores), PREDICT, np.uint8)
        lower, upper = self._cdfs(kinds, scores, scores, None, times)
        return [self._answer(*pair) for pair in zip(lower.T, upper.T, strict=True)]

    def run(
        self,
        steps: Bytes,
        scores: Floats,
        labels: Floats,
        weights: Integers | None,
        times: Floats | None,
        levels: Floats,
        quantiles: Floats,
        held: Integers | None = None,
    ) -> int:
        """Run steps as `PredictiveSet.run` does; the quantiles are those of the bracketed CDFs."""
        none = np.empty((3, len(steps), 0))
        done = self.memory.run(steps, scores, labels, weights, times, levels[:0], none, held)
        for start in range(0, done, _CHUNK):
            part = slice(start, min(start + _CHUNK, done))
            lower, upper = self._cdfs(
                steps[part],
                scores[part],
                labels[part],
                None if weights is None else weights[part],
                None if times is None else times[part],
            )
            predicts = steps[part] == PREDICT
            quantiles[:, part][:, predicts] = self._quantiles(
                lower[:, predicts], upper[:, predicts], levels
            )
        return done

    def _cdfs(
        self,
        steps: Bytes,
        scores: Floats,
        labels: Floats,
        weights: Integers | None,
        times: Floats | None,
    ) -> tuple[Floats, Floats]:
        """Run steps at every threshold; return a row for each threshold, a column for each step."""
        lower, upper = np.full((2, len(self._sets), len(steps)), np.nan)
        if weights is not None:  # a prediction is for a label of weight 1
            weights = np.where(steps == PREDICT, ONE, weights)
        for i, (t, cdf) in enumerate(zip(self.thresholds.tolist(), self._sets, strict=True)):
            below = _up_to(labels, t)
            cdf.run(steps, -scores + 0.0, below, weights, times, lower[i], upper[i])
        return lower, upper

    def _bracketed(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return the values of both CDFs before and from each point on, along the first axis."""
        ends = np.ones((1, *upper.shape[1:]))
        most = np.concatenate([np.repeat(upper, 2, axis=0), ends])
        least = np.concatenate([0.0 * ends, np.repeat(lower, 2, axis=0)])
        return least, most

    def _answer(self, lower: Floats, upper: Floats) -> Answer:
        least, most = self._bracketed(lower, upper)
        steps = np.flatnonzero(np.append(True, (least[1:] != least[:-1]) | (most[1:] != most[:-1])))
        table = np.stack([self._points[steps], least[steps], most[steps]])
        return float(self._points[1]), float(self._points[-1]), table

    def _quantiles(self, lower: Floats, upper: Floats, levels: Floats) -> NDArray[np.float64]:
        least, most = self._bracketed(lower, upper)
        points = np.append(self._points, np.inf)
        # The number of values below a level is the index of the first that reaches it.
        cdfs = (merged(least, most), most, least)
        found = np.empty((3, lower.shape[1], len(levels)))
        for i, cdf in enumerate(cdfs):
            for j, level in enumerate(levels):
                found[i, :, j] = points[(cdf < level).sum(axis=0)]
        return found

    def check(self) -> None:
        """Raise an AssertionError if an invariant does not hold."""
        self.memory.check()
        for cdf in self._sets:
            cdf.check()
            assert cdf.size == self.size, (cdf.size, self.size)  # noqa: S101


def _up_to(labels: Floats, t: float) -> Bytes:
    return (labels <= t).astype(np.uint8)
