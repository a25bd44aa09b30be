"""Platt scaling: a logistic curve, fitted in scores that are shifted and scaled to [-1, 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from abers.calibration import logistic
from abers.calibration.baselines import STEEPEST, Refitted

if TYPE_CHECKING:
    from abers.arrays import Floats
    from abers.calibration.sets import Groups

__all__ = ["Platt"]

_FAR = 1e150  # scaled scores; beyond, a curve of any slope but 0 has long been 0 or 1


class Platt(Refitted):
    """Platt scaling: p = 1 / (1 + exp(-(slope * score + intercept))).

    The labels are smoothed as Platt does: with N1 the weight of label 1 and N0 that of
    label 0, the targets are (N1 + 1) / (N1 + 2) and 1 / (N0 + 2), so that the fit is
    finite. Newton's method with backtracking finds the minimum of the log loss.

    Parameters
    ----------
    window, max_age, half_life
        How to forget, as in `VennAbers`.
    refit
        A fit is made when the labels learned since the last fit reach this share of the
        observations that were kept then (0: after each label), and at the end of `learn_many`. It
        starts from the last fit.

    Raises
    ------
    ParameterError
        If an option is invalid, or more than one rule of forgetting is given.

    Notes
    -----
    **Guarantee.** None: it is right if the log odds of label 1 are linear in the score.

    `predict_one` returns a float; with nothing learned it is 1/2. The slope may become
    negative.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines; Lin, Lin & Weng
    (2007), A note on Platt's probabilistic outputs for support vector machines.

    Examples
    --------
    >>> from abers import Platt
    >>> calibrator = Platt()
    >>> calibrator.learn_many([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    >>> round(calibrator.slope, 4), round(calibrator.predict_one(1.5), 4)
    (0.674, 0.7332)
    """

    _magic: ClassVar[bytes] = b"abersPL\x01"
    _first = (0.0, 1.0, 0.0, 0.0)  # centre and scale of the scores, slope and level in them

    @property
    def slope(self) -> float:
        """Slope of the log odds in the score."""
        _, scale, slope, _ = self._fitted.tolist()
        return float(slope / scale)

    @property
    def intercept(self) -> float:
        """Log odds at score 0."""
        centre, scale, slope, level = self._fitted.tolist()
        return float(level - slope * (centre / scale))

    def _may_be(self, parameters: Floats) -> bool:
        centre, scale = parameters[:2]
        return bool(np.isfinite([centre, scale]).all() and scale > 0.0) and super()._may_be(
            parameters[2:]
        )

    def _map(self, scores: Floats) -> Floats:
        _, _, slope, level = self._fitted
        return logistic.logistic(slope * self._scaled(scores) + level)

    def _scaled(self, scores: Floats) -> Floats:
        centre, scale = self._fitted[:2]
        with np.errstate(over="ignore"):
            scaled: Floats = np.clip((scores - centre) / scale, -_FAR, _FAR)
        return scaled

    def _fit(self, groups: Groups) -> Floats:
        scores, negatives, positives = groups
        weights = negatives + positives
        centre, scale = _frame(scores)
        start = self._moved(centre, scale)
        self._fitted = np.array([centre, scale, *start])
        ones = np.ones(len(scores))
        targets = positives * _target(positives) + negatives * (1.0 - _target(negatives))
        features = np.stack((self._scaled(scores), ones))
        return np.array([centre, scale, *logistic.fit(features, weights, targets, start)])

    def _moved(self, centre: float, scale: float) -> Floats:
        """Return slope and level of the curve in another frame; zeros if they are too large."""
        centre0, scale0, slope, level = self._fitted
        with np.errstate(over="ignore", invalid="ignore"):
            slope1 = slope * (scale / scale0)
            moved = np.array([slope1, level + slope * (centre / scale0 - centre0 / scale0)])
        return moved if (np.abs(moved) < STEEPEST).all() else np.zeros(2)


def _target(weights: Floats) -> float:
    total = float(weights.sum())
    return (total + 1.0) / (total + 2.0)


def _frame(scores: Floats) -> tuple[float, float]:
    """Return the middle and half the range of ascending scores, or 1 for a range of 0."""
    low, high = float(scores[0]), float(scores[-1])
    return low / 2 + high / 2, (high / 2 - low / 2) or 1.0
