"""The isotonic baseline.

Governing rule: the fit is the one that `VennAbers` keeps anyway; nothing is fitted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.calibration._baseline import Baseline

if TYPE_CHECKING:
    from abers.calibration._typing import Floats

__all__ = ["Isotonic"]


class Isotonic(Baseline):
    """Isotonic regression of label on score, exact after each label.

    Within a block of the fit the probability is its value, between two blocks it is
    linear, outside it is that of the nearest: `VennAbers.isotonic`.

    Parameters
    ----------
    window, max_age, half_life
        How to forget, as of `VennAbers`.

    Raises
    ------
    ParameterError
        If an option makes no sense, or more than one rule of forgetting is given.

    Notes
    -----
    **Guarantee.** None: the fit is optimal for the labels it was made from, and too sure
    of others. It says 0 and 1, for which the log loss may be infinite.

    `predict_one` returns a float; with nothing learned it is 1/2.

    References
    ----------
    Zadrozny & Elkan (2002), Transforming classifier scores into accurate multiclass
    probability estimates.

    Examples
    --------
    >>> from abers import Isotonic
    >>> calibrator = Isotonic()
    >>> calibrator.learn_many([0.0, 0.2, 0.4, 1.0], [0, 1, 0, 1])
    >>> calibrator.predict_one(0.3), calibrator.predict_one(0.7)
    (0.5, 0.75)
    """

    _magic = b"abersIS\x01"

    def _map(self, scores: Floats) -> Floats:
        if not len(self):
            return np.full(len(scores), 0.5)
        return np.array([self._store.isotonic(score) for score in scores.tolist()], np.float64)
