"""Calibration sets and a mixture of methods as one calibrator: specification of the native core.

The sets and the methods learn from labels in the order of teaching; the lanes and some averages at
once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.oracles.calibration_sets import ClassSets, FoldSets, OneSet
from tests.oracles.mixture import ProbabilityLanes
from tests.oracles.teaching_order import TeachingOrder

from abers.arrays import EXPIRE, LEARN, ONE, PREDICT, REMOVE

if TYPE_CHECKING:
    from abers.arrays import Bytes, Floats, Integers

__all__ = ["Protection"]

_NO_NUMBER = -1


class Lesson(NamedTuple):
    """A label to be taught."""

    scores: list[float]
    label: int
    weight: int
    time: float
    kept: Any


class Protection(ProbabilityLanes):
    """A calibrator that serves the mean of its methods by the weights of a lane."""

    def __init__(self, sets: OneSet | FoldSets | ClassSets, raw_weight: float = 0.25) -> None:
        methods: Any = sets.methods()
        super().__init__(methods.count, methods.shares_count, raw_weight, methods.kept)
        self.methods, self.positives = methods, 0
        self._sets: Any = sets
        classes = len(sets.each) if isinstance(sets, ClassSets) else 2
        self._order = TeachingOrder(classes=classes)
        self._lessons: dict[int, Lesson] = {}

    @property
    def size(self) -> int:
        """Number of labels that the sets hold."""
        size: int = self._sets.size
        return size

    def predict(self, scores: list[float], weight: int, time: float, number: int) -> list[float]:
        """Return intervals and what is served; with a number the observation now waits."""
        ends, kept = self._forecast(scores, weight, time)
        found = self.lanes.find(number)
        if found is not None:
            kept = self.methods.of(found.forecasts)
        lane = self.lanes.next() if found is None else found.lane
        served: list[float] = self.methods.serve(self.lanes.weights(lane), kept)
        if found is None and number >= 0:
            self._issue(kept, number)
        return [*served, *ends] if isinstance(self._sets, ClassSets) else [*ends, *served]

    def learn(self, scores: list[float], label: int, weight: int, time: float, number: int) -> bool:
        """Take a label; return False, with nothing changed, if a set would become too heavy."""
        held = sum(one.weight for one in self._lessons.values())
        if not self._sets.takes(scores, weight + held, time):
            return False
        if number >= 0 and self.lanes.find(number) is None:
            self._sets.learn(scores, label, weight, time)
            self._count(label)
            return True
        if number < 0:
            self._issue(self._forecast(scores, weight, time)[1], number)
        found = self.lanes.awaiting[number]
        kept = self.methods.of(found.forecasts)
        served = self.methods.served(self.lanes.weights(found.lane), kept, label)
        self.settle(number, found.lane, [*self.methods.of_label(kept, label), served])
        self.methods.arrive(kept, label)
        self._lessons[found.moment] = Lesson(scores, label, weight, time, kept)
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
        labels: Integers,
        weights: Integers | None,
        times: Floats | None,
        numbers: Integers | None,
        out: Floats,
        held: Integers | None,
    ) -> int:
        """Run steps, write the predictions, NaN elsewhere; return the steps before a refusal."""
        out[:] = math.nan
        for row, kind in enumerate(kinds.tolist()):
            given = scores[row].tolist()
            weight = ONE if weights is None else int(weights[row])
            time = math.nan if times is None else float(times[row])
            number = _NO_NUMBER if numbers is None else int(numbers[row])
            size = self.size
            if kind == PREDICT:
                out[row] = self.predict(given, weight, time, number)
            elif kind == LEARN:
                if not self.learn(given, int(labels[row]), weight, time, number):
                    return row
            elif kind == EXPIRE:
                self.expire(number)
            elif kind == REMOVE:
                msg = "nothing is removed"
                raise ValueError(msg)
            if held is not None:
                held[row] = size if kind == PREDICT else self.size
        return len(kinds)

    def parameters(self) -> list[float]:
        """Return the state of the methods, and the products of their probabilities."""
        return [*self.methods.parameters(), *(one.number for one in self.products)]

    def _forecast(self, scores: list[float], weight: int, time: float) -> Any:  # noqa: ANN401 - of its kind
        share = (self.positives + 1.0) / (self.taught + 2.0)
        return self._sets.forecast(self.methods, share, scores, weight, time)

    def _issue(self, kept: Any, number: int) -> None:  # noqa: ANN401 - of its kind
        moment = self.lanes.moment
        self.lanes.occupy(number, kept.numbers())
        self.methods.issue(kept)
        self._teach(self._order.predict(moment))
        self._distrust()

    def _distrust(self) -> None:
        if self._order.one_sided:
            self.methods.distrust()

    def _teach(self, due: list[int]) -> None:
        for moment in due:
            one = self._lessons.pop(moment)
            self._sets.learn(one.scores, one.label, one.weight, one.time)
            self.methods.learn(one.kept, one.label)
            self._count(one.label)

    def _count(self, label: int) -> None:
        self.taught += 1
        self.positives += label == 1
