"""Direct isotonic regression: the fitted probability at the nearest calibration score.

Governing rule: the fit is the one that `VennAbers` keeps anyway; here is only where it is read off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.calibration._baseline import Baseline

if TYPE_CHECKING:
    from abers.calibration._typing import Floats

__all__ = ["DirectIsotonic"]

_UNKNOWN = 0.5  # when nothing is held


class DirectIsotonic(Baseline):
    """Calibrate scores by isotonic regression, read off at the nearest calibration score (DIR).

    The method that Venn-Abers prediction was made to improve on: one probability, which may be 0
    or 1 and so have an infinite log loss. Of two calibration scores at the same distance the
    smaller one counts.

    At most one of `window`, `max_age` and `half_life` may be given; with none, everything is
    kept.

    Parameters
    ----------
    window, max_age, half_life
        How to forget, as of `VennAbers`.

    Raises
    ------
    ParameterError
        If more than one of the three is given, or one is not positive.

    Notes
    -----
    **Guarantee.** None.

    Distances are differences of doubles. With nothing learned the probability is 1/2.

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

    _magic = b"abersDI\x01"

    def _map(self, scores: Floats) -> Floats:
        return np.array([self._nearest(score) for score in scores.tolist()], np.float64)

    def _nearest(self, score: float) -> float:
        around = self._store.around(score)
        if around is None:
            return _UNKNOWN
        left, low, right, high = around
        return low if score - left <= right - score else high
