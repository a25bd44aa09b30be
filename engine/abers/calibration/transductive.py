"""The full Venn-Abers predictor: the scorer retrained for every object and either label.

Governing rule: nothing distinguishes the object from the others but its place in the bag; it is
trained on, scored and fitted with them, once with each label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.calibration import scoring
from abers.calibration.interval import VennInterval
from abers.calibration.venn_abers import VennAbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.calibration._typing import Floats
    from abers.calibration.scoring import Scorer

__all__ = ["TransductiveVennAbers"]


class TransductiveVennAbers:
    """Venn-Abers prediction with all observations for training and for calibration (VA).

    For each object the scorer is trained twice, with the object given label 0 and label 1 among
    the others; all are scored anew, and the isotonic fit at the object's own score is p0 and p1.

    Parameters
    ----------
    scorer
        What trains on objects and labels and gives a function that scores objects. It must not
        depend on the order of the observations.
    objects
        Array of shape (n, ...), the objects.
    labels
        Array of shape (n,), of 0 and 1.

    Raises
    ------
    ParameterError, LabelError
        If objects or labels cannot be used.

    Notes
    -----
    **Guarantee.** With exchangeable observations one of `p0` and `p1` is perfectly calibrated
    (Vovk & Petej 2014, Theorem 1 and Proposition 1), whatever the scorer, but for one that
    depends on the order. With a scorer that ignores its training the prediction is that of
    `VennAbers`. p0 may be greater than p1 where a label turns the scorer around.

    **Cost.** Two trainings an object.

    References
    ----------
    Vovk & Petej (2014), Venn-Abers predictors, Algorithm 1.

    Examples
    --------
    >>> from abers.calibration import TransductiveVennAbers
    >>> def scorer(objects, labels):  # by the distance to the mean object of either label
    ...     zero, one = objects[labels == 0].mean(), objects[labels == 1].mean()
    ...     return lambda objects: abs(objects - zero) - abs(objects - one)
    >>> predictor = TransductiveVennAbers(scorer, [1.0, 2.0, 4.0, 3.0, 5.0], [0, 0, 0, 1, 1])
    >>> predictor.predict_one(4.5)
    VennInterval(p0=0.5, p1=1.0)
    """

    def __init__(self, scorer: Scorer, objects: ArrayLike, labels: ArrayLike) -> None:
        self._scorer = scorer
        self._bag = scoring.Bag(objects, labels)

    def __len__(self) -> int:
        """Count the observations of the bag."""
        return len(self._bag.labels)

    def predict_one(self, one: ArrayLike) -> VennInterval:
        """Predict the probability of label 1 for one object.

        Parameters
        ----------
        one
            An object, of the shape of one row of the others.

        Returns
        -------
        VennInterval
            The pair (p0, p1).

        Raises
        ------
        ParameterError, ScoreError
            If the object or a score cannot be used.
        """
        return VennInterval(self._fit(one, 0), self._fit(one, 1))

    def predict_many(self, objects: ArrayLike) -> tuple[Floats, Floats]:
        """Predict for an array of objects; as `predict_one` for each.

        Parameters
        ----------
        objects
            Array of shape (m, ...).

        Returns
        -------
        p0, p1
            Two arrays of shape (m,).

        Raises
        ------
        ParameterError, ScoreError
            If an object or a score cannot be used.
        """
        pairs = [self.predict_one(one) for one in scoring.many(objects)]
        p0, p1 = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        return p0, p1

    def _fit(self, one: ArrayLike, label: int) -> float:
        """Value of the isotonic calibrator at the object, if it is given that label."""
        objects, labels = self._bag.with_one(one, label)
        scores = scoring.scored(self._scorer(objects, labels), objects)
        calibrator = VennAbers()
        calibrator.learn_many(scores, labels)
        value = calibrator.isotonic(float(scores[-1]))
        assert value is not None, "the object itself is held"  # noqa: S101 - for the types
        return value
