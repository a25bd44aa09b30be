"""Direct isotonic regression: the fitted probability at the nearest calibration score.

Governing rule: the fit is the isotonic regression that `VennAbers` keeps; here is only where it is
read off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.calibration import _checks
from abers.calibration.venn_abers import VennAbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.calibration._typing import Floats

__all__ = ["DirectIsotonic"]

_UNKNOWN = 0.5  # when nothing is held


class DirectIsotonic:
    """Calibrate scores by isotonic regression, read off at the nearest calibration score (DIR).

    The method that Venn-Abers prediction was made to improve on: one probability, which may be 0
    or 1 and so have an infinite log loss. Of two calibration scores at the same distance the
    smaller one counts.

    At most one of `window`, `max_age` and `half_life` may be given; with none, everything is
    kept.

    Parameters
    ----------
    window, max_age, half_life
        As of `VennAbers`.

    Raises
    ------
    ParameterError
        If more than one of the three is given, or one is not positive.

    Notes
    -----
    **Guarantee.** None.

    Distances are differences of doubles.

    References
    ----------
    Zadrozny & Elkan (2002), Transforming classifier scores into accurate multiclass probability
    estimates; Vovk & Petej (2014), Venn-Abers predictors, section 3, for the nearest score.

    Examples
    --------
    >>> from abers.calibration import DirectIsotonic
    >>> calibrator = DirectIsotonic()
    >>> calibrator.learn_many([0.1, 0.4, 0.35, 0.8], [0, 1, 0, 1])
    >>> calibrator.predict_one(0.37), calibrator.predict_one(0.38)
    (0.0, 1.0)
    """

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        self._fit = VennAbers(window, max_age, half_life)

    def __len__(self) -> int:
        """Count the observations held."""
        return len(self._fit)

    def __bool__(self) -> bool:
        """Be true even when nothing is held, so that `calibrator or default` keeps it."""
        return True

    def __repr__(self) -> str:
        """Name the rule of forgetting and the number of observations."""
        return repr(self._fit).replace("VennAbers", type(self).__name__)

    def predict_one(self, score: float) -> float:
        """Predict the probability of label 1 for one score.

        Parameters
        ----------
        score
            Any finite number.

        Returns
        -------
        float
            The fitted value at the nearest score learned; 0.5 when nothing is held.

        Raises
        ------
        ScoreError
            If the score is no finite number.
        """
        return float(self.predict_many([_checks.score(score)])[0])

    def predict_many(self, scores: ArrayLike) -> Floats:
        """Predict for an array of scores; as `predict_one` for each.

        Parameters
        ----------
        scores
            Array of shape (n,).

        Returns
        -------
        numpy.ndarray
            Of shape (n,).

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one.

        Examples
        --------
        >>> calibrator = DirectIsotonic()
        >>> calibrator.learn_many([0.0, 1.0], [0, 1])
        >>> calibrator.predict_many([0.5, 0.51]).tolist()  # half-way, the smaller one
        [0.0, 1.0]
        """
        column = _checks.scores(scores)
        lower, upper, _, _, value = self._fit.hull()
        if not len(value):
            return np.full(len(column), _UNKNOWN)
        # The block that covers a score or is the next one above it, and the block before that.
        right = np.minimum(np.searchsorted(upper, column), len(value) - 1)
        left = np.maximum(right - 1, 0)
        with np.errstate(over="ignore"):  # infinitely far is far
            nearer = column - upper[left] <= lower[right] - column
        return value[np.where(nearer & (column < lower[right]), left, right)]

    def learn_one(
        self, score: float, label: int, *, weight: float = 1.0, time: float | None = None
    ) -> None:
        """Learn one labelled observation, as `VennAbers.learn_one` does.

        Parameters
        ----------
        score, label, weight, time
            As `VennAbers.learn_one` has them.

        Raises
        ------
        ScoreError, LabelError, WeightError, TimeError
            If an argument cannot be used; nothing is learned then.
        """
        self._fit.learn_one(score, label, weight=weight, time=time)

    def learn_many(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> None:
        """Learn arrays of observations, as `VennAbers.learn_many` does.

        Parameters
        ----------
        scores, labels, weights, times
            Arrays of shape (n,).

        Raises
        ------
        InputError
            If a row cannot be used; nothing is learned then.
        """
        self._fit.learn_many(scores, labels, weights=weights, times=times)

    def remove_one(self, score: float, label: int, *, weight: float = 1.0) -> None:
        """Undo one `learn_one` with the same arguments, as `VennAbers.remove_one` does.

        Parameters
        ----------
        score, label, weight
            As they were learned.

        Raises
        ------
        NotHeldError
            If no such weight is held.
        ForgettingError
            If the calibrator forgets by itself.
        """
        self._fit.remove_one(score, label, weight=weight)
