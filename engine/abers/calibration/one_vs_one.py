"""Several classes, each pair of them calibrated by itself and all pairs coupled.

The set of classes i < j learns the share of i in the scores of both, from the observations of the
two. To forget with the stream, a pair gets the time of the stream: event times, or the numbers of
the observations for a window. An observation that is too old by that time is ignored at once, and
dropped when the pair learns again. The observations before a class was known have score 0 for it;
the pairs with `UNSEEN` hold them.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from abers.arrays import LIFETIME
from abers.calibration import sets
from abers.calibration._coupling import PKPD, share
from abers.calibration.multiclass import UNSEEN, MultiClass, Touched, Triple
from abers.forgetting import Forgetting
from abers.serialization import MAX_COUNT
from abers.steps import LEARN, PREDICT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from abers._core import CalibrationSet
    from abers.arrays import Floats, Integers
    from abers.steps import Steps

__all__ = ["OneVsOne"]

Ends = tuple["Floats", "Floats"]


class OneVsOne(MultiClass):
    """Calibrate the class scores of any model pair by pair, and couple the pairs.

    A `VennAbers` calibrator for each pair of classes learns the observations of the two, with the
    share of the first class in their scores, p_i / (p_i + p_j), or 1/2 if both are 0. A query is
    calibrated for each pair; the merged probabilities r_ij (for log loss) are coupled to
    p_i = 1 / (sum over j of 1 / r_ij - (k - 2)) and divided by their sum. The ends of the interval
    of a class are coupled likewise, and not divided. With one class there is no pair, and its
    interval is [0, 1].

    Parameters
    ----------
    classes, window, max_age, half_life
        As in `OneVsRest`.
    max_classes
        The greatest number of classes; a label touches a pair for each other class, a prediction
        all pairs.

    Raises
    ------
    ParameterError
        As in `OneVsRest`.

    Notes
    -----
    **Guarantee.** None: neither the vector of probabilities nor the coupled intervals carry the
    guarantee of the pairs, which holds for observations of the two classes only.

    **Scores** are finite and not negative; they need not sum to one. A class that is missing from a
    dict has score 0: the model gave it no probability.

    **Classes** come and go. A pair of classes that has no observation, or none in the window, is
    vacuous: (0, 1), merged 1/2. A class keeps its column.

    **Time.** A query before the newest time seen is answered as of the newest.

    **Weights.** With a half-life, keep the sum of the weights kept below 2**24: beyond, labels that
    come half-lives late could be too heavy for a pair after others accepted them.

    References
    ----------
    Manokhin (2017), Multi-class probabilistic classification using inductive and cross Venn-Abers
    predictors, equation (1); Price, Knerr, Personnaz & Dreyfus (1995), Pairwise neural network
    classifiers with probabilistic outputs.

    Examples
    --------
    >>> from abers import OneVsOne
    >>> calibrator = OneVsOne()
    >>> calibrator.learn_one({"cat": 0.7, "dog": 0.2, "owl": 0.1}, "cat")
    >>> calibrator.learn_one({"cat": 0.4, "dog": 0.5, "owl": 0.1}, "dog")
    >>> calibrator.predict_one({"cat": 0.8, "dog": 0.1, "owl": 0.1})
    MultiInterval('cat': 0.5 [0.3333, 1], 'dog': 0.25 [0, 0.5], 'owl': 0.25 [0, 0.5])
    """

    _magic: ClassVar[bytes] = b"abersOO\x01"
    _smallest: ClassVar[float] = 0.0

    @property
    def _reach(self) -> float:
        """Age at which the stream forgets, in its own time; infinite if it keeps all."""
        if self.window:
            return self.window - 0.5  # between the last number that stays and the first that goes
        return self.max_age or LIFETIME * (self.half_life or math.inf)

    def _part(self) -> CalibrationSet:
        if self.half_life or not math.isfinite(self._reach):
            return sets.empty(Forgetting(half_life=self.half_life))
        return sets.empty(Forgetting(max_age=self._reach))

    def _grow(self, number: int) -> None:
        closed = self._classes.closed
        for i in range(number):
            self._parts[i, number] = self._part() if closed else sets.copied(self._parts[i, UNSEEN])
        if not closed:
            self._parts[number, UNSEEN] = self._part()

    def _may_be(self, clock: float) -> bool:
        if clock == -math.inf:
            return True
        if self.window:  # it counts labels
            return 1.0 <= clock <= MAX_COUNT and clock.is_integer()
        return self._by_time and math.isfinite(clock)

    def _touched(self, row: Floats, number: int) -> Iterator[Touched]:
        others = np.delete(np.arange(len(row)), number)
        first, second = np.minimum(others, number), np.maximum(others, number)
        shares = share(row[first], row[second]).tolist()
        for i, j, score in zip(first.tolist(), second.tolist(), shares, strict=True):
            yield self._parts[i, j], score, int(i == number)
        if not self._classes.closed:
            yield self._parts[number, UNSEEN], float(share(row[[number]], np.zeros(1))[0]), 1

    def _learn_row(self, row: Floats, number: int, weight: int, time: float) -> None:
        if self.window:
            time = self._clock = max(self._clock, 0.0) + 1.0
        elif self._by_time:
            self._clock = max(self._clock, time)
        for part, score, label in self._touched(row, number):
            part.learn(score, label, weight, time)

    def _predict_row(self, row: Floats, weight: int, time: float) -> Triple:
        """Predict one observation by coupling the predictions of all pairs of classes."""
        now = max(self._clock, -math.inf if math.isnan(time) else time)
        when = now if now > -math.inf else math.nan
        first, second = np.triu_indices(len(row), 1)
        shares = share(row[first], row[second]).tolist()
        pairs = [
            self._pair(i, j).predict(score, weight, when)
            for i, j, score in zip(first.tolist(), second.tolist(), shares, strict=True)
        ]
        coupling = PKPD(len(row), 1)
        p0, p1 = np.array(pairs).reshape(-1, 2, 1).swapaxes(0, 1)
        coupling.add(first, second, p0, p1)
        p, low, high = coupling.result()
        return p[:, 0], low[:, 0], high[:, 0]

    def _pair(self, i: int, j: int) -> CalibrationSet:
        """Find the calibrator of a pair; one class or both may have no number yet."""
        known = len(self._classes)
        if j < known:
            return self._parts[i, j]
        return self._parts[i, UNSEEN] if i < known else self._part()

    def _run(self, steps: Steps) -> Triple:
        """Run the steps in the set of each pair, and couple the predictions."""
        learned = np.flatnonzero(steps.kinds == LEARN)
        predicted = np.flatnonzero(steps.kinds == PREDICT)
        k = len(self._classes)
        by_class = _split(learned, steps.labels[learned], k)
        coupling, timed = PKPD(k, len(predicted)), steps._replace(times=self._times(steps))

        def run(part: CalibrationSet, rows: Integers, scores: Floats, labels: NDArray[Any]) -> Ends:
            own = timed._replace(scores=timed.scores[0]).take(rows)
            own = own._replace(scores=scores, labels=labels.astype(np.uint8))
            return sets.pairs(part, own)[:2]

        for i, j in combinations(range(k), 2):
            rows = np.sort(np.concatenate((predicted, by_class[i], by_class[j])), kind="stable")
            scores = share(steps.scores[i, rows], steps.scores[j, rows])
            p0, p1 = run(self._parts[i, j], rows, scores, steps.labels[rows] == i)
            at = steps.kinds[rows] == PREDICT
            coupling.add(np.array([i]), np.array([j]), p0[np.newaxis, at], p1[np.newaxis, at])
        if not self._classes.closed:
            for i, rows in enumerate(by_class):
                scores = share(steps.scores[i, rows], np.zeros(len(rows)))
                run(self._parts[i, UNSEEN], rows, scores, np.ones(len(rows)))
        return coupling.result()

    def _times(self, steps: Steps) -> Floats | None:
        """Return the times for the pairs, and set the clock."""
        learns = steps.kinds == LEARN
        if not learns.size or not math.isfinite(self._reach):
            return None
        if self.window:
            counted: Floats = max(self._clock, 0.0) + np.cumsum(learns)
            if learns.any():
                self._clock = float(counted[-1])
            return counted
        times = np.asarray(-math.inf if steps.times is None else steps.times, np.float64)
        newest = np.maximum.accumulate(np.where(learns, times, -math.inf))
        newest = np.maximum(newest, self._clock)
        self._clock = float(newest[-1])
        # A query has the newest time; a label its own, so that one too late is never in sight.
        given = np.where(learns, times, np.maximum(times, newest))
        return np.where(given > -math.inf, given, 0.0)


def _split(rows: Integers, classes: Integers, k: int) -> list[Integers]:
    """Part rows by their classes, each part in order."""
    order = np.argsort(classes, kind="stable")
    ends = np.searchsorted(classes[order], np.arange(1, k))
    return np.split(rows[order], ends)
