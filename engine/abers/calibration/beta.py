"""Beta calibration: a family of curves that contains the identity and the logistic curve.

The loss is convex, so its minimum under a, b >= 0 is the free one, or the best of those on which
one or both are 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from abers.base import Capabilities
from abers.calibration import logistic
from abers.calibration.baselines import Refitted

if TYPE_CHECKING:
    from abers.arrays import Floats
    from abers.calibration.sets import Groups

__all__ = ["BetaCalibration"]

_MIN_SCORE, _MAX_SCORE = 2.0**-53, 1.0 - 2.0**-53
_FREE = ([0, 1, 2], [1, 2], [0, 2], [2])  # parameters that are fitted, the others being 0


class BetaCalibration(Refitted):
    """Beta calibration: log odds of p = a ln(score) - b ln(1 - score) + c, with a, b >= 0.

    Maximum likelihood; where it would make a or b negative, the best curve with that parameter 0
    takes its place. Until both labels came, the curve is the identity (a = b = 1, c = 0).

    Parameters
    ----------
    window, max_age, half_life, refit
        As in `Platt`.

    Raises
    ------
    ParameterError
        As in `Platt`.

    Notes
    -----
    **Guarantee.** None: it is right if the scores of either label follow beta distributions, or
    nearly so.

    **Scores** are probabilities, in [0, 1]; others are refused. They are kept 2**-53 away from 0
    and 1.

    `predict_one` returns a float. Where the labels are separable, a ridge of 1e-9 keeps the fit
    finite.

    References
    ----------
    Kull, Silva Filho & Flach (2017), Beta calibration: a well-founded and easily
    implemented improvement on logistic calibration for binary classifiers.

    Examples
    --------
    >>> from abers import BetaCalibration
    >>> calibrator = BetaCalibration()
    >>> calibrator.learn_many([0.2, 0.4, 0.3, 0.6, 0.7, 0.8], [0, 1, 0, 0, 1, 1])
    >>> round(calibrator.predict_one(0.5), 2)
    0.5
    """

    _magic: ClassVar[bytes] = b"abersBC\x01"
    _first = (1.0, 1.0, 0.0)
    capabilities = Capabilities(
        task="binary", score="probability", answer="probability", removal="none"
    )
    _lowest: float = 0.0
    _highest: float = 1.0

    @property
    def a(self) -> float:
        """Weight of ln(score)."""
        return float(self._fitted[0])

    @property
    def b(self) -> float:
        """Weight of -ln(1 - score)."""
        return float(self._fitted[1])

    @property
    def c(self) -> float:
        """Log odds where the two logarithms cancel."""
        return float(self._fitted[2])

    def _may_be(self, parameters: Floats) -> bool:
        return super()._may_be(parameters) and bool((parameters[:2] >= 0.0).all())

    def _map(self, scores: Floats) -> Floats:
        x, y, _ = _features(scores)
        a, b, c = self._fitted
        return logistic.logistic(a * x + b * y + c)

    def _fit(self, groups: Groups) -> Floats:
        """Return the parameters of the best nondecreasing curve."""
        scores, negatives, positives = groups
        if not (negatives.any() and positives.any()):
            return np.array(self._first)
        features, weights = _features(scores), negatives + positives
        fits = []
        for free in _FREE:
            theta = np.zeros(3)
            chosen = features[free]
            theta[free] = logistic.fit(chosen, weights, positives, self._fitted[free])
            if (theta[:2] >= 0.0).all():
                fits.append((logistic.loss(features, weights, positives, theta), theta))
            if len(free) == len(theta) and fits:
                break
        return min(fits, key=lambda fit: fit[0])[1]


def _features(scores: Floats) -> Floats:
    inside = np.clip(scores, _MIN_SCORE, _MAX_SCORE)
    return np.stack((np.log(inside), -np.log1p(-inside), np.ones(len(scores))))
