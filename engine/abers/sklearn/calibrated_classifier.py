"""A scikit-learn classifier with Venn-Abers calibrators, for batches.

`fit` trains only clones of the estimator, and none with ``cv="prefit"``. A calibrator learns the
scores of observations that its estimator was not trained on.
"""

# ruff: noqa: ANN401, N803, N806 - X and y as in scikit-learn, of any kind that it takes

from __future__ import annotations

import warnings
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, assert_all_finite, check_random_state, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from abers.arrays import unmasked
from abers.calibration import OneVsRest, VennAbers, cross_ends, cross_log_merge, log_merge
from abers.exceptions import LabelError, ParameterError
from abers.sklearn._meta_estimator import (
    CalibratedMetaEstimator,
    class_intervals,
    class_scores,
    row_weights,
)
from abers.validation import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers
    from abers.sklearn._meta_estimator import Split

    Member: TypeAlias = tuple[Any, VennAbers | OneVsRest]

__all__ = ["VennAbersCalibratedClassifier"]

_TWO = 2  # classes, for which one calibrator is enough


class VennAbersCalibratedClassifier(
    ClassifierMixin,  # type: ignore[misc]  # scikit-learn has no types
    CalibratedMetaEstimator,
):
    """Calibrate a scikit-learn classifier by Venn-Abers prediction.

    It predicts probabilities and intervals for two or more classes, from the `predict_proba` of
    the classifier, or else its `decision_function`. `partial_fit` adds calibration labels.

    Parameters
    ----------
    estimator
        A classifier, or a pipeline that ends in one.
    cv
        What calibrates: "split", a share of each class that does not train; "prefit", all
        observations, for an estimator that is already fitted to others; or folds, as a number, a
        splitter or splits: a clone is trained for each and calibrated on the rest (CVAP).
    calibration_size
        The share of each class that calibrates with "split", between 0 and 1.
    random_state
        Seed of "split"; None makes another split each time.

    Attributes
    ----------
    classes_ : numpy.ndarray of shape (n_classes,)
        The classes, sorted: those of `y`, and with "prefit" those of the estimator as well.
    estimators_ : list
        The estimators that score observations: one, or one for each split.

    Raises
    ------
    ParameterError
        By `fit`, before anything is trained: if the estimator is not a scikit-learn classifier, is
        already fitted and `cv` is not "prefit", if another option is invalid, or if there is only
        one class.
    ScoreError
        By every method: if a score of an estimator is not a finite number.

    Warns
    -----
    UserWarning
        By `fit` with "prefit": if `y` has classes that the estimator does not know. Each gets its
        column, from calibration labels alone.

    Notes
    -----
    **Guarantee.** With "split" or "prefit", exchangeable observations and two classes, one end of
    each interval is perfectly calibrated (Vovk & Petej 2014, Theorem 1). The observations of
    `fit` and `partial_fit` that calibrate must not train the estimator, and must have equal
    weights. With more classes this holds for each class by itself, not for the vector of
    probabilities. Folds have no guarantee.

    **Calibrators.** With two classes a `VennAbers` learns the scores of the second class; with more
    classes a `OneVsRest` learns those of all. With "split" at least one observation of each class
    trains.

    **Rounding.** Scores are rounded to 32 significant bits; for a probability above 1/2, its
    distance to 1 is rounded. Many estimators give a row alone and the same row among others scores
    with different last bits, because their libraries add in another order. A calibrator jumps
    at the scores that it learned, so without rounding a learned row could have two predictions.

    **A fitted estimator** is never fitted again. `clone`, and so a grid search, makes an unfitted
    copy; to keep it fitted there, wrap it in `sklearn.frozen.FrozenEstimator`. It never trains, so
    all observations calibrate it with every `cv`, as with "prefit".

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
    >>> model = model.partial_fit(X[400:500], y[400:500])
    >>> model.predict_interval(X[400:402])[:, 1].round(3).tolist()
    [[0.0, 0.037], [0.991, 1.0]]
    """

    _kind = "classifier"
    _cv_choices = "'split', 'prefit', a number of folds or a splitter"

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

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> VennAbersCalibratedClassifier:
        """Train as `cv` says, and calibrate.

        Parameters
        ----------
        X, y
            Features of n observations, and their labels, of shape (n,).
        sample_weight
            Weights of shape (n,), zero or positive: for the estimator if its `fit` has the
            parameter, and for the calibrators. A weight of zero does not calibrate.
        groups
            Groups of shape (n,), such as patients, that are not divided: "split" draws whole
            groups, without regard to classes, and a splitter such as
            `sklearn.model_selection.GroupKFold` gets them. A fitted estimator is not split.

        Returns
        -------
        VennAbersCalibratedClassifier
            The classifier itself, trained and calibrated.

        Raises
        ------
        ParameterError
            If `cv` is a number, which would divide groups; if there is one group, or if a
            splitter needs groups and gets no groups.
        """
        return self._fit(X, y, None, sample_weight, groups)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> VennAbersCalibratedClassifier:
        """Add calibration observations; the estimators stay as they are.

        Without an earlier `fit` it does what `fit` does. With several folds, rows go to them in
        turn.

        Parameters
        ----------
        X, y
            Features of n observations that no estimator was trained on, and their labels, of shape
            (n,), all among `classes_`.
        classes
            All classes, as scikit-learn has it. They are only checked: they must be `classes_`.
        sample_weight
            Weights of shape (n,), for the calibrators.

        Returns
        -------
        VennAbersCalibratedClassifier
            The classifier itself.

        Raises
        ------
        LabelError, WeightError
            If a label is not among `classes_`, or a weight is negative or not finite; nothing is
            learned then, as with all errors.
        ParameterError
            If `classes` are not `classes_`.
        """
        if not hasattr(self, "estimators_"):
            return self._fit(X, y, classes, sample_weight, None)
        _require_same(classes, self.classes_)
        X, y = indexable(unmasked(X), unmasked(y))
        numbers = _numbers(column_or_1d(y, warn=True), self.classes_)
        weights = row_weights(sample_weight, len(numbers))
        k = len(self.estimators_)
        turns = (self._updated + np.arange(len(numbers))) % k
        rows = [np.flatnonzero(turns == fold) for fold in range(k)]
        members = [*zip(self.estimators_, self._calibrators, strict=True)]
        _learn(members, self.classes_, X, numbers, weights, rows)
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
            As in `predict_proba`.

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

    def _fit(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, groups: Any
    ) -> VennAbersCalibratedClassifier:
        self._require_estimator()
        X, y, groups = indexable(unmasked(X), unmasked(y), groups)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        weights = row_weights(sample_weight, len(y))
        known = np.unique(np.concatenate([y, self.estimator.classes_]) if self._prefit else y)
        if self._prefit:
            _warn_of_unknown(y, self.estimator.classes_)
        if len(known) < _TWO:
            msg = f"y has one class, {shown(known.tolist())}; there must be two or more"
            raise ParameterError(msg)
        _require_same(classes, known)
        numbers = _numbers(y, known)
        splits = (
            [(None, np.arange(len(y)))] if self._prefit else self._splits(X, y, numbers, groups)
        )
        self._check_use(weights)
        estimators = [self._trained(X, y, weights, train) for train, _ in splits]
        two = len(known) == _TWO
        calibrators = [VennAbers() if two else OneVsRest(range(len(known))) for _ in splits]
        members = [*zip(estimators, calibrators, strict=True)]
        _learn(members, known, X, numbers, weights, [test for _, test in splits])
        self._take_features(estimators[0])
        self.classes_, self.estimators_, self._calibrators = known, estimators, calibrators
        self._updated = 0
        return self

    def _splits(self, X: Any, y: Any, numbers: Integers, groups: Any) -> list[Split]:
        """Return the rows to train on and the rows to calibrate with, for each split."""
        if not isinstance(self.cv, str):
            return self._folds(X, y, groups)
        self._require_split()
        if groups is not None:
            return [self._split_by_group(X, groups)]
        random, size = check_random_state(self.random_state), self.calibration_size
        parts = [random.permutation(np.flatnonzero(numbers == k)) for k in np.unique(numbers)]
        kept = [part[: min(round(size * len(part)), len(part) - 1)] for part in parts]
        test = np.sort(np.concatenate(kept))
        return [(np.setdiff1d(np.arange(len(numbers)), test), test)]

    def _folds(self, X: Any, y: Any, groups: Any) -> list[Split]:
        """Return the rows to train on and the rows to calibrate with, for each fold."""
        if groups is not None and (self.cv is None or isinstance(self.cv, Integral)):
            msg = (
                f"cv={shown(self.cv)} divides groups; choose folds that do not, such as "
                f"cv=sklearn.model_selection.GroupKFold({self.cv or 5})"
            )
            raise ParameterError(msg)
        splitter = check_cv(self.cv, y, classifier=True)
        try:
            return [*splitter.split(X, y, groups)]
        except ValueError as error:
            if groups is None and "'groups' parameter" in str(error):
                msg = f"cv={shown(self.cv)} needs groups; pass them, fit(X, y, groups=…)"
                raise ParameterError(msg) from None
            raise

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


def _learn(  # noqa: PLR0913, PLR0917 - rows, and their classes
    members: list[Member],
    classes: NDArray[Any],
    X: Any,
    numbers: Integers,
    weights: Floats | None,
    parts: list[Integers],
) -> None:
    """Score all parts, but rows of weight zero; then let each calibrator learn its own."""
    if weights is not None:
        parts = [rows[weights[rows] > 0.0] for rows in parts]
    scores = [
        class_scores(estimator, _safe_indexing(X, rows), classes) if len(rows) else None
        for (estimator, _), rows in zip(members, parts, strict=True)
    ]
    for (_, calibrator), table, rows in zip(members, scores, parts, strict=True):
        if table is not None:
            column = table[:, 1] if isinstance(calibrator, VennAbers) else table
            own = None if weights is None else weights[rows]
            calibrator.learn_many(column, numbers[rows], weights=own)


def _numbers(y: NDArray[Any], classes: NDArray[Any]) -> Integers:
    """Return the index of each label in the classes."""
    numbers = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    bad = np.flatnonzero(classes[numbers] != y)
    if bad.size:
        msg = (
            f"row {bad[0]}: class {shown(y.tolist()[bad[0]])} is not among the classes "
            f"{shown(classes.tolist())}; fit anew with it"
        )
        raise LabelError(msg)
    return numbers


def _warn_of_unknown(y: NDArray[Any], of_estimator: NDArray[Any]) -> None:
    """Warn of labels that a fitted estimator does not know: they may be other names of its own."""
    if unknown := sorted({*y.tolist()} - {*of_estimator.tolist()}):
        msg = (
            f"y has classes that the estimator does not know: {shown(unknown)}. It scores them 0; "
            f"if they are its own by other names, give them these: {shown(of_estimator.tolist())}"
        )
        warnings.warn(msg, UserWarning, stacklevel=4)  # `_fit`, `fit`, its caller


def _require_same(given: Any, known: NDArray[Any]) -> None:
    """Raise an error if classes are given, and are not those that are known."""
    if given is not None and {*np.unique(given).tolist()} != {*known.tolist()}:
        msg = (
            f"classes={shown(given)} are not the classes {shown(known.tolist())} of the first "
            "fit; fit first with labels of every class"
        )
        raise ParameterError(msg)
