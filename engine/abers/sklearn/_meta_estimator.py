"""The base class of the wrappers of scikit-learn estimators: checks before training, and scores.

Scores of scikit-learn estimators, rounded, and the intervals of calibrators. Many estimators score
a row alone and the same row among others with different last bits, because the libraries below them
add in another order. A calibrator jumps at the scores that it learned, so without rounding a
learned row could have two predictions.

scikit-learn forbids checks in constructors, so `fit` makes them, before anything is trained.
"""

from __future__ import annotations

import inspect
import warnings
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupShuffleSplit
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from abers import validation
from abers.arrays import LIMIT, unmasked
from abers.calibration import OneVsRest
from abers.exceptions import ParameterError, ScoreError
from abers.validation import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers
    from abers.calibration import VennAbers

    Split: TypeAlias = tuple[Integers | None, Integers]

__all__ = [
    "CalibratedMetaEstimator",
    "class_intervals",
    "class_scores",
    "n_rows",
    "regression_scores",
    "row_weights",
]

# ruff: noqa: ANN401, N803 - X as in scikit-learn, of any kind that it takes


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


# ruff: noqa: ANN401, N803 - X and y as in scikit-learn, of any kind that it takes


_OTHER_WRAPPERS = {
    "classifier": "VennAbersCalibratedRegressor",
    "regressor": "VennAbersCalibratedClassifier",
}
_RIVER_WRAPPERS = {"classifier": "VennAbersClassifier", "regressor": "VennAbersRegressor"}
_TWO = 2  # groups: one to train on and one to calibrate with
_EXAMPLES = {"classifier": "LogisticRegression()", "regressor": "LinearRegression()"}
_NOT_FITTED = (
    "%(name)s is not fitted, and cv='prefit' does not fit it; fit it on other observations first "
    "(in a clone it stays fitted if it is wrapped in sklearn.frozen.FrozenEstimator)"
)
_FROZEN_UNFITTED = (
    "%(name)s has an estimator that is not fitted, and nothing fits it there; fit it on other "
    "observations, then freeze it"
)


class CalibratedMetaEstimator(
    MetaEstimatorMixin,  # type: ignore[misc]  # scikit-learn has no types
    BaseEstimator,  # type: ignore[misc]
):
    """An estimator with calibrators."""

    estimator: Any
    cv: Any
    calibration_size: float
    _kind: str  # "classifier" or "regressor"
    _cv_choices: str  # for an error message

    def _require_estimator(self) -> None:
        """Raise an error for an estimator of another kind, or fitted where it must not be."""
        given, kind = self.estimator, self._kind
        if inspect.isclass(given) or not hasattr(given, "__sklearn_tags__"):
            msg = f"estimator={shown(given)} is not a scikit-learn {kind}; {_remedy(given, kind)}"
            raise ParameterError(msg)
        if not (is_classifier(given) if kind == "classifier" else is_regressor(given)):
            msg = (
                f"estimator={shown(given)} is not a {kind}; pass one, such as {_EXAMPLES[kind]}, "
                f"or use {_OTHER_WRAPPERS[kind]} if it fits"
            )
            raise ParameterError(msg)
        if isinstance(given, FrozenEstimator):
            check_is_fitted(given, msg=_FROZEN_UNFITTED)
        elif self._prefit:
            check_is_fitted(given, msg=_NOT_FITTED)
        elif get_tags(given).requires_fit and _is_fitted(given):
            msg = (
                f"{shown(given)} is fitted already; use it as it is by cv='prefit', or "
                "pass sklearn.base.clone(estimator) to have a clone trained"
            )
            raise ParameterError(msg)

    @property
    def _prefit(self) -> bool:
        return (isinstance(self.cv, str) and self.cv == "prefit") or _is_frozen(self.estimator)

    def _split_by_group(self, X: Any, groups: Any) -> Split:
        """Return the rows to train on and those to calibrate with; no group has both."""
        if len(np.unique(groups)) < _TWO:
            msg = "groups has one group; 'split' needs two groups, one of them to train"
            raise ParameterError(msg)
        size, seed = self.calibration_size, self.random_state
        splitter = GroupShuffleSplit(1, test_size=size, random_state=seed)
        train, test = next(splitter.split(X, groups=groups))
        return train, test

    def _require_split(self) -> None:
        """Raise an error unless `cv` is "split", with a share between 0 and 1."""
        size = self.calibration_size
        is_split = isinstance(self.cv, str) and self.cv == "split"
        if not is_split or not isinstance(size, Real) or not 0.0 < float(size) < 1.0:
            msg = (
                f"cv={shown(self.cv)} with calibration_size={shown(size)} is invalid; cv must be "
                f"{self._cv_choices}, and the size between 0 and 1"
            )
            raise ParameterError(msg)

    def _trained(self, X: Any, y: Any, weights: Floats | None, train: Integers | None) -> Any:
        """Train a clone on some rows; without any, return the estimator itself."""
        if train is None:
            return self.estimator
        options = {}
        if weights is not None and has_fit_parameter(self.estimator, "sample_weight"):
            options = {"sample_weight": weights[train]}
        rows = _safe_indexing(X, train), _safe_indexing(y, train)
        return clone(self.estimator).fit(*rows, **options)

    def _check_use(self, weights: Floats | None) -> None:
        """Raise an error if all weights are zero; warn if only the calibrators take them."""
        if weights is None:
            return
        if not weights.any():
            msg = "sample_weight is zero in every row; one row at least must count"
            raise ParameterError(msg)
        if not self._prefit and not has_fit_parameter(self.estimator, "sample_weight"):
            name = type(self.estimator).__name__
            msg = f"{name}.fit takes no sample_weight: the weights count in calibration only"
            warnings.warn(msg, UserWarning, stacklevel=4)  # `_fit`, `fit`, its caller

    def _take_features(self, estimator: Any) -> None:
        """Copy the number and the names of features from an estimator, if it has them."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))

    def __sklearn_tags__(self) -> Any:
        """Accept the inputs that the estimator accepts."""
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.pairwise = inner.input_tags.pairwise
        return tags


def row_weights(sample_weight: Any, n: int) -> Floats | None:
    """Check the weights of n rows: each is zero, or one that a calibrator takes."""
    if sample_weight is None:
        return None
    weights = validation.numbers(sample_weight, "sample_weight")
    if weights.shape != (n,):
        msg = f"sample_weight has the shape {weights.shape}; it must be ({n},), one for each row"
        raise ParameterError(msg)
    validation.weights(np.where(weights == 0.0, 1.0, weights), n, LIMIT)
    return weights


def n_rows(X: Any) -> int:
    """Return the number of rows of a table of features."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _remedy(given: Any, kind: str) -> str:
    if inspect.isclass(given):
        return f"pass an instance, {given.__name__}(…), not the class"
    if callable(getattr(given, "learn_one", None)):
        return (
            f"use abers.river.{_RIVER_WRAPPERS[kind]} for a river model, or pass a scikit-learn "
            f"{kind}, such as {_EXAMPLES[kind]}"
        )
    return f"pass one, such as {_EXAMPLES[kind]}, or a pipeline that ends in one"


def _is_frozen(estimator: Any) -> bool:
    """Return whether a clone is fitted: of a `FrozenEstimator`, or a pipeline that ends in one."""
    return bool(get_tags(estimator).requires_fit) and _is_fitted(clone(estimator))


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True
