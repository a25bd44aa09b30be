"""A scikit-learn regressor with a calibrator of distributions, for batches.

`fit` trains only a clone of the estimator, and none with ``cv="prefit"``. The calibrator learns the
predictions of observations that the estimator was not trained on.
"""

# ruff: noqa: ANN401, N803, N806 - X and y as in scikit-learn, of any kind that it takes

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import _safe_indexing, assert_all_finite, check_random_state, indexable
from sklearn.utils.validation import check_is_fitted, column_or_1d

from abers import validation
from abers.arrays import unmasked
from abers.exceptions import ParameterError
from abers.regression import IVAPR
from abers.sklearn._meta_estimator import (
    CalibratedMetaEstimator,
    n_rows,
    regression_scores,
    row_weights,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats
    from abers.sklearn._meta_estimator import Split

__all__ = ["VennAbersCalibratedRegressor"]

_TWO = 2  # observations: one to train on and one to calibrate with


class VennAbersCalibratedRegressor(
    RegressorMixin,  # type: ignore[misc]  # scikit-learn has no types
    CalibratedMetaEstimator,
):
    """Calibrate a scikit-learn regressor: medians, quantiles and intervals of its labels.

    An `IVAPR` calibrator learns predictions of the regressor with their labels, and maps a new
    prediction to a distribution of the label. `partial_fit` adds calibration labels.

    Parameters
    ----------
    estimator
        A regressor, or a pipeline that ends in one.
    cv
        What calibrates: "split", a random share that does not train; or "prefit", all
        observations, for an estimator that is already fitted to others. A
        `sklearn.frozen.FrozenEstimator` never trains, so all observations calibrate it.
    calibration_size
        The share that calibrates with "split", between 0 and 1.
    random_state
        Seed of "split"; None makes another split each time.

    Attributes
    ----------
    estimator_ : object
        The regressor that predicts.
    calibrator_ : IVAPR
        The calibrator of its predictions.

    Raises
    ------
    ParameterError
        By `fit`, before anything is trained: if the estimator is not a scikit-learn regressor, is
        already fitted and `cv` is not "prefit", or if another option is invalid.
    ScoreError
        By every method: if a prediction of the estimator is not a finite number.

    Notes
    -----
    **Guarantee.** That of `IVAPR`, one threshold at a time, for exchangeable observations of equal
    weight on which the estimator was not trained. There is no guarantee for quantiles and
    intervals; their coverage is close to their level in practice.

    **Few labels.** A quantile in the mass beyond the calibration labels is infinite, as in `IVAPR`.
    The regressor's own prediction replaces an infinite median.

    **Rounding** is as in `VennAbersCalibratedClassifier`: predictions to 32 significant bits.

    References
    ----------
    Petej (2018), Inductive Venn-Abers prediction for regression.

    Examples
    --------
    >>> from abers.sklearn import VennAbersCalibratedRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = VennAbersCalibratedRegressor(LinearRegression(), calibration_size=0.5)
    >>> model.fit(X[:400], y[:400]).predict(X[400:402]).tolist()
    [170.0, 94.0]
    >>> model.predict_interval(X[400:402], level=0.8).tolist()
    [[85.0, 296.0], [49.0, 158.0]]
    >>> model.predict_quantiles(X[400:402], [0.25, 0.75]).tolist()
    [[122.0, 263.0], [65.0, 127.0]]
    """

    _kind = "regressor"
    _cv_choices = "'split' or 'prefit'"

    def __init__(
        self,
        estimator: Any,
        *,
        cv: str = "split",
        calibration_size: float = 0.25,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.calibration_size = calibration_size
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> VennAbersCalibratedRegressor:
        """Train as `cv` says, and calibrate.

        Parameters
        ----------
        X, y
            Features of n observations, and their labels, numbers, of shape (n,).
        sample_weight
            Weights of shape (n,), zero or positive: for the estimator if its `fit` has the
            parameter, and for the calibrator. A weight of zero does not calibrate.
        groups
            Groups of shape (n,), such as patients, that are not divided: "split" draws whole
            groups. A fitted estimator is not split.

        Returns
        -------
        VennAbersCalibratedRegressor
            The regressor itself, trained and calibrated.

        Raises
        ------
        ParameterError
            If there is one group.
        """
        return self._fit(X, y, sample_weight, groups)

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> VennAbersCalibratedRegressor:
        """Add calibration observations; the estimator stays as it is.

        Without an earlier `fit` it does what `fit` does.

        Parameters
        ----------
        X, y
            Features of n observations that the estimator was not trained on, and their labels, of
            shape (n,).
        sample_weight
            Weights of shape (n,), for the calibrator.

        Returns
        -------
        VennAbersCalibratedRegressor
            The regressor itself.

        Raises
        ------
        LabelError, WeightError
            If a row is invalid; nothing is learned then.
        """
        if not hasattr(self, "estimator_"):
            return self._fit(X, y, sample_weight, None)
        _learn(self.estimator_, self.calibrator_, *_checked(X, y, sample_weight))
        return self

    def predict(self, X: Any) -> Floats:
        """Predict the medians, of shape (n,), from features of n observations."""
        scores = self._scores(X)
        medians = self.calibrator_.quantiles_many(scores, [0.5]).merged[:, 0]
        return np.where(np.isfinite(medians), medians, scores)

    def predict_quantiles(self, X: Any, levels: ArrayLike) -> Floats:
        """Predict quantiles of the labels.

        Parameters
        ----------
        X
            Features of n observations.
        levels
            The k levels of the quantiles, each between 0 and 1.

        Returns
        -------
        numpy.ndarray
            Of shape (n, k): quantiles of the merged distributions.
        """
        scores = self._scores(X)
        return self.calibrator_.quantiles_many(scores, levels).merged

    def predict_interval(self, X: Any, level: float = 0.9) -> Floats:
        """Predict central intervals for the labels.

        Parameters
        ----------
        X
            Features of n observations.
        level
            The promised share of labels inside the intervals, between 0 and 1.

        Returns
        -------
        numpy.ndarray
            Of shape (n, 2): lower and upper ends, quantiles of the merged distributions.
        """
        tail = (1.0 - validation.fraction(level, "level")) / 2.0
        return self.predict_quantiles(X, [tail, 1.0 - tail])

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> VennAbersCalibratedRegressor:
        self._require_estimator()
        X, y, weights = _checked(X, y, sample_weight)
        X, groups = indexable(X, groups)
        calibrator = IVAPR()
        train, test = (None, np.arange(len(y))) if self._prefit else self._split(X, len(y), groups)
        self._check_use(weights)
        estimator = self._trained(X, y, weights, train)
        tested = None if weights is None else weights[test]
        _learn(estimator, calibrator, _safe_indexing(X, test), y[test], tested)
        self._take_features(estimator)
        self.estimator_, self.calibrator_ = estimator, calibrator
        return self

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        return regression_scores(self.estimator_, X)

    def _split(self, X: Any, n: int, groups: Any) -> Split:
        """Return the rows to train on and the rows to calibrate with."""
        self._require_split()
        if n < _TWO:
            msg = f"y has n_samples={n}; 'split' needs two, one to train and one to calibrate"
            raise ParameterError(msg)
        if groups is not None:
            return self._split_by_group(X, groups)
        size = min(max(round(self.calibration_size * n), 1), n - 1)
        order = check_random_state(self.random_state).permutation(n)
        return np.sort(order[size:]), np.sort(order[:size])


def _checked(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Floats, Floats | None]:
    """Return features, labels and weights that calibrators take."""
    X, y = indexable(unmasked(X), unmasked(y))
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    return X, validation.reals(y, len(y)), row_weights(sample_weight, len(y))


def _learn(estimator: Any, calibrator: IVAPR, X: Any, y: Floats, weights: Floats | None) -> None:
    """Let the calibrator learn rows, but those of weight zero."""
    if weights is not None:
        rows = np.flatnonzero(weights)
        X, y, weights = _safe_indexing(X, rows), y[rows], weights[rows]
    if n_rows(X):
        calibrator.learn_many(regression_scores(estimator, X), y, weights=weights)
