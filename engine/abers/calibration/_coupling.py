"""From intervals of single classes, or of pairs of classes, to those of all classes.

The first axis is the class, and sums over it are taken in its order, so that one observation and
many give the same doubles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.calibration.intervals import log_merge

if TYPE_CHECKING:
    from abers.arrays import Floats, Integers

__all__ = ["PKPD", "normalised", "share"]


def normalised(p: Floats) -> Floats:
    """Divide by the sum over the first axis."""
    shares: Floats = p / sum(p)  # `np.sum` adds in another order
    return shares


def share(a: Floats, b: Floats) -> Floats:
    """Return a / (a + b) of scores that are not negative; 1/2 where both are 0."""
    with np.errstate(over="ignore", invalid="ignore"):  # replaced below
        total = a + b
        parts = np.where(total > 0.0, a / total, 0.5)
    huge = np.isinf(total)
    parts[huge] = (a / 2)[huge] / (a / 2 + b / 2)[huge]
    return parts


class PKPD:
    """The pairwise coupling p_i = 1 / (sum over j of 1 / r_ij - (k - 2)) of k classes, n rows.

    References
    ----------
    Price, Knerr, Personnaz & Dreyfus (1995), Pairwise neural network classifiers with
    probabilistic outputs; Manokhin (2017), equation (1).
    """

    def __init__(self, k: int, n: int) -> None:
        self._sums = np.zeros((3, k, n))  # of 1 / r: merged, lower end, upper end

    def add(self, i: Integers, j: Integers, p0: Floats, p1: Floats) -> None:
        """Add pairs of classes i < j in their order: a row of intervals for class i each."""
        merged = log_merge(p0, p1)
        with np.errstate(divide="ignore"):  # an end at 0 makes that of the class 0
            of_i = 1.0 / np.array((merged, p0, p1))
            of_j = 1.0 / (1.0 - np.array((merged, p1, p0)))
        np.add.at(self._sums, (slice(None), j), of_j)  # one after the other, repeated classes too
        np.add.at(self._sums, (slice(None), i), of_i)

    def result(self) -> tuple[Floats, Floats, Floats]:
        """Return probabilities, lower ends and upper ends, of shape (k, n); vacuous if k is 1."""
        k = self._sums.shape[1]
        if k == 1:
            return np.ones_like(self._sums[0]), self._sums[1], np.ones_like(self._sums[2])
        p, low, high = 1.0 / (self._sums - (k - 2.0))
        return normalised(p), low, high
