"""Several classes, each calibrated against all others.

Governing rule: the calibrator of a class is the binary one, on the score of that class
and on whether the label is that class; what a class has missed before it was known is an
observation of score 0 and label 0, which `UNSEEN` holds ready.
"""

from __future__ import annotations

import copy
import sys
from typing import TYPE_CHECKING

import numpy as np

from abers.calibration._coupling import normalised
from abers.calibration._multiclass import MultiClass
from abers.calibration._parts import UNSEEN, Given, Steps, Triple
from abers.calibration.interval import log_merge
from abers.calibration.venn_abers import VennAbers
from abers.reference import PREDICT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.calibration._typing import Floats

__all__ = ["OneVsRest"]


class OneVsRest(MultiClass):
    """Calibrate the class scores of any model, each class against the rest.

    A `VennAbers` calibrator a class learns the score of its class, with label 1 where the
    observation is of that class and 0 elsewhere. Its interval is the interval of the
    class; the merged probabilities (for log loss) are divided by their sum.

    At most one of `window`, `max_age` and `half_life` may be given; with none,
    everything is kept.

    Parameters
    ----------
    classes
        All classes there will ever be, strings, whole numbers or truth values: others
        are then refused. By default classes are known from their first score or label on.
    window
        Keep only the last `window` learned observations.
    max_age
        Keep only observations whose event time is at most `max_age` before the
        newest time seen, in the unit of the times.
    half_life
        Let the weight of an observation halve every `half_life` of event time;
        after 30 half-lives it is dropped.
    max_classes
        The greatest number of classes; memory and time grow with the number known.

    Raises
    ------
    ParameterError
        If more than one of the three is given, one is not positive, or the classes are
        not 2 to `max_classes` different labels.

    Notes
    -----
    **Guarantee.** Under exchangeability, with a scorer fixed before the calibration data
    and equal weights, the interval of each single class is that of `VennAbers` and has
    its guarantee. The vector of probabilities has none.

    **Scores** are any finite numbers, which need not sum to one. A class that a mapping
    leaves out has score 0: the model gave it no probability. Give margins of all classes.

    **Classes** come and go. One that never had a label, or has none in the window, has
    what its calibrator says of label 0 alone: a lower end of 0, and an upper end of 1
    above all scores it was given. A class keeps its column for ever.

    **Threads** may share a calibrator: every call is atomic.

    References
    ----------
    Vovk, Petej & Fedorova (2015), section 3, for the intervals; Zadrozny & Elkan (2002),
    Transforming classifier scores into accurate multiclass probability estimates, for
    one-against-all with normalisation.

    Examples
    --------
    >>> from abers import OneVsRest
    >>> calibrator = OneVsRest()
    >>> calibrator.learn_one({"cat": 0.7, "dog": 0.2, "owl": 0.1}, "cat")
    >>> calibrator.learn_one({"cat": 0.4, "dog": 0.5, "owl": 0.1}, "dog")
    >>> calibrator.predict_one({"cat": 0.8, "dog": 0.1, "owl": 0.1})
    MultiInterval('cat': 0.5333 [0.5, 1], 'dog': 0.2667 [0, 0.5], 'owl': 0.2 [0, 0.3333])
    """

    _magic = b"abersOR\x01"
    _smallest = -sys.float_info.max

    def _start(self) -> None:
        if not self._classes.closed:
            self._parts[UNSEEN,] = self._part()
        super()._start()

    def _part(self) -> VennAbers:
        return VennAbers(self.window, self.max_age, self.half_life)

    def _grow(self, number: int) -> None:
        closed = self._classes.closed
        self._parts[number,] = self._part() if closed else copy.copy(self._parts[UNSEEN,])

    def _touched(self, row: Floats, number: int) -> Iterator[tuple[VennAbers, float, int]]:
        for i, score in enumerate(row.tolist()):
            yield self._parts[i,], score, int(i == number)
        if not self._classes.closed:
            yield self._parts[UNSEEN,], 0.0, 0

    def _learn(self, row: Floats, number: int, given: Given) -> None:
        for part, score, label in self._touched(row, number):
            part.learn_one(score, label, weight=given.weight, time=given.time)

    def _predict(self, row: Floats, given: Given) -> Triple:
        known = len(self._classes)
        keys = ((i if i < known else UNSEEN,) for i in range(len(row)))
        pairs = [
            self._parts[key].predict_one(score, given.time, given.weight)
            for key, score in zip(keys, row.tolist(), strict=True)
        ]
        return _answer(np.array(pairs).T)

    def _run(self, steps: Steps) -> Triple:
        predicted = steps.kinds == PREDICT
        ends = np.empty((2, len(self._classes), np.count_nonzero(predicted)))
        kinds, weights, times = steps.kinds, steps.weights, steps.times
        for i, scores in enumerate(steps.scores):
            p0, p1 = self._parts[i,].run(
                kinds, scores, steps.labels == i, weights=weights, times=times
            )
            ends[:, i] = p0[predicted], p1[predicted]
        if not self._classes.closed:
            zeros = np.zeros(len(predicted))
            self._parts[UNSEEN,].run(kinds, zeros, zeros, weights=weights, times=times)
        return _answer(ends)


def _answer(ends: Floats) -> Triple:
    p0, p1 = ends
    return normalised(log_merge(p0, p1)), p0, p1
