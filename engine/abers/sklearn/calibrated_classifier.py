"""A scikit-learn classifier with Venn-Abers calibrators, for batches.

`fit` trains only clones of the estimator, and none with ``cv="prefit"``. A calibrator learns the
scores of observations that its estimator was not trained on.
"""

# ruff: noqa: ANN401, N803, N806 - X and y as in scikit-learn, of any kind that it takes

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from abers.arrays import unmasked
from abers.calibration import OneVsRest, VennAbers, cross_ends, cross_log_merge, log_merge
from abers.exceptions import LabelError, MissingExtraError, ParameterError
from abers.sklearn._scores import class_intervals, class_scores
from abers.validation import shown

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.exceptions import NotFittedError
    from sklearn.model_selection import check_cv
    from sklearn.utils import (
        _safe_indexing,
        assert_all_finite,
        check_random_state,
        get_tags,
        indexable,
    )
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d
except ModuleNotFoundError as error:
    _MSG = "this wrapper needs scikit-learn; install it: pip install 'abers[sklearn]'"
    raise MissingExtraError(_MSG) from error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers

    Split: TypeAlias = tuple[Integers, Integers]

__all__ = ["VennAbersCalibratedClassifier"]

_TWO = 2  # classes, for which one calibrator is enough


class VennAbersCalibratedClassifier(
    ClassifierMixin,  # type: ignore[misc]  # scikit-learn has no types
    MetaEstimatorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Calibrate a scikit-learn classifier by Venn-Abers prediction.

    It predicts probabilities and intervals for two or more classes. With two classes a `VennAbers`
    calibrator learns the scores of the second one, with more a `OneVsRest` those of all. Scores
    come from `predict_proba`, or else from `decision_function`. They are rounded to 32 significant
    bits; of a probability above 1/2, its distance to 1 is rounded.

    Parameters
    ----------
    estimator
        A classifier, or a pipeline that ends in one.
    cv
        The observations that calibrate. "split": a share of each class, on which the clone of the
        estimator is not trained. "prefit": all of them; the estimator is already fitted to other
        observations. A number of folds, a splitter or an iterable of splits, as in scikit-learn:
        a clone is trained for each split and calibrated on the rest, and the predictions of all
        are merged (CVAP).
    calibration_size
        The share of each class that calibrates with "split", between 0 and 1. At least one
        observation of each class remains for training.
    random_state
        Seed of "split", as in scikit-learn; None gives another split each time.

    Attributes
    ----------
    classes_ : numpy.ndarray of shape (n_classes,)
        The classes, sorted: those of `y`, and with "prefit" those of the estimator as well.
    estimators_ : list
        The estimators that score observations: one, or one for each split.

    Raises
    ------
    ParameterError
        By `fit`: if an option is invalid, if there is only one class, or if the estimator is
        already fitted and `cv` is not "prefit".
    ScoreError
        By every method: if a score of an estimator is not a finite number.

    Notes
    -----
    **Guarantee.** With "split" or "prefit", exchangeable observations and two classes, one end of
    each interval is perfectly calibrated (Vovk & Petej 2014, Theorem 1), as long as the
    observations of `fit` and `update` that calibrate were not trained on. With more classes that
    holds for each class by itself, not for the vector of probabilities. Folds have no guarantee.

    **Rounding.** Many estimators score a row alone and the same row among others with different
    last bits, because the libraries below them add in another order. A calibrator jumps at the
    scores that it learned, so without rounding a learned row could have two predictions.

    **A fitted estimator** is never fitted again. `clone`, and so a grid search, makes an unfitted
    copy; to keep it fitted there, wrap it in `sklearn.frozen.FrozenEstimator`.

    **Classes** are of any kind that scikit-learn takes. A class keeps its column even if no
    observation that calibrates, or that trains a clone, belongs to it.

    References
    ----------
    Vovk, Petej & Fedorova (2015), Large-scale probabilistic predictors with and without
    guarantees of validity, sections 3 and 4.

    Examples
    --------
    >>> from abers.sklearn import VennAbersCalibratedClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = VennAbersCalibratedClassifier(GaussianNB(), random_state=1).fit(X[:400], y[:400])
    >>> model.predict_proba(X[400:402]).round(3).tolist()
    [[0.966, 0.034], [0.02, 0.98]]
    >>> model.predict_interval(X[400:402])[:, 1].round(3).tolist()
    [[0.0, 0.036], [0.98, 1.0]]
    >>> model.update(X[400:500], y[400:500]).predict_interval(X[400:402])[:, 1].round(3).tolist()
    [[0.0, 0.037], [0.991, 1.0]]
    """

    def __init__(
        self,
        estimator: Any,
        *,
        cv: Any = "split",
        calibration_size: float = 0.25,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.calibration_size = calibration_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> VennAbersCalibratedClassifier:
        """Train as `cv` says, and calibrate.

        Parameters
        ----------
        X, y
            Features of n observations, and their labels, of shape (n,).

        Returns
        -------
        VennAbersCalibratedClassifier
            The classifier itself.
        """
        X, y = indexable(unmasked(X), unmasked(y))
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        prefit = isinstance(self.cv, str) and self.cv == "prefit"
        self._refuse_unless(fitted=prefit)
        self.classes_ = np.unique(np.concatenate([y, self.estimator.classes_]) if prefit else y)
        if len(self.classes_) < _TWO:
            msg = f"y has one class, {shown(self.classes_.tolist())}; there must be two or more"
            raise ParameterError(msg)
        numbers = self._numbers(y)
        splits = [(None, np.arange(len(y)))] if prefit else self._splits(X, y, numbers)
        self.estimators_ = [self._trained(X, y, train) for train, _ in splits]
        self._take_features()
        two = len(self.classes_) == _TWO
        self._calibrators = [
            VennAbers() if two else OneVsRest(range(len(self.classes_))) for _ in splits
        ]
        self._updated = 0
        tests = [test for _, test in splits]
        self._learn([_safe_indexing(X, test) for test in tests], [numbers[test] for test in tests])
        return self

    def update(self, X: Any, y: Any) -> VennAbersCalibratedClassifier:
        """Add calibration observations; the estimators stay as they are.

        With several folds, rows go to them in turn.

        Parameters
        ----------
        X, y
            Features of n observations that no estimator was trained on, and their labels, of shape
            (n,), all among `classes_`.

        Returns
        -------
        VennAbersCalibratedClassifier
            The classifier itself.

        Raises
        ------
        LabelError
            If a label is not among `classes_`; nothing is learned then, as with all errors.
        """
        check_is_fitted(self)
        X, y = indexable(unmasked(X), unmasked(y))
        numbers = self._numbers(column_or_1d(y, warn=True))
        k = len(self.estimators_)
        turns = (self._updated + np.arange(len(numbers))) % k
        rows = [np.flatnonzero(turns == fold) for fold in range(k)]
        self._learn([_safe_indexing(X, each) for each in rows], [numbers[each] for each in rows])
        self._updated += len(numbers)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Predict merged probabilities (for log loss).

        Parameters
        ----------
        X
            Features of n observations.

        Returns
        -------
        numpy.ndarray
            Of shape (n, n_classes), columns in the order of `classes_`; rows sum to one.
        """
        low, high = self._ends(X)
        alone = low.shape[-1] == 1  # no mean to compute, which would round
        p = log_merge(low[..., 0], high[..., 0]) if alone else cross_log_merge(low, high)
        return p / p.sum(axis=1, keepdims=True)

    def predict_interval(self, X: Any) -> Floats:
        """Predict an interval for the probability of each class.

        Parameters
        ----------
        X
            Features of n observations.

        Returns
        -------
        numpy.ndarray
            Of shape (n, n_classes, 2): lower and upper ends, classes in the order of `classes_`.
            With more than two classes they are those before probabilities are divided by their sum.
        """
        low, high = self._ends(X)
        if low.shape[-1] == 1:
            return np.concatenate([low, high], axis=-1)
        return np.stack(cross_ends(low, high), axis=-1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the likeliest classes, of shape (n,), from features of n observations."""
        best = self.predict_proba(X).argmax(axis=1)
        classes: NDArray[Any] = self.classes_
        return classes[best]

    # Training

    def _refuse_unless(self, *, fitted: bool) -> None:
        """Raise an error for an estimator that is not fitted, or that would be fitted again."""
        if fitted:
            check_is_fitted(self.estimator, msg=_NOT_FITTED)
        elif get_tags(self.estimator).requires_fit and _is_fitted(self.estimator):
            msg = (
                f"{shown(self.estimator)} is fitted already; use it as it is by cv='prefit', or "
                "give sklearn.base.clone(estimator) to have a clone trained"
            )
            raise ParameterError(msg)

    def _splits(self, X: Any, y: Any, numbers: Integers) -> list[Split]:
        """Return the rows to train on and the rows to calibrate with, for each split."""
        if not isinstance(self.cv, str):
            return [*check_cv(self.cv, y, classifier=True).split(X, y)]
        size = self.calibration_size
        if self.cv != "split" or not isinstance(size, Real) or not 0.0 < float(size) < 1.0:
            msg = (
                f"cv={shown(self.cv)} with calibration_size={shown(size)} makes no sense; cv is "
                "'split', 'prefit', a number of folds or a splitter, and the size lies between 0 "
                "and 1"
            )
            raise ParameterError(msg)
        random = check_random_state(self.random_state)
        parts = [random.permutation(np.flatnonzero(numbers == k)) for k in np.unique(numbers)]
        kept = [part[: min(round(size * len(part)), len(part) - 1)] for part in parts]
        test = np.sort(np.concatenate(kept))
        return [(np.setdiff1d(np.arange(len(numbers)), test), test)]

    def _trained(self, X: Any, y: Any, train: Integers | None) -> Any:
        """Train a clone on some rows; without any, return the estimator itself."""
        if train is None:
            return self.estimator
        return clone(self.estimator).fit(_safe_indexing(X, train), _safe_indexing(y, train))

    def _take_features(self) -> None:
        """Copy the number and the names of features from the estimators, if they have them."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))

    # Scores and calibrators

    def _numbers(self, y: NDArray[Any]) -> Integers:
        """Return the index of each label in `classes_`."""
        numbers = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        bad = np.flatnonzero(self.classes_[numbers] != y)
        if bad.size:
            msg = (
                f"row {bad[0]}: class {shown(y.tolist()[bad[0]])} is not among the classes "
                f"{shown(self.classes_.tolist())}; fit anew with it"
            )
            raise LabelError(msg)
        return numbers

    def _learn(self, parts: Iterable[Any], numbers: Iterable[Integers]) -> None:
        """Score all parts, then let each calibrator learn its own."""
        pairs = zip(self.estimators_, parts, strict=True)
        scores = [class_scores(*pair, self.classes_) if _rows(pair[1]) else None for pair in pairs]
        for calibrator, table, labels in zip(self._calibrators, scores, numbers, strict=True):
            if table is not None:
                two = isinstance(calibrator, VennAbers)
                calibrator.learn_many(table[:, 1] if two else table, labels)

    def _ends(self, X: Any) -> tuple[Floats, Floats]:
        """Return the ends of all intervals, two arrays of shape (n, n_classes, n_estimators)."""
        check_is_fitted(self)
        pairs = zip(self._calibrators, self.estimators_, strict=True)
        ends = [
            class_intervals(calibrator, class_scores(each, X, self.classes_))
            for calibrator, each in pairs
        ]
        low, high = zip(*ends, strict=True)
        return np.stack(low, axis=-1), np.stack(high, axis=-1)

    def __sklearn_tags__(self) -> Any:
        """Accept the inputs that the estimator accepts."""
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.pairwise = inner.input_tags.pairwise
        return tags


_NOT_FITTED = (
    "%(name)s is not fitted, and cv='prefit' does not fit it; fit it on other observations first "
    "(in a clone it stays fitted if it is wrapped in sklearn.frozen.FrozenEstimator)"
)


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _rows(X: Any) -> int:
    """Return the number of rows of a table of features."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
