"""Line of scores and late residuals: the specification of the native core.

Recursive least squares that forget with the factor .999. Numbers come as shares of the width of the
support. Features and targets are divided by the deviation of residuals at their prediction, so the
line does not depend on a unit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Lesson", "Moments", "ResidualLine"]

_SIZE = 5
_PRIOR, _WIDEST = 0.1, 1.0  # variance of a weight: at first, and at most after forgetting
_KEPT = 0.999
_FAR = 8.0  # deviations
_RATE = 0.01  # of squares
_RATES = (0.1, 0.01)  # of averages of residuals


class Moments:
    """Mean and variance of all numbers, or with a least rate more of the newest."""

    def __init__(self) -> None:
        self.mean = self.variance = 0.0
        self.count = 0

    def add(self, value: float, least_rate: float = 0.0) -> None:
        """Add a number."""
        self.count += 1
        rate = max(1.0 / self.count, least_rate)
        away = value - self.mean
        self.mean += rate * away
        self.variance += rate * (away * (value - self.mean) - self.variance)


class Lesson(NamedTuple):
    """What an observation keeps."""

    features: list[float]
    scale: float  # the deviation of residuals when it was predicted
    moved: float  # the line's number, in the unit of the label


class ResidualLine:
    """Weights of 1, the score, the last residual, and two averages of residuals."""

    def __init__(self) -> None:
        self.line = [0.0] * _SIZE
        self._begin()
        self.last, self.averages = 0.0, [0.0, 0.0]
        self.square = self.variance = 0.0
        self.scores, self.labels = Moments(), 0

    def _begin(self) -> None:
        self.inverse = [[_PRIOR * (a == b) for b in range(_SIZE)] for a in range(_SIZE)]

    def forecast(self, score: float) -> tuple[list[float], float, float]:
        """Return the features, their scale, and how far the line is from the score."""
        scale = math.sqrt(self.square)
        if scale == 0.0:
            return [0.0] * _SIZE, 0.0, 0.0
        spread = math.sqrt(self.scores.variance)
        seen = (score - self.scores.mean) / spread if spread > 0.0 else 0.0
        late = [one / scale for one in (self.last, *self.averages)]
        features = [1.0, min(max(seen, -_FAR), _FAR), *late]
        return features, scale, scale * _dot(self.line, features)

    def learn(self, lesson: Lesson, residual: float, from_line: float) -> None:
        """Learn how far a label is from the score, and from the line's number."""
        if lesson.scale > 0.0:
            self._fit(lesson.features, min(max(residual / lesson.scale, -_FAR), _FAR))
        self.labels += 1
        rate = max(_RATE, 1.0 / self.labels)
        self.square += rate * (residual * residual - self.square)
        self.variance += rate * (from_line * from_line - self.variance)
        self.last = residual
        for i, one in enumerate(_RATES):
            self.averages[i] += one * (residual - self.averages[i])

    def _fit(self, f: list[float], target: float) -> None:
        most, own = _WIDEST * _KEPT, [self.inverse[a][a] for a in range(_SIZE)]
        bound = [math.sqrt(most / now) if now > most else 1.0 for now in own]
        for a in range(_SIZE):
            for b in range(_SIZE):
                self.inverse[a][b] *= bound[a] * bound[b] / _KEPT
        g = [_dot(row, f) for row in self.inverse]
        q = _dot(g, f)
        if not q >= 0.0:
            self._begin()
            return
        rest = 1.0 / (1.0 + q)
        for a in range(_SIZE):
            for b in range(_SIZE):
                self.inverse[a][b] -= g[a] * g[b] * rest
        if not all(self.inverse[a][a] >= 0.0 for a in range(_SIZE)):
            self._begin()
            return
        error = (target - _dot(self.line, f)) * rest
        self.line = [one + each * error for one, each in zip(self.line, g, strict=True)]


def _dot(one: list[float], other: list[float]) -> float:
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total += a * b
    return total
