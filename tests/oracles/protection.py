"""A calibration set and a mixture of methods as one calibrator: specification of the native core.

The set and the methods learn from labels in the order of teaching; the lanes and some averages at
once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from tests.oracles.elementary import logistic
from tests.oracles.experts import clipped, mixed
from tests.oracles.methods import Kept, Methods
from tests.oracles.mixture import ProbabilityLanes
from tests.oracles.teaching_order import TeachingOrder

from abers.arrays import EXPIRE, LEARN, ONE, PREDICT, REMOVE

if TYPE_CHECKING:
    from tests.oracles.teaching_order import Taught

    from abers.arrays import Bytes, Floats, Integers
    from abers.calibration.raw_probability import Kind
    from abers.reference import CalibrationSet

__all__ = ["Protection"]

_METHODS, _SHARES, _KEPT = 11, 3, 26
_NO_NUMBER = -1


class Lesson(NamedTuple):
    """A label to be taught."""

    score: float
    label: bool
    weight: int
    time: float
    kept: Kept


class Protection(ProbabilityLanes):
    """A calibrator that serves the mean of its methods by the weights of a lane."""

    def __init__(
        self, held: CalibrationSet, scores: Kind = "probability", raw_weight: float = 0.25
    ) -> None:
        super().__init__(_METHODS, _SHARES, raw_weight, _KEPT)
        self.methods, self.positives = Methods(), 0
        self._set, self._scores = held, scores
        self._order = TeachingOrder()
        self._lessons: dict[int, Lesson] = {}

    @property
    def size(self) -> int:
        """Number of labels that the set holds."""
        return self._set.size

    def predict(
        self, score: float, weight: int, time: float, number: int
    ) -> tuple[float, float, float]:
        """Return an interval and the probability; with a number the observation now waits."""
        p0, p1 = self._set.predict(score, weight, time)
        kept = self.methods.forecast(self._raw(score), p0, p1)
        found = self.lanes.find(number)
        if found is not None:
            return p0, p1, self._served(found.lane, found.forecasts)
        p = self._served(self.lanes.next(), kept.numbers())
        if number >= 0:
            self._issue(kept, number)
        return p0, p1, p

    def learn(self, score: float, label: bool, weight: int, time: float, number: int) -> bool:  # noqa: FBT001 - the fields of a step
        """Take a label; return False, with nothing changed, if the set would become too heavy."""
        held = sum(one.weight for one in self._lessons.values())
        if not self._set.takes(weight + held, time):
            return False
        if number >= 0 and self.lanes.find(number) is None:
            self._set.learn(score, label, weight, time)
            self._count(label)
            return True
        if number < 0:
            p0, p1 = self._set.predict(score, weight, time)
            self._issue(self.methods.forecast(self._raw(score), p0, p1), number)
        found = self.lanes.awaiting[number]
        numbers = found.forecasts
        kept = Kept(numbers[:_METHODS], numbers[_METHODS:-1], numbers[-1])
        served = self._served(found.lane, numbers)
        likelihoods = [p if label else 1.0 - p for p in [*kept.forecasts, served]]
        self.settle(number, found.lane, likelihoods)
        self.methods.arrive(kept, int(label))
        self._lessons[found.moment] = Lesson(score, label, weight, time, kept)
        self._teach(self._order.label(found.moment, label) or [])
        self._distrust()
        return True

    def expire(self, number: int) -> None:
        """Stop waiting for a label."""
        found = self.lanes.find(number)
        if found is not None:
            super().expire(number)
            self._teach(self._order.expire(found.moment))

    def run(  # noqa: PLR0913, PLR0917 - one array a column
        self,
        kinds: Bytes,
        scores: Floats,
        labels: Bytes,
        weights: Integers | None,
        times: Floats | None,
        numbers: Integers | None,
        p0: Floats,
        p1: Floats,
        p: Floats,
        held: Integers | None,
    ) -> int:
        """Run steps, write the predictions, NaN elsewhere; return the steps before a refusal."""
        for row, kind in enumerate(kinds.tolist()):
            score = float(scores[row])
            weight = ONE if weights is None else int(weights[row])
            time = math.nan if times is None else float(times[row])
            number = _NO_NUMBER if numbers is None else int(numbers[row])
            p0[row] = p1[row] = p[row] = math.nan
            size = self._set.size
            if kind == PREDICT:
                p0[row], p1[row], p[row] = self.predict(score, weight, time, number)
            elif kind == LEARN:
                if not self.learn(score, bool(labels[row]), weight, time, number):
                    return row
            elif kind == EXPIRE:
                self.expire(number)
            elif kind == REMOVE:
                msg = "nothing is removed"
                raise ValueError(msg)
            if held is not None:
                held[row] = size if kind == PREDICT else self._set.size
        return len(kinds)

    def parameters(self) -> list[float]:
        """Return the state of the methods, and the products of their probabilities."""
        return [*self.methods.parameters(), *(one.number for one in self.products)]

    def _raw(self, score: float) -> float:
        if self._scores == "any":
            return clipped((self.positives + 1.0) / (self.taught + 2.0))
        return clipped(score if self._scores == "probability" else logistic(score))

    def _served(self, lane: int, kept: list[float]) -> float:
        return mixed(self.lanes.weights(lane), kept[:_METHODS])

    def _issue(self, kept: Kept, number: int) -> None:
        moment = self.lanes.moment
        self.lanes.occupy(number, kept.numbers())
        self.methods.issue(kept)
        self._teach(self._order.predict(moment))
        self._distrust()

    def _distrust(self) -> None:
        if self._order.one_sided:
            self.methods.distrust()

    def _teach(self, due: Taught) -> None:
        for moment, _ in due:
            one = self._lessons.pop(moment)
            self._set.learn(one.score, one.label, one.weight, one.time)
            self.methods.learn(one.kept, int(one.label))
            self._count(one.label)

    def _count(self, label: bool) -> None:  # noqa: FBT001 - a field too
        self.taught += 1
        self.positives += label
