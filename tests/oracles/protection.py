"""Calibration sets and their mixture as one calibrator: the specification of the native core.

A step runs on all of them, or is refused by all of them: what may be refused is asked first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from abers.arrays import EXPIRE, LEARN, ONE, PREDICT, REMOVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.oracles.aggregation import Aggregation

    from abers.arrays import Bytes, Floats, Integers
    from abers.reference import CalibrationSet

__all__ = ["Protection", "shrunk"]

_SHRINK = 30.0  # observations that the raw probability counts as
_NARROWEST = 1e-9
_LEAST_MERGED = 2.0**-53
_NO_NUMBER = -1


def shrunk(p0: float, p1: float, raw: float) -> float:
    """Return the merge of an interval, drawn to the raw probability where the interval is wide."""
    evidence = 1.0 / max(p1 - p0, _NARROWEST) - 1.0
    merged = min(max(p1 / (1.0 - p0 + p1), _LEAST_MERGED), 1.0 - _LEAST_MERGED)
    return (evidence * merged + _SHRINK * raw) / (evidence + _SHRINK)


class Protection:
    """Calibration sets, and the mixture of their shrunk probabilities.

    The first set has event times, and its intervals are returned. To the others the time of an
    observation is the number of predictions before it.
    """

    def __init__(
        self, mixture: Aggregation, sets: Sequence[CalibrationSet], positives: int = 0
    ) -> None:
        self.positives = positives  # labels 1 that were learned
        self._mixture, self._sets = mixture, [*sets]

    def predict(
        self, score: float, raw: float, weight: int, time: float, number: int
    ) -> tuple[float, float, float]:
        """Return an interval and the protected probability."""
        p0, p1, given = self._forecast(score, raw, weight, self._times(time, number))
        return p0, p1, self._mixture.predict(raw, given, number)

    def learn(  # noqa: PLR0913, PLR0917 - the fields of a step
        self,
        score: float,
        raw: float,
        label: bool,  # noqa: FBT001 - a field too
        weight: int,
        time: float,
        number: int,
    ) -> bool:
        """Learn a label; return False, with nothing changed, if a set would become too heavy."""
        times = self._times(time, number)
        if not all(one.takes(weight, at) for one, at in zip(self._sets, times, strict=True)):
            return False
        known = self._mixture.lanes.find(number) is not None
        given = [] if known else self._forecast(score, raw, weight, times)[2]
        for one, at in zip(self._sets, times, strict=True):
            one.learn(score, label, weight, at)
        self._mixture.learn(raw, given, label, number)
        self.positives += label
        return True

    def expire(self, number: int) -> None:
        """Stop waiting for a label."""
        self._mixture.expire(number)

    def run(  # noqa: PLR0913, PLR0917 - one array a column
        self,
        kinds: Bytes,
        scores: Floats,
        raw: Floats,
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
            score, its = float(scores[row]), float(raw[row])
            weight = ONE if weights is None else int(weights[row])
            time = math.nan if times is None else float(times[row])
            number = _NO_NUMBER if numbers is None else int(numbers[row])
            p0[row] = p1[row] = p[row] = math.nan
            if kind == PREDICT:
                p0[row], p1[row], p[row] = self.predict(score, its, weight, time, number)
            elif kind == LEARN:
                if not self.learn(score, its, bool(labels[row]), weight, time, number):
                    return row
            elif kind == EXPIRE:
                self.expire(number)
            elif kind == REMOVE:
                msg = "nothing is removed"
                raise ValueError(msg)
            if held is not None:
                held[row] = self._sets[0].size
        return len(kinds)

    def _times(self, time: float, number: int) -> list[float]:
        """Return the time of a step for each set."""
        found = self._mixture.lanes.find(number)
        moment = float(self._mixture.moment if found is None else found.moment)
        return [time, *[moment] * (len(self._sets) - 1)]

    def _forecast(
        self, score: float, raw: float, weight: int, times: list[float]
    ) -> tuple[float, float, list[float]]:
        """Return the interval, and the shrunk probability of each set."""
        ends = [one.predict(score, weight, at) for one, at in zip(self._sets, times, strict=True)]
        return *ends[0], [shrunk(low, high, raw) for low, high in ends]
