"""Venn-Abers predictors of a set of observations: they train the scorer themselves, or K of them.

The simplified predictor trains it once. The full one retrains it for every object and either label,
so that nothing distinguishes the object from the others but its place in the bag.

The cross Venn-Abers prediction of a batch. Each fold is one calibration set, which learns all its
observations and then predicts all queries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from abers import validation
from abers.batch.venn import extended, many, scored
from abers.calibration.intervals import CrossIntervals, VennInterval, VennIntervals
from abers.calibration.venn_abers import VennAbers
from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from abers.arrays import Bytes
    from abers.batch.venn import Objects, Scorer

__all__ = ["SimplifiedVennAbers", "TransductiveVennAbers", "cvap"]


class _BagPredictor(ABC):
    """A scorer, and a bag of objects with their labels 0 and 1, checked."""

    def __init__(self, scorer: Scorer, objects: ArrayLike, labels: ArrayLike) -> None:
        self._scorer, self._objects = scorer, many(objects)
        self._labels: Bytes = validation.labels(labels, len(self._objects))

    def __len__(self) -> int:
        """Count the objects of the bag."""
        return len(self._labels)

    @abstractmethod
    def _predict(self, objects: Objects) -> VennIntervals:
        """Predict for checked objects."""

    def predict_one(self, one: ArrayLike) -> VennInterval:
        """Predict the probability of label 1 for one object.

        Parameters
        ----------
        one
            An object, of the shape of one row of the objects in the bag.

        Returns
        -------
        VennInterval
            The pair (p0, p1).

        Raises
        ------
        ParameterError, ScoreError
            If the object or a score cannot be used.
        """
        p0, p1 = self._predict(many([one]))
        return VennInterval(float(p0[0]), float(p1[0]))

    def predict_many(self, objects: ArrayLike) -> VennIntervals:
        """Predict for an array of objects; as `predict_one` for each.

        Parameters
        ----------
        objects
            Array of shape (m, ...).

        Returns
        -------
        VennIntervals
            Arrays of shape (m,).

        Raises
        ------
        ParameterError, ScoreError
            If an object or a score cannot be used.
        """
        return self._predict(many(objects))


class SimplifiedVennAbers(_BagPredictor):
    """Venn-Abers prediction from the scores of the training set itself (SVA).

    This is cheap, since the scorer is trained once, and needs no calibration set of its own. In the
    experiments of Vovk & Petej it is as sharp as the full predictor. It does not detect a scorer
    that fits its training labels too well.

    Parameters
    ----------
    scorer
        A function that trains on objects and labels and returns a function that scores objects.
    objects
        Array of shape (n, ...), the training objects.
    labels
        Array of shape (n,), of 0 and 1.

    Raises
    ------
    ParameterError, LabelError, ScoreError
        If objects, labels or the scorer's scores cannot be used.

    Notes
    -----
    **Guarantee.** None: the test object's score was not made like the others (Vovk & Petej 2014,
    Proposition 2). Even on average the label may be outside: for the scorer that returns the
    labels of training objects and 2 for all others, and labels that are fair coins, the mean lower
    probability is 0.90 with 20 training objects.

    References
    ----------
    Vovk & Petej (2014), Venn-Abers predictors, section 4.

    Examples
    --------
    >>> from abers.batch import SimplifiedVennAbers
    >>> def scorer(objects, labels):  # by the distance to the mean object of either label
    ...     zero, one = objects[labels == 0].mean(), objects[labels == 1].mean()
    ...     return lambda objects: abs(objects - zero) - abs(objects - one)
    >>> predictor = SimplifiedVennAbers(scorer, [1.0, 2.0, 4.0, 3.0, 5.0], [0, 0, 0, 1, 1])
    >>> predictor.predict_one(4.5)
    VennInterval(p0=0.5, p1=0.75)
    """

    def __init__(self, scorer: Scorer, objects: ArrayLike, labels: ArrayLike) -> None:
        super().__init__(scorer, objects, labels)
        self._score = scorer(self._objects, self._labels)
        self._calibrator = VennAbers()
        self._calibrator.learn_many(scored(self._score, self._objects), self._labels)

    def _predict(self, objects: Objects) -> VennIntervals:
        return self._calibrator.predict_many(scored(self._score, objects))


class TransductiveVennAbers(_BagPredictor):
    """Venn-Abers prediction with all observations for training and for calibration (VA).

    For each object the scorer is trained twice: the object is among the others, once with label 0
    and once with label 1. All are scored anew, and the isotonic fits at the object's own score are
    p0 and p1.

    Parameters
    ----------
    scorer, objects, labels
        As of `SimplifiedVennAbers`. The scorer must not depend on the order of the observations.

    Raises
    ------
    ParameterError, LabelError
        If objects or labels cannot be used.

    Notes
    -----
    **Guarantee.** With exchangeable observations one of `p0` and `p1` is perfectly calibrated
    (Vovk & Petej 2014, Theorem 1 and Proposition 1), with any scorer that does not depend on the
    order. With a scorer that ignores its training the prediction is that of `VennAbers`. p0 may be
    greater than p1 if a label turns the scorer around.

    **Cost.** Two trainings an object.

    References
    ----------
    Vovk & Petej (2014), Venn-Abers predictors, Algorithm 1.

    Examples
    --------
    >>> from abers.batch import TransductiveVennAbers
    >>> def scorer(objects, labels):  # by the distance to the mean object of either label
    ...     zero, one = objects[labels == 0].mean(), objects[labels == 1].mean()
    ...     return lambda objects: abs(objects - zero) - abs(objects - one)
    >>> predictor = TransductiveVennAbers(scorer, [1.0, 2.0, 4.0, 3.0, 5.0], [0, 0, 0, 1, 1])
    >>> predictor.predict_one(4.5)
    VennInterval(p0=0.5, p1=1.0)
    """

    def _predict(self, objects: Objects) -> VennIntervals:
        pairs = [[self._fit(one, label) for label in (0, 1)] for one in objects]
        p0, p1 = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        return VennIntervals(p0, p1)

    def _fit(self, one: ArrayLike, label: int) -> float:
        """Return the value of the isotonic calibrator at the object, if it is given that label."""
        objects = extended(self._objects, many([one]))
        labels = np.append(self._labels, np.uint8(label))
        scores = scored(self._scorer(objects, labels), objects)
        calibrator = VennAbers()
        calibrator.learn_many(scores, labels)
        value = calibrator.isotonic(float(scores[-1]))
        assert value is not None, "the object itself is kept"  # noqa: S101 - for the types
        return value


def cvap(
    scores: Sequence[ArrayLike], labels: Sequence[ArrayLike], queries: Sequence[ArrayLike]
) -> CrossIntervals:
    """Cross Venn-Abers prediction of a batch, by K calibration sets.

    Parameters
    ----------
    scores, labels
        K arrays each, of shape (n_k,): for fold k, the scores of its observations by the scorer
        that was trained without them, and their labels.
    queries
        K arrays of shape (m,): the scores of the test observations by each of the K scorers.

    Returns
    -------
    CrossIntervals
        Arrays of shape (m, K).

    Raises
    ------
    InputError
        If the numbers of arrays or of queries differ, or a value cannot be used.

    Notes
    -----
    **Guarantee.** None (see `CrossVennAbers`).

    References
    ----------
    Vovk, Petej & Fedorova (2015), section 4, Algorithms 1-6.

    Examples
    --------
    >>> from abers.batch import cvap
    >>> scores, labels = [[0.1, 0.35, 0.4, 0.8], [0.2, 0.6]], [[0, 0, 1, 1], [0, 1]]
    >>> found = cvap(scores, labels, [[0.5, 0.9], [0.4, 0.9]])
    >>> found.p0.tolist(), found.p1.tolist()
    ([[0.5, 0.0], [0.6666666666666666, 0.5]], [[1.0, 1.0], [1.0, 1.0]])
    >>> found.merged.round(4).tolist()
    [0.5858, 0.7101]
    """
    if not len(scores) == len(labels) == len(queries) > 0:
        msg = (
            f"scores has {len(scores)} arrays, labels {len(labels)}, queries {len(queries)}; "
            "give one of each per fold, and at least one"
        )
        raise ParameterError(msg)
    columns = [validation.at(f"fold {k}", validation.scores, one) for k, one in enumerate(queries)]
    rows = {len(column) for column in columns}
    if len(rows) > 1:
        msg = f"queries has {sorted(rows)} rows; each scorer must score every test observation"
        raise ParameterError(msg)
    p0, p1 = np.empty((2, len(columns), rows.pop()))
    for k, column in enumerate(columns):
        calibrator = VennAbers()
        validation.at(f"fold {k}", calibrator.learn_many, scores[k], labels[k])
        p0[k], p1[k] = calibrator.predict_many(column)
    return CrossIntervals(p0.T, p1.T)
