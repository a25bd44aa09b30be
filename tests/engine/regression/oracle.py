"""The definition of Venn-Abers predictive distributions, which the tests compare with.

One binary Venn-Abers prediction for each threshold; it shares no code with what it tests. `Naive`
takes unit weights and works in doubles that are each one correctly rounded ratio of small integers,
so that tens of thousands of cases take seconds; `RegressionOracle` takes weights, times and
removals, and works in fractions by way of the binary oracle.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tests.engine.oracle import Oracle, units

if TYPE_CHECKING:
    from numpy.typing import NDArray

Steps = list[tuple[float, float, float]]
"""Threshold, lower and upper CDF from it on; before all thresholds first."""


def naive_steps(scores: NDArray[np.float64], labels: NDArray[np.float64], query: float) -> Steps:
    """Return the steps of both CDFs for unit weights: min over a of max over c of a slope."""
    known = np.unique(scores)
    thresholds = np.append(-np.inf, np.unique(labels))
    at_most = (labels[:, None] <= thresholds).astype(float)
    ends = np.append(-np.inf, known)
    weight = np.array([np.sum(scores <= end) for end in ends], float)
    hits = np.array([at_most[scores <= end].sum(axis=0) for end in ends])
    left, right = ends < query, ends >= query
    if not (right & (ends == query)).any():
        right[np.flatnonzero(left)[-1]] = True  # no group of its own: it may end where it begins
    gained = hits[right][None, :, :] - hits[left][:, None, :]
    taken = (weight[right][None, :] - weight[left][:, None] + 1.0)[:, :, None]
    lower, upper = ((((gained + own) / taken).max(axis=1)).min(axis=0) for own in (0.0, 1.0))
    steps: Steps = []
    for t, low, high in zip(thresholds.tolist(), lower.tolist(), upper.tolist(), strict=True):
        if not steps or steps[-1][1:] != (low, high):
            steps.append((t, low, high))
    return steps


class Pair(NamedTuple):
    """Something learned (or, with a negative weight, removed)."""

    score: float
    label: float
    weight: float
    time: float


class RegressionOracle:
    """A calibrator that obeys the definition: a binary oracle for each threshold."""

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        """Forget as the one option given says; never, without one."""
        self.options = (window, max_age, half_life)
        self.history: list[Pair] = []
        self.any = self._binary(math.inf)

    def __len__(self) -> int:
        """Count the observations kept."""
        return len(self.any)

    @property
    def late(self) -> int:
        """Count the labels that came too late."""
        return self.any.late

    def _binary(self, threshold: float) -> Oracle:
        binary = Oracle(*self.options)
        for pair in self.history:
            self._tell(binary, pair, threshold)
        return binary

    @staticmethod
    def _tell(binary: Oracle, pair: Pair, threshold: float) -> None:
        above = int(pair.label > threshold)
        if pair.weight > 0.0:
            binary.learn(pair.score, above, pair.weight, pair.time)
        else:
            assert binary.remove(pair.score, above, -pair.weight)

    def learn(
        self, score: float, label: float, weight: float = 1.0, time: float = -math.inf
    ) -> None:
        """Learn an observation."""
        self.history.append(Pair(score, label, weight, time))
        self._tell(self.any, self.history[-1], math.inf)

    def remove(self, score: float, label: float, weight: float = 1.0) -> bool:
        """Take weight of a pair away; False if it is not there or would not end with the count."""
        signs = [(p, 1 if p.weight > 0 else -1) for p in self.history]
        there = sum(s * units(abs(p.weight)) for p, s in signs if p[:2] == (score, label))
        total = sum(s * units(abs(p.weight)) for p, s in signs)
        if there < units(weight) or (len(self) == 1) != (total == units(weight)):
            return False
        self.history.append(Pair(score, label, -weight, -math.inf))
        self._tell(self.any, self.history[-1], math.inf)
        return True

    def labels(self, time: float = -math.inf) -> list[float]:
        """List the labels that a query at a time sees."""
        found = {pair.label for pair in self.history}
        return sorted(y for y in found if self._seen(y, time))

    def _seen(self, label: float, time: float) -> bool:
        """Return whether some weight of a label counts: then it makes a difference at it."""
        just_below = float(np.nextafter(label, -math.inf))
        mass = [sum(w[1] for _, w in self._binary(t).groups(time)) for t in (just_below, label)]
        return mass[0] != mass[1]

    def steps(self, score: float, time: float = -math.inf) -> Steps:
        """Return the steps of both CDFs, each value the double nearest to the exact one."""
        found: Steps = []
        for t in (-math.inf, *self.labels(time)):
            binary = self._binary(t)
            exact = [1 - binary.probability(y, score, 1.0, time) for y in (1, 0)]
            values = (float(Fraction(exact[0])), float(Fraction(exact[1])))
            if not found or values != found[-1][1:]:
                found.append((t, *values))
        return found
