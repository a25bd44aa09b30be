"""Scores of scikit-learn estimators, rounded, and the intervals of calibrators.

Many estimators score a row alone and the same row among others with different last bits, because
the libraries below them add in another order. A calibrator jumps at the scores that it learned, so
without rounding a learned row could have two predictions.
"""

# ruff: noqa: ANN401, N803 - X as in scikit-learn, of any kind that it takes

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.arrays import unmasked
from abers.calibration import OneVsRest
from abers.exceptions import ScoreError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.arrays import Floats
    from abers.calibration import VennAbers

__all__ = ["class_intervals", "class_scores", "regression_scores"]

_BITS = 32  # of a score; the other 20 absorb what another order of addition changes


def class_scores(estimator: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """Score observations, a column for each class; 0 for a class that the estimator does not know.

    Raises
    ------
    ScoreError
        If a score is not a finite number.
    """
    probable = getattr(estimator, "predict_proba", None)
    given = np.asarray((probable or estimator.decision_function)(unmasked(X)), dtype=np.float64)
    if given.ndim == 1:
        given = np.column_stack([-given, given])
    _require_finite(given, estimator)
    scores = np.zeros((len(given), len(classes)))
    rounded = _rounded_probabilities(given) if probable else _rounded(given)
    scores[:, np.searchsorted(classes, estimator.classes_)] = rounded
    return scores


def regression_scores(estimator: Any, X: Any) -> Floats:
    """Score observations by the predictions of a regressor.

    Raises
    ------
    ScoreError
        If a prediction is not a finite number.
    """
    given = np.asarray(estimator.predict(unmasked(X)), dtype=np.float64).reshape(-1)
    _require_finite(given[:, np.newaxis], estimator)
    return _rounded(given)


def class_intervals(calibrator: VennAbers | OneVsRest, scores: Floats) -> tuple[Floats, Floats]:
    """Return the lower and upper ends for all classes, two arrays of shape (n, n_classes)."""
    if isinstance(calibrator, OneVsRest):
        _, low, high = calibrator.predict_many(scores)
        return low, high
    p0, p1 = calibrator.predict_many(scores[:, 1])
    return np.column_stack([1.0 - p1, p0]), np.column_stack([1.0 - p0, p1])


def _require_finite(scores: Floats, estimator: Any) -> None:
    bad = np.argwhere(~np.isfinite(scores))
    if len(bad):
        row, column = bad[0].tolist()
        msg = (
            f"row {row}: score {scores[row, column]} of {type(estimator).__name__} is not a "
            "finite number; drop the observation or repair the estimator"
        )
        raise ScoreError(msg)


def _rounded(scores: Floats) -> Floats:
    """Round scores to `_BITS` significant bits."""
    mantissa, exponent = np.frexp(scores)
    rounded: Floats = np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    return rounded


def _rounded_probabilities(p: Floats) -> Floats:
    """Round the distance to 0 or to 1, whichever is smaller: near 1 it separates probabilities."""
    return np.where(p <= 0.5, _rounded(p), 1.0 - _rounded(1.0 - p))  # noqa: PLR2004
