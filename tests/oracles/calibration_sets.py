"""The calibration sets of a protected calibrator: the specification of the native core.

A step has a row of scores: a single one; one for each fold, and the fold of the observation; or one
for each class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracles.class_methods import ClassMethods
from tests.oracles.elementary import geometric_mean, logistic
from tests.oracles.experts import clipped
from tests.oracles.methods import Methods, drawn
from tests.oracles.softmax_stack import vector

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oracles.class_methods import ClassKept
    from tests.oracles.methods import Kept

    from abers.calibration.protected import Kind
    from abers.reference import CalibrationSet

__all__ = ["ClassSets", "FoldSets", "OneSet"]

_LEAST_MERGED = 2.0**-53


def _merged(p: float) -> float:
    return min(max(p, _LEAST_MERGED), 1.0 - _LEAST_MERGED)


class FoldSets:
    """A set for each fold: that of its own learns an observation."""

    def __init__(self, make: Callable[[], CalibrationSet], folds: int, scores: Kind) -> None:
        self.each, self._scores = [make() for _ in range(folds)], scores

    @property
    def size(self) -> int:
        """Number of labels that the sets hold."""
        return sum(one.size for one in self.each)

    def methods(self) -> Methods:
        """Return the methods that the sets feed."""
        return Methods()

    def takes(self, scores: list[float], weight: int, time: float) -> bool:
        """Return whether the set of an observation takes it."""
        return self.each[int(scores[-1])].takes(weight, time)

    def learn(self, scores: list[float], label: int, weight: int, time: float) -> None:
        """Learn an observation."""
        self.each[int(scores[-1])].learn(scores[int(scores[-1])], label, weight, time)

    def forecast(
        self, methods: Methods, share: float, scores: list[float], weight: int, time: float
    ) -> tuple[list[float], Kept]:
        """Return the ends, and what the observation keeps."""
        pairs = [
            one.predict(score, weight, time)
            for one, score in zip(self.each, scores[:-1], strict=True)
        ]
        for_0 = geometric_mean([1.0 - p0 for p0, _ in pairs])
        for_1 = geometric_mean([p1 for _, p1 in pairs])
        low, high = sorted([1.0 - for_0, for_1])
        raw = clipped(share if self._scores == "any" else self._median(scores[:-1]))
        merge = _merged(for_1 / (for_0 + for_1))
        return [low, high], methods.forecast(raw, drawn(merge, high - low, raw))

    def _median(self, scores: list[float]) -> float:
        p = sorted(map(logistic, scores) if self._scores == "logit" else scores)
        return (p[(len(p) - 1) // 2] + p[len(p) // 2]) / 2.0


class OneSet:
    """A single set."""

    def __init__(self, held: CalibrationSet, scores: Kind) -> None:
        self.each, self._scores = [held], scores

    @property
    def size(self) -> int:
        """Number of labels that the set holds."""
        return self.each[0].size

    def methods(self) -> Methods:
        """Return the methods that the set feeds."""
        return Methods()

    def takes(self, scores: list[float], weight: int, time: float) -> bool:
        """Return whether the set takes an observation."""
        del scores
        return self.each[0].takes(weight, time)

    def learn(self, scores: list[float], label: int, weight: int, time: float) -> None:
        """Learn an observation."""
        self.each[0].learn(scores[0], label, weight, time)

    def forecast(
        self, methods: Methods, share: float, scores: list[float], weight: int, time: float
    ) -> tuple[list[float], Kept]:
        """Return the ends, and what the observation keeps."""
        score = scores[0]
        p0, p1 = self.each[0].predict(score, weight, time)
        says = {"any": share, "logit": logistic(score), "probability": score}
        raw = clipped(says[self._scores])
        merge = _merged(p1 / (1.0 - p0 + p1))
        return [p0, p1], methods.forecast(raw, drawn(merge, p1 - p0, raw))


class ClassSets:
    """A set for each class, which learns all observations: of the class, or not."""

    def __init__(self, make: Callable[[], CalibrationSet], classes: int) -> None:
        self.each = [make() for _ in range(classes)]

    @property
    def size(self) -> int:
        """Number of labels that each set holds."""
        return self.each[0].size

    def methods(self) -> ClassMethods:
        """Return the methods that the sets feed."""
        return ClassMethods(len(self.each))

    def takes(self, scores: list[float], weight: int, time: float) -> bool:
        """Return whether the sets take an observation."""
        del scores
        return self.each[0].takes(weight, time)

    def learn(self, scores: list[float], label: int, weight: int, time: float) -> None:
        """Learn an observation."""
        for c, (one, score) in enumerate(zip(self.each, scores, strict=True)):
            one.learn(score, int(label == c), weight, time)

    def forecast(
        self, methods: ClassMethods, share: float, scores: list[float], weight: int, time: float
    ) -> tuple[list[float], ClassKept]:
        """Return the ends, and what the observation keeps."""
        del share
        raw = vector(scores)
        ends = [
            one.predict(score, weight, time) for one, score in zip(self.each, scores, strict=True)
        ]
        calibrated = [
            drawn(_merged(p1 / (1.0 - p0 + p1)), p1 - p0, p)
            for (p0, p1), p in zip(ends, raw, strict=True)
        ]
        kept = methods.forecast(raw, vector(calibrated))
        return [*(p0 for p0, _ in ends), *(p1 for _, p1 in ends)], kept
