"""Several classes, each calibrated against all others.

The set of a class learns the score of that class, and whether the label is that class. The
observations before a class was known have score 0 and label 0 for it; the set of `UNSEEN` holds
them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from abers.calibration import sets
from abers.calibration._coupling import normalised
from abers.calibration.intervals import log_merge
from abers.calibration.multiclass import UNSEEN, MultiClass, Touched, Triple
from abers.steps import PREDICT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers._core import CalibrationSet
    from abers.arrays import Floats
    from abers.steps import Steps

__all__ = ["OneVsRest"]


class OneVsRest(MultiClass):
    """Calibrate the class scores of any model, each class against the rest.

    A `VennAbers` calibrator for each class learns the score of its class, with label 1 where the
    observation is of that class and 0 elsewhere. Its interval is the interval of the class; the
    merged probabilities (for log loss) are divided by their sum.

    Parameters
    ----------
    classes
        All classes: strings, integers or booleans. A score or label of another class is then an
        error. By default a class is known from its first score or label on.
    window, max_age, half_life
        How to forget, as in `VennAbers`; a window counts observations of all classes.
    max_classes
        Maximum number of classes; memory and time grow with the number known.

    Raises
    ------
    ParameterError
        If an option is invalid, or the classes are not 2 to `max_classes` different labels.

    Notes
    -----
    **Guarantee.** Under exchangeability, with a scorer fixed before the calibration data and equal
    weights, the interval of each single class is that of `VennAbers` and has its guarantee. The
    vector of probabilities has none.

    **Scores** are any finite numbers, which need not sum to one. A class that is missing from a
    dict has score 0: the model gave it no probability. If scores are margins, pass all classes.

    **Classes** come and go. One without a label, or with none in the window, is calibrated on label
    0 alone: its lower end is 0, and its upper end is 1 above all of its scores. A class keeps its
    column.

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

    _magic: ClassVar[bytes] = b"abersOR\x01"
    _smallest: ClassVar[float] = -sys.float_info.max

    def _make_parts(self) -> None:
        if not self._classes.closed:
            self._parts[UNSEEN,] = self._part()
        super()._make_parts()

    def _part(self) -> CalibrationSet:
        return sets.empty(self._forgetting)

    def _grow(self, number: int) -> None:
        closed = self._classes.closed
        self._parts[number,] = self._part() if closed else sets.copied(self._parts[UNSEEN,])

    def _touched(self, row: Floats, number: int) -> Iterator[Touched]:
        """Yield each set that learns an observation, with its score and its label there."""
        for i, score in enumerate(row.tolist()):
            yield self._parts[i,], score, int(i == number)
        if not self._classes.closed:
            yield self._parts[UNSEEN,], 0.0, 0

    def _learn_row(self, row: Floats, number: int, weight: int, time: float) -> None:
        for part, score, label in self._touched(row, number):
            part.learn(score, label, weight, time)

    def _predict_row(self, row: Floats, weight: int, time: float) -> Triple:
        known = len(self._classes)
        keys = ((i if i < known else UNSEEN,) for i in range(len(row)))
        pairs = [
            self._parts[key].predict(score, weight, time)
            for key, score in zip(keys, row.tolist(), strict=True)
        ]
        return _answer(np.array(pairs).T)

    def _run(self, steps: Steps) -> Triple:
        predicted = steps.kinds == PREDICT
        ends = np.empty((2, len(self._classes), np.count_nonzero(predicted)))
        for i, scores in enumerate(steps.scores):
            own = steps._replace(scores=scores, labels=(steps.labels == i).astype(np.uint8))
            p0, p1, _ = sets.pairs(self._parts[i,], own)
            ends[:, i] = p0[predicted], p1[predicted]
        if not self._classes.closed:
            zeros = np.zeros(len(predicted))
            none = steps._replace(scores=zeros, labels=zeros.astype(np.uint8))
            sets.pairs(self._parts[UNSEEN,], none)
        return _answer(ends)


def _answer(ends: Floats) -> Triple:
    p0, p1 = ends
    return normalised(log_merge(p0, p1)), p0, p1
