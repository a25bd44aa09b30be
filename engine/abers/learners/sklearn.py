"""scikit-learn classifiers with Venn-Abers calibrators, for batch work.

Governing rule: an estimator is trained only as a clone, and only where asked for; a calibrator
learns scores of observations that its estimator was not trained on.
"""

# ruff: noqa: ANN401, N803, N806 - X and y as scikit-learn has them, of any kind that it takes

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from abers._arrays import unmasked
from abers._shown import shown
from abers.calibration import OneVsRest, VennAbers, cross_ends, cross_log_merge, log_merge
from abers.exceptions import LabelError, MissingExtraError, ParameterError, ScoreError

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

    from abers._arrays import Floats, Integers

    Split: TypeAlias = tuple[Integers, Integers]

__all__ = ["VennAbersCalibratedClassifier"]

_TWO = 2  # classes, for which one calibrator does
_BITS = 32  # of a score; 20 are left to what adding in another order changes


class VennAbersCalibratedClassifier(
    ClassifierMixin,  # type: ignore[misc]  # scikit-learn has no types
    MetaEstimatorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Calibrate a scikit-learn classifier by Venn-Abers prediction.

    Probabilities and intervals for two or more classes. With two, a `VennAbers` calibrator learns
    the scores of the second; with more, a `OneVsRest` those of all. Scores are what
    `predict_proba` gives, or else `decision_function`, rounded to 32 significant bits (of a
    probability above 1/2, what is missing to 1).

    Parameters
    ----------
    estimator
        A classifier, or a pipeline that ends in one.
    cv
        Which observations calibrate. "split": a part of each class, kept out of the training of a
        clone of the estimator. "prefit": all of them; the estimator is fitted already, on others,
        and used as it is. A number of folds, a splitter or an iterable of splits, as in
        scikit-learn: for each a clone is trained, and calibrated on the rest; the predictions of
        all are merged (CVAP).
    calibration_size
        The part of each class that calibrates with "split", between 0 and 1. Of each class at least
        one observation is left for training.
    random_state
        Seed of "split"; as scikit-learn has it, None for another split each time.

    Attributes
    ----------
    classes_ : numpy.ndarray of shape (n_classes,)
        The classes, sorted: those of `y`, and with "prefit" those of the estimator as well.
    estimators_ : list
        The estimators that score: one, or one for each split.

    Raises
    ------
    ParameterError
        By `fit`: if an option makes no sense, if there is one class only, or if the estimator is
        fitted already and `cv` is not "prefit".

    Notes
    -----
    **Guarantee.** With "split" or "prefit", exchangeable observations and two classes, one end of
    each interval is perfectly calibrated (Vovk & Petej 2014, Theorem 1), as long as the
    observations of `fit` and `update` that calibrate were not trained on. With more classes that
    holds for each class by itself, not for the vector of probabilities. With folds there is none.

    **Rounding.** Many estimators score a row alone and among others with other last bits, as the
    libraries beneath them add in another order. A calibrator jumps at the scores that it learned,
    so without rounding a row that was learned could have two predictions.

    **A fitted estimator** is never fitted again. `clone`, and so a grid search, gives an unfitted
    one; one that shall stay fitted there is wrapped in `sklearn.frozen.FrozenEstimator`.

    **Classes** are of any kind that scikit-learn takes. A class that is missing among what
    calibrates, or among what a clone is trained on, keeps its column.

    References
    ----------
    Vovk, Petej & Fedorova (2015), Large-scale probabilistic predictors with and without
    guarantees of validity, sections 3 and 4.

    Examples
    --------
    >>> from abers.learners.sklearn import VennAbersCalibratedClassifier
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
        X
            Features of n observations.
        y
            Their labels, of shape (n,).

        Returns
        -------
        VennAbersCalibratedClassifier
            The classifier itself.

        Raises
        ------
        ParameterError
            As the class says.
        ScoreError
            If a score of the estimator is not a finite number.
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

        With folds, rows go around them in turn.

        Parameters
        ----------
        X
            Features of n observations that no estimator was trained on.
        y
            Their labels, of shape (n,), all among `classes_`.

        Returns
        -------
        VennAbersCalibratedClassifier
            The classifier itself.

        Raises
        ------
        LabelError
            If a label is of no class that is known; nothing is learned then, as with all errors.
        ScoreError
            If a score of an estimator is not a finite number.
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

        Raises
        ------
        ScoreError
            If a score of an estimator is not a finite number.
        """
        low, high = self._ends(X)
        alone = low.shape[-1] == 1  # then there are no means to take, which would round
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

        Raises
        ------
        ScoreError
            If a score of an estimator is not a finite number.
        """
        low, high = self._ends(X)
        if low.shape[-1] == 1:
            return np.concatenate([low, high], axis=-1)
        return np.stack(cross_ends(low, high), axis=-1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the likeliest classes.

        Parameters
        ----------
        X
            Features of n observations.

        Returns
        -------
        numpy.ndarray
            Of shape (n,).
        """
        best = self.predict_proba(X).argmax(axis=1)
        classes: NDArray[Any] = self.classes_
        return classes[best]

    # Training

    def _refuse_unless(self, *, fitted: bool) -> None:
        """Refuse an estimator that is not fitted, or that would be fitted again."""
        if fitted:
            check_is_fitted(self.estimator, msg=_NOT_FITTED)
        elif get_tags(self.estimator).requires_fit and _is_fitted(self.estimator):
            msg = (
                f"{shown(self.estimator)} is fitted already; use it as it is by cv='prefit', or "
                "give sklearn.base.clone(estimator) to have a clone trained"
            )
            raise ParameterError(msg)

    def _splits(self, X: Any, y: Any, numbers: Integers) -> list[Split]:
        """Rows to train on and rows to calibrate by."""
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
        """Train a clone on some rows; without any the estimator is used as it is."""
        if train is None:
            return self.estimator
        return clone(self.estimator).fit(_safe_indexing(X, train), _safe_indexing(y, train))

    def _take_features(self) -> None:
        """Take over what the estimators say of their features, if they do."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))

    # Scores and calibrators

    def _numbers(self, y: NDArray[Any]) -> Integers:
        """Find the numbers of labels among the classes."""
        numbers = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        bad = np.flatnonzero(self.classes_[numbers] != y)
        if bad.size:
            msg = (
                f"row {bad[0]}: class {shown(y.tolist()[bad[0]])} is not among the classes "
                f"{shown(self.classes_.tolist())}; fit anew with it"
            )
            raise LabelError(msg)
        return numbers

    def _scores(self, estimator: Any, X: Any) -> Floats:
        """Score observations, a column a class; 0 for a class that the estimator does not know."""
        probable = getattr(estimator, "predict_proba", None)
        given = np.asarray((probable or estimator.decision_function)(unmasked(X)), dtype=np.float64)
        if given.ndim == 1:
            given = np.column_stack([-given, given])
        bad = np.argwhere(~np.isfinite(given))
        if len(bad):
            row, column = bad[0].tolist()
            msg = (
                f"row {row}: score {given[row, column]} of {type(estimator).__name__} is not a "
                "finite number; drop the observation or repair the estimator"
            )
            raise ScoreError(msg)
        scores = np.zeros((len(given), len(self.classes_)))
        rounded = _rounded_probabilities(given) if probable else _rounded(given)
        scores[:, np.searchsorted(self.classes_, estimator.classes_)] = rounded
        return scores

    def _learn(self, parts: Iterable[Any], numbers: Iterable[Integers]) -> None:
        """Let each calibrator learn its part, once all parts are scored."""
        pairs = zip(self.estimators_, parts, strict=True)
        scores = [self._scores(*pair) if _rows(pair[1]) else None for pair in pairs]
        for calibrator, table, labels in zip(self._calibrators, scores, numbers, strict=True):
            if table is not None:
                two = isinstance(calibrator, VennAbers)
                calibrator.learn_many(table[:, 1] if two else table, labels)

    def _ends(self, X: Any) -> tuple[Floats, Floats]:
        """Find the ends of all intervals, two arrays of shape (n, n_classes, n_estimators)."""
        check_is_fitted(self)
        pairs = zip(self._calibrators, self.estimators_, strict=True)
        ends = [_interval(calibrator, self._scores(each, X)) for calibrator, each in pairs]
        low, high = zip(*ends, strict=True)
        return np.stack(low, axis=-1), np.stack(high, axis=-1)

    def __sklearn_tags__(self) -> Any:
        """Take what the estimator takes."""
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
    """Count the rows of whatever holds features."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _rounded(scores: Floats) -> Floats:
    """Round to as many bits as a score keeps, whichever rows it is computed with."""
    mantissa, exponent = np.frexp(scores)
    rounded: Floats = np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    return rounded


def _rounded_probabilities(p: Floats) -> Floats:
    """Round the distance to 0 or to 1, whichever is less: near 1 it is what tells them apart."""
    return np.where(p <= 0.5, _rounded(p), 1.0 - _rounded(1.0 - p))  # noqa: PLR2004


def _interval(calibrator: VennAbers | OneVsRest, scores: Floats) -> tuple[Floats, Floats]:
    """Find the lower and upper ends of all classes, two arrays of shape (n, n_classes)."""
    if isinstance(calibrator, OneVsRest):
        _, low, high = calibrator.predict_many(scores)
        return low, high
    p0, p1 = calibrator.predict_many(scores[:, 1])
    return np.column_stack([1.0 - p1, p0]), np.column_stack([1.0 - p0, p1])
