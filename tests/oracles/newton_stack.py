"""Online logistic regression that may forget: the specification of the native core."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tests.oracles.elementary import logistic
from tests.oracles.experts import clipped

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NewtonStack"]

_FLAT = 0.001  # least curvature of the loss
_STEEPEST = 35.0  # log odds


class NewtonStack:
    """A line of features, with P, the inverse of the curvature, that forgets by `kept` a label.

    At first the line is `line`, and P has the `variance` of each feature on its diagonal; so much
    no variance exceeds later.
    """

    def __init__(
        self,
        line: Sequence[float],
        variance: Sequence[float],
        kept: float = 1.0,
        *,
        reverts: bool = False,
    ) -> None:
        self._first, self._variance = [*line], [*variance]
        self._kept, self._reverts = kept, reverts
        self._line = [*line]
        self._begin()

    def _begin(self) -> None:
        size = range(len(self._line))
        self._p = [[self._variance[a] if a == b else 0.0 for b in size] for a in size]

    def forecast(self, features: list[float]) -> float:
        """Return the probability of label 1."""
        return clipped(self._probability(features))

    def _probability(self, features: list[float]) -> float:
        return logistic(min(max(_dot(self._line, features), -_STEEPEST), _STEEPEST))

    def learn(self, features: list[float], label: int) -> None:
        """Forget, then take a Newton step; P begins anew where rounding has made it no variance."""
        p = self._probability(features)
        if self._reverts:
            self._revert()
        if self._kept < 1.0:
            self._forget()
        h = max(p * (1.0 - p), _FLAT)
        g = self._times(features)
        q = _dot(g, features)
        if q < 0.0:
            self._begin()
            return
        rest = 1.0 / (1.0 + h * q)
        root = math.sqrt(h * rest)
        u = [root * one for one in g]
        for a, row in enumerate(self._p):
            for b in range(len(row)):
                row[b] -= u[a] * u[b]
        if any(row[a] < 0.0 for a, row in enumerate(self._p)):
            self._begin()
            return
        error = (label - p) * rest
        self._line = [one + more * error for one, more in zip(self._line, g, strict=True)]

    def _times(self, values: list[float]) -> list[float]:
        """Return P times a vector; the order of the sums is that of one triangle."""
        found = [0.0] * len(values)
        for a, row in enumerate(self._p):
            for b in range(a, len(row)):
                found[b] += row[b] * values[a]
            sums = [0.0, 0.0]
            for b in range(a + 1, len(row)):
                sums[(b - a) % 2] += row[b] * values[b]
            found[a] += sums[1] + sums[0]
        return found

    def _revert(self) -> None:
        """Draw the line to the first one, by as much as is forgotten."""
        both = zip(self._line, self._first, self._variance, strict=True)
        g = self._times([(now - first) / variance for now, first, variance in both])
        rate = 1.0 - self._kept
        self._line = [one - rate * more for one, more in zip(self._line, g, strict=True)]

    def _forget(self) -> None:
        more = 1.0 / self._kept
        bound = []
        for a, variance in enumerate(self._variance):
            most = variance * self._kept
            bound.append(math.sqrt(most / self._p[a][a]) if self._p[a][a] > most else 1.0)
        for a, row in enumerate(self._p):
            for b in range(a, len(row)):
                row[b] = self._p[b][a] = row[b] * (bound[a] * bound[b] * more)

    def parameters(self) -> list[float]:
        """Return the line, and the upper triangle of P by row."""
        return [*self._line, *(x for a, row in enumerate(self._p) for x in row[a:])]


def _dot(one: list[float], other: list[float]) -> float:
    total = 0.0
    for left, right in zip(one, other, strict=True):
        total += left * right
    return total
