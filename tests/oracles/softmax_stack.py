"""Online multinomial regression with one line for all classes: specification of the native core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracles.elementary import exponential
from tests.oracles.experts import clipped

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SoftmaxStack", "softmax", "vector"]

_LEAST = -35.0  # logarithm of a probability, less that of the largest


def vector(p: Sequence[float]) -> list[float]:
    """Return numbers as probabilities of classes: clipped, and divided by their sum."""
    found = [clipped(one) for one in p]
    total = 0.0
    for one in found:
        total += one
    return [one / total for one in found]


def softmax(z: Sequence[float]) -> list[float]:
    """Return the probabilities that have these logarithms, but for a constant."""
    most, total = max(z), 0.0
    found = [exponential(max(one - most, _LEAST)) for one in z]
    for one in found:
        total += one
    return [one / total for one in found]


class SoftmaxStack:
    """A line of features, with the curvature of the loss, that forgets by `kept` a label.

    At first the line is `line`, and the inverse of the curvature has the `variance` of each
    feature on its diagonal. What is forgotten of both is drawn to that.
    """

    def __init__(self, line: Sequence[float], variance: Sequence[float], kept: float = 1.0) -> None:
        self._first, self._variance, self._kept = [*line], [*variance], kept
        self._line = [*line]
        self._begin()

    def _begin(self) -> None:
        size = len(self._line)
        self._curvature = [[0.0] * (size - a) for a in range(size)]  # from the diagonal on
        for row, variance in zip(self._curvature, self._variance, strict=True):
            row[0] = 1.0 / variance

    def forecast(self, features: list[list[float]]) -> list[float]:
        """Return logarithms of the probabilities, from the features of each class."""
        found = []
        for row in features:
            total = 0.0
            for weight, one in zip(self._line, row, strict=True):
                total += weight * one
            found.append(total)
        return found

    def learn(self, features: list[list[float]], label: int) -> None:
        """Forget, then take a Newton step; begin anew where rounding left no curvature."""
        p, size = softmax(self.forecast(features)), len(self._line)
        mean = [0.0] * size
        for chance, row in zip(p, features, strict=True):
            mean = [one + chance * more for one, more in zip(mean, row, strict=True)]
        step = [one - expected for one, expected in zip(features[label], mean, strict=True)]
        if self._kept < 1.0:
            self._forget(step)
        for chance, row in zip(p, features, strict=True):
            away = [one - expected for one, expected in zip(row, mean, strict=True)]
            for a, sums in enumerate(self._curvature):
                times = chance * away[a]
                for b in range(size - a):
                    sums[b] += times * away[a + b]
        if self._solve(step):
            self._line = [one + more for one, more in zip(self._line, step, strict=True)]
        else:
            self._begin()

    def _forget(self, step: list[float]) -> None:
        lost = 1.0 - self._kept
        for a, row in enumerate(self._curvature):
            row[:] = [one * self._kept for one in row]
            step[a] -= lost * ((self._line[a] - self._first[a]) / self._variance[a])
            row[0] += lost / self._variance[a]

    def _solve(self, x: list[float]) -> bool:
        """Divide by the curvature, by elimination; return whether that is one."""
        rest = [[*row] for row in self._curvature]
        for a, row in enumerate(rest):
            if not row[0] > 0.0:
                return False
            for b in range(1, len(row)):
                ratio = row[b] / row[0]
                for c in range(b, len(row)):
                    rest[a + b][c - b] -= ratio * row[c]
                x[a + b] -= ratio * x[a]
        for a in reversed(range(len(x))):
            for b in range(1, len(rest[a])):
                x[a] -= rest[a][b] * x[a + b]
            x[a] /= rest[a][0]
        return True

    def parameters(self) -> list[float]:
        """Return the line, and the upper triangle of the curvature by row."""
        return [*self._line, *(one for row in self._curvature for one in row)]
