"""The simplified Venn-Abers predictor: a scorer calibrated on the data that trained it.

Governing rule: the scorer is trained once, and its training scores are the calibration bag of a
`VennAbers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.calibration import scoring
from abers.calibration.venn_abers import VennAbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.calibration._typing import Floats
    from abers.calibration.interval import VennInterval
    from abers.calibration.scoring import Scorer

__all__ = ["SimplifiedVennAbers"]


class SimplifiedVennAbers:
    """Venn-Abers prediction from the scores of the training set itself (SVA).

    Cheap, since the scorer is trained once, and without a calibration set of its own; in Vovk &
    Petej's experiments as sharp as the full predictor. A scorer that fits its training labels
    too well is not found out.

    Parameters
    ----------
    scorer
        What trains on objects and labels and gives a function that scores objects.
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
    Proposition 2). Even on average the label may be outside: for the scorer that gives training
    objects their labels and 2 to all others, and labels that are fair coins, the mean lower
    probability is 0.90 with 20 training objects.

    References
    ----------
    Vovk & Petej (2014), Venn-Abers predictors, section 4.

    Examples
    --------
    >>> from abers.calibration import SimplifiedVennAbers
    >>> def scorer(objects, labels):  # by the distance to the mean object of either label
    ...     zero, one = objects[labels == 0].mean(), objects[labels == 1].mean()
    ...     return lambda objects: abs(objects - zero) - abs(objects - one)
    >>> predictor = SimplifiedVennAbers(scorer, [1.0, 2.0, 4.0, 3.0, 5.0], [0, 0, 0, 1, 1])
    >>> predictor.predict_one(4.5)
    VennInterval(p0=0.5, p1=0.75)
    """

    def __init__(self, scorer: Scorer, objects: ArrayLike, labels: ArrayLike) -> None:
        bag = scoring.Bag(objects, labels)
        self._score = scorer(bag.objects, bag.labels)
        self._calibrator = VennAbers()
        self._calibrator.learn_many(scoring.scored(self._score, bag.objects), bag.labels)

    def __len__(self) -> int:
        """Count the training objects."""
        return len(self._calibrator)

    def predict_one(self, one: ArrayLike) -> VennInterval:
        """Predict the probability of label 1 for one object.

        Parameters
        ----------
        one
            An object, of the shape of one row of the training objects.

        Returns
        -------
        VennInterval
            The pair (p0, p1).

        Raises
        ------
        ParameterError, ScoreError
            If the object or its score cannot be used.
        """
        score = scoring.scored(self._score, scoring.many([one]))[0]
        return self._calibrator.predict_one(float(score))

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
            If an object or its score cannot be used.
        """
        return self._calibrator.predict_many(scoring.scored(self._score, scoring.many(objects)))
