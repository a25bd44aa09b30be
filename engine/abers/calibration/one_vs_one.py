"""Several classes, each pair of them calibrated by itself and all pairs coupled.

Governing rule: the calibrator of classes i < j is the binary one, on the share of i in
the scores of both, and on the observations of the two that the whole stream remembers. To forget
with the stream, a pair is told the time of the stream: event times, or the numbers of the
observations for a window; what is too old by that time is out of sight at once, and out of
memory when the pair learns again. What a class has missed before it was known are observations
of score 0, which the pairs with `UNSEEN` hold ready.
"""

from __future__ import annotations

import copy
import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from abers._saved import MOST
from abers.calibration._coupling import PKPD, share
from abers.calibration._multiclass import MultiClass
from abers.calibration._parts import UNSEEN, Given, Steps, Triple
from abers.calibration.venn_abers import VennAbers
from abers.reference import LEARN, LIFETIME, PREDICT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from abers.calibration._typing import Floats, Integers

__all__ = ["OneVsOne"]

Ends = tuple["Floats", "Floats"]


class OneVsOne(MultiClass):
    """Calibrate the class scores of any model pair by pair, and couple the pairs.

    A `VennAbers` calibrator for each pair of classes learns the observations of the two,
    with the share of the first class in their scores, p_i / (p_i + p_j), or 1/2 if both
    are 0. A query is calibrated for each pair; the merged probabilities r_ij (for log
    loss) are coupled to p_i = 1 / (sum over j of 1 / r_ij - (k - 2)) and divided by their
    sum. The ends of the interval of a class are coupled likewise, and not divided. With
    one class there is no pair, and its interval is [0, 1].

    At most one of `window`, `max_age` and `half_life` may be given; with none,
    everything is kept.

    Parameters
    ----------
    classes
        All classes there will ever be, strings, whole numbers or truth values: others
        are then refused. By default classes are known from their first score or label on.
    window
        Keep only the last `window` learned observations, of whatever class.
    max_age
        Keep only observations whose event time is at most `max_age` before the
        newest time seen, in the unit of the times.
    half_life
        Let the weight of an observation halve every `half_life` of event time;
        after 30 half-lives it is dropped.
    max_classes
        The greatest number of classes; a label touches a pair for each other class, a
        prediction all pairs.

    Raises
    ------
    ParameterError
        If more than one of the three is given, one is not positive, or the classes are
        not 2 to `max_classes` different labels.

    Notes
    -----
    **Guarantee.** None: neither the vector of probabilities nor the coupled intervals
    carry the guarantee of the pairs, which holds for observations of the two classes only.

    **Scores** are finite and not negative; they need not sum to one. A class that a
    mapping leaves out has score 0: the model gave it no probability.

    **Classes** come and go. A pair of classes that has no observation, or none in the
    window, is vacuous: (0, 1), merged 1/2. A class keeps its column for ever.

    **Time.** A query whose time is before the newest time seen is answered as of the
    newest.

    **Weights.** With a half-life, keep the sum of the weights remembered below 2**24: beyond,
    labels that come half-lives late could be too heavy for a pair after others took them.

    **Threads** may share a calibrator: every call is atomic.

    References
    ----------
    Manokhin (2017), Multi-class probabilistic classification using inductive and cross
    Venn-Abers predictors, equation (1); Price, Knerr, Personnaz & Dreyfus (1995),
    Pairwise neural network classifiers with probabilistic outputs.

    Examples
    --------
    >>> from abers import OneVsOne
    >>> calibrator = OneVsOne()
    >>> calibrator.learn_one({"cat": 0.7, "dog": 0.2, "owl": 0.1}, "cat")
    >>> calibrator.learn_one({"cat": 0.4, "dog": 0.5, "owl": 0.1}, "dog")
    >>> calibrator.predict_one({"cat": 0.8, "dog": 0.1, "owl": 0.1})
    MultiInterval('cat': 0.5 [0.3333, 1], 'dog': 0.25 [0, 0.5], 'owl': 0.25 [0, 0.5])
    """

    _magic = b"abersOO\x01"
    _smallest = 0.0

    @property
    def _reach(self) -> float:
        """How far back the stream remembers, in its own time; infinite if for ever."""
        if self.window:
            return self.window - 0.5  # between the last number that stays and the first that goes
        return self.max_age or LIFETIME * (self.half_life or math.inf)

    def _part(self) -> VennAbers:
        if self.half_life or not math.isfinite(self._reach):
            return VennAbers(half_life=self.half_life)
        return VennAbers(max_age=self._reach)

    def _grow(self, number: int) -> None:
        closed = self._classes.closed
        for i in range(number):
            self._parts[i, number] = self._part() if closed else copy.copy(self._parts[i, UNSEEN])
        if not closed:
            self._parts[number, UNSEEN] = self._part()

    def _may_be(self, clock: float) -> bool:
        if clock == -math.inf or not math.isfinite(self._reach):
            return clock == -math.inf
        if self.window:  # it counts labels
            return 1.0 <= clock <= MOST and clock.is_integer()
        return math.isfinite(clock)

    def _touched(self, row: Floats, number: int) -> Iterator[tuple[VennAbers, float, int]]:
        others = np.delete(np.arange(len(row)), number)
        first, second = np.minimum(others, number), np.maximum(others, number)
        shares = share(row[first], row[second]).tolist()
        for i, j, score in zip(first.tolist(), second.tolist(), shares, strict=True):
            yield self._parts[i, j], score, int(i == number)
        if not self._classes.closed:
            yield self._parts[number, UNSEEN], float(share(row[[number]], np.zeros(1))[0]), 1

    def _learn(self, row: Floats, number: int, given: Given) -> None:
        time = given.time
        if self.window:
            time = self._clock = max(self._clock, 0.0) + 1.0
        elif time is not None:
            self._clock = max(self._clock, time)
        for part, score, label in self._touched(row, number):
            part.learn_one(score, label, weight=given.weight, time=time)

    def _predict(self, row: Floats, given: Given) -> Triple:
        now = max(self._clock, -math.inf if given.time is None else given.time)
        first, second = np.triu_indices(len(row), 1)
        shares = share(row[first], row[second]).tolist()
        pairs = [
            self._pair(i, j).predict_one(score, now if now > -math.inf else None, given.weight)
            for i, j, score in zip(first.tolist(), second.tolist(), shares, strict=True)
        ]
        coupling = PKPD(len(row), 1)
        p0, p1 = np.array(pairs).reshape(-1, 2, 1).swapaxes(0, 1)
        coupling.add(first, second, p0, p1)
        p, low, high = coupling.result()
        return p[:, 0], low[:, 0], high[:, 0]

    def _pair(self, i: int, j: int) -> VennAbers:
        """Find the calibrator of a pair of which one class or both may have no number yet."""
        known = len(self._classes)
        if j < known:
            return self._parts[i, j]
        return self._parts[i, UNSEEN] if i < known else self._part()

    def _run(self, steps: Steps) -> Triple:
        told, learned = self._told(steps), np.flatnonzero(steps.kinds == LEARN)
        predicted = np.flatnonzero(steps.kinds == PREDICT)
        k = len(self._classes)
        by_class = _split(learned, steps.labels[learned], k)
        coupling = PKPD(k, len(predicted))

        def run(part: VennAbers, rows: Integers, scores: Floats, labels: NDArray[Any]) -> Ends:
            weights, times = (None if c is None else c[rows] for c in (steps.weights, told))
            return part.run(steps.kinds[rows], scores, labels, weights=weights, times=times)

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

    def _told(self, steps: Steps) -> Floats | None:
        """Return what the pairs are told of time, and set the clock."""
        learns = steps.kinds == LEARN
        if not learns.size or not math.isfinite(self._reach):
            return None
        if self.window:
            told = max(self._clock, 0.0) + np.cumsum(learns)
            if learns.any():
                self._clock = float(told[-1])
            return told
        times = np.asarray(-math.inf if steps.times is None else steps.times, np.float64)
        newest = np.maximum.accumulate(np.where(learns, times, -math.inf))
        newest = np.maximum(newest, self._clock)
        self._clock = float(newest[-1])
        # A query is told the newest time; a label its own, so that one too late is never in sight.
        told = np.where(learns, times, np.maximum(times, newest))
        return np.where(told > -math.inf, told, 0.0)


def _split(rows: Integers, classes: Integers, k: int) -> list[Integers]:
    """Part rows by their classes, each part in order."""
    order = np.argsort(classes, kind="stable")
    ends = np.searchsorted(classes[order], np.arange(1, k))
    return np.split(rows[order], ends)
