"""scikit-learn regressors with a calibrator: `abers.sklearn.calibrated_regressor`.

The oracle is an estimator trained by hand and an `IVAPR` on its predictions.
"""

# ruff: noqa: N803, N806 - X and y as scikit-learn has them

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from river import tree
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import make_regression
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator

from abers import LabelError, ParameterError, ScoreError, WeightError
from abers.regression import IVAPR
from abers.sklearn import VennAbersCalibratedRegressor

if TYPE_CHECKING:
    from collections.abc import Callable

LEVELS = [0.05, 0.5, 0.9]


def data(n: int = 300, seed: int = 0) -> tuple[Any, Any]:
    """Make observations with noise."""
    made: tuple[Any, Any] = make_regression(n, 6, noise=50.0, random_state=seed)
    return made


class First(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator that predicts its first feature, a short binary fraction in the tests."""

    def fit(self, X: Any, y: Any) -> First:  # noqa: ANN401 - arrays
        """Note the rows."""
        self.X_, self.y_ = np.asarray(X), np.asarray(y)
        return self

    def predict(self, X: Any) -> Any:  # noqa: ANN401 - arrays
        """Return the first feature."""
        return np.asarray(X)[:, 0]


def checks() -> list[Any]:
    """Make a case of each check of scikit-learn, but of those that need folds or an array API."""
    left_out = {
        "check_array_api_input",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    }
    return [
        pytest.param(estimator, check, id=f"{number}-{check.func.__name__}-{i}")
        for number, each in enumerate([Ridge(), DecisionTreeRegressor(random_state=0)])
        for i, (estimator, check) in enumerate(
            estimator_checks_generator(VennAbersCalibratedRegressor(each))
        )
        if check.func.__name__ not in left_out
    ]


@pytest.mark.parametrize(("estimator", "check"), checks())
def test_scikit_learn_has_nothing_to_say(estimator: Any, check: Callable[[Any], None]) -> None:  # noqa: ANN401
    """Every check of scikit-learn passes, with a linear model and with a tree."""
    check(estimator)


def prefit(n: int = 200) -> tuple[Any, IVAPR, Any, Any]:
    """Return a model of a fitted estimator, the oracle, and data of which n rows calibrate."""
    rng = np.random.default_rng(0)
    X = rng.integers(-64, 64, (300, 1)) / 8.0
    y = X[:, 0] + rng.integers(-8, 8, 300) / 4.0
    model = VennAbersCalibratedRegressor(First().fit(X, y), cv="prefit").fit(X[:n], y[:n])
    expected = IVAPR()
    expected.learn_many(X[:n, 0], y[:n])
    return model, expected, X, y


def test_quantiles_are_those_of_the_calibrator() -> None:
    """With a fitted estimator, quantiles are those of `IVAPR`, and intervals lie between two."""
    model, expected, X, _ = prefit()
    merged = expected.quantiles_many(X[200:, 0], [0.1, 0.25, 0.5, 0.75, 0.9]).merged
    assert (model.predict_quantiles(X[200:], [0.1, 0.25, 0.5, 0.75, 0.9]) == merged).all()
    for level in (0.5, np.float32(0.5)):
        assert (model.predict_interval(X[200:], level=level) == merged[:, [1, 3]]).all()
    ends = expected.quantiles_many(X[200:, 0], [(1.0 - 0.9) / 2.0, 1.0 - (1.0 - 0.9) / 2.0])
    assert (model.predict_interval(X[200:]) == ends.merged).all()
    finite = np.isfinite(merged[:, 2])
    assert finite.any()
    assert (model.predict(X[200:])[finite] == merged[finite, 2]).all()


def test_an_infinite_median_is_the_estimators_prediction() -> None:
    """With one calibration label, every prediction is the estimator's own."""
    model, _, X, _ = prefit(1)
    assert np.isinf(model.predict_quantiles(X, [0.01, 0.99])).all()
    unknown = ~np.isfinite(model.predict_quantiles(X, [0.5])[:, 0])
    assert unknown.any()
    assert (model.predict(X)[unknown] == X[unknown, 0]).all()


@pytest.mark.parametrize(("n", "size", "n_out"), [(100, 0.25, 25), (2, 0.01, 1), (2, 0.99, 1)])
def test_a_split_keeps_a_share_out_of_training(n: int, size: float, n_out: int) -> None:
    """A share calibrates, at least one observation, and the others train."""
    X, y = np.arange(float(n))[:, np.newaxis], np.arange(float(n)) * 2.0
    model = VennAbersCalibratedRegressor(First(), calibration_size=size).fit(X, y)
    out = np.setdiff1d(X[:, 0], model.estimator_.X_[:, 0])
    assert len(out) == n_out
    assert (model.estimator_.y_ == 2.0 * model.estimator_.X_[:, 0]).all()
    expected = IVAPR()
    expected.learn_many(out, 2.0 * out)
    assert model.calibrator_ == expected


def test_another_seed_gives_another_split() -> None:
    """A seed makes the same split again, and another one another."""
    X, y = data()
    found = [
        VennAbersCalibratedRegressor(Ridge(), random_state=seed).fit(X, y).predict(X)
        for seed in (1, 1, 2)
    ]
    assert (found[0] == found[1]).all()
    assert (found[0] != found[2]).any()


def test_intervals_cover_about_their_level() -> None:
    """On exchangeable data of one size, intervals of 80 % cover about 80 % of new labels."""
    X, y = data(3_000)
    model = VennAbersCalibratedRegressor(Ridge(), calibration_size=0.5).fit(X[:1_500], y[:1_500])
    low, high = model.predict_interval(X[1_500:], level=0.8).T
    assert 0.75 < ((low <= y[1_500:]) & (y[1_500:] <= high)).mean() < 0.95


def test_a_partial_fit_adds_calibration_labels_alone() -> None:
    """Labels in parts calibrate as all at once, and the first partial fit is a fit."""
    model, expected, X, y = prefit(100)
    before = pickle.dumps(model.estimator)
    assert model.partial_fit(X[100:101], y[100:101]).partial_fit(X[101:200], y[101:200]) is model
    expected.learn_many(X[100:200, 0], y[100:200])
    assert model.calibrator_ == expected
    first = clone(model).set_params(estimator=model.estimator).partial_fit(X[:200], y[:200])
    assert first.calibrator_ == expected
    assert pickle.dumps(model.estimator) == before


def test_a_weight_counts_labels() -> None:
    """In calibration a weight of 2 is two observations, and of 0 is none."""
    model, _, X, y = prefit(100)
    weights = np.arange(200) % 3
    rows = np.repeat(np.arange(100, 300), weights)
    repeated = pickle.loads(pickle.dumps(model)).partial_fit(X[rows], y[rows])  # noqa: S301 - our own
    model.partial_fit(X[100:], y[100:], weights)
    assert (model.predict_quantiles(X, LEVELS) == repeated.predict_quantiles(X, LEVELS)).all()


def test_weights_reach_the_estimator() -> None:
    """The clone trains with the weights of its rows, if its `fit` has the parameter."""
    X, y = data()
    weights = np.random.default_rng(0).integers(0, 4, 300) / 2.0
    order = np.random.RandomState(0).permutation(300)
    test, train = np.sort(order[:75]), np.sort(order[75:])
    model = VennAbersCalibratedRegressor(Ridge()).fit(X, y, weights)
    expected = Ridge().fit(X[train], y[train], weights[train])
    assert (model.estimator_.coef_ == expected.coef_).all()
    assert len(model.calibrator_) == (weights[test] > 0.0).sum()
    with pytest.warns(UserWarning, match=r"KNeighborsRegressor\.fit takes no sample_w") as caught:
        VennAbersCalibratedRegressor(KNeighborsRegressor()).fit(X, y, weights)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("y", "weights", "error", "message"),
    [
        ([1.0, np.nan], None, ValueError, "Input y contains NaN"),
        (["a", "b"], None, LabelError, "row 0: label .*'a'"),
        ([1.0, 2.0], [1.0, -1.0], WeightError, "row 1: weight -1"),
        ([1.0, 2.0], [1.0], ParameterError, r"shape \(1,\); it must be \(2,\)"),
    ],
)
def test_bad_rows_change_nothing(y: Any, weights: Any, error: Any, message: str) -> None:  # noqa: ANN401
    """Labels and weights that cannot be used are refused before anything is learned."""
    model, expected, X, _ = prefit()
    for call in (model.partial_fit, VennAbersCalibratedRegressor(First()).fit):
        with pytest.raises(error, match=message):
            call(X[:2], y, weights)
    assert model.calibrator_ == expected


def test_weights_of_zero_alone() -> None:
    """A fit needs a row that counts; a partial fit without one learns nothing."""
    model, expected, X, y = prefit()
    with pytest.raises(ParameterError, match="sample_weight is zero in every row"):
        clone(model).set_params(estimator=model.estimator).fit(X[:2], y[:2], [0.0, 0.0])
    assert model.partial_fit(X[:2], y[:2], [0.0, 0.0]).calibrator_ == expected


def test_a_prediction_of_nan_is_refused() -> None:
    """A prediction that is not a finite number is refused by its row, and nothing is learned."""
    model, expected, X, y = prefit()
    bad = X[:9].copy()
    bad[6, 0] = np.nan
    with pytest.raises(ScoreError, match="row 6: score nan of First"):
        model.predict(bad)
    with pytest.raises(ScoreError, match="row 6: score nan of First"):
        model.partial_fit(bad, y[:9])
    assert model.calibrator_ == expected


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LogisticRegression(), r"estimator=LogisticRegression\(\) is not a regressor;.*Classifier"),
        (LinearRegression, r"pass an instance, LinearRegression\(…\), not the class"),
        (tree.HoeffdingTreeRegressor(), r"use abers\.river\.VennAbersRegressor for a river model"),
        (5, r"estimator=5 is not a scikit-learn regressor; pass one, such as LinearRegression"),
    ],
)
def test_a_wrong_estimator_is_an_error_of_fit(estimator: Any, message: str) -> None:  # noqa: ANN401
    """Before anything is trained, `fit` names the value, the parameter and the remedy."""
    with pytest.raises(ParameterError, match=message):
        VennAbersCalibratedRegressor(estimator).fit(*data())


@pytest.mark.parametrize(
    "options",
    [{"cv": 3}, {"cv": "loo"}, {"calibration_size": 0.0}, {"calibration_size": "x"}],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    """Options are refused by `fit`, as scikit-learn wants it."""
    with pytest.raises(ParameterError, match=r"is invalid; cv must be 'split' or 'prefit', and"):
        VennAbersCalibratedRegressor(Ridge(), **options).fit(*data())


@pytest.mark.parametrize("level", [0.0, 1.0, 90, "x", None, np.nan])
def test_levels_that_make_no_sense(level: Any) -> None:  # noqa: ANN401 - anything
    """A level lies between 0 and 1."""
    model, _, X, _ = prefit()
    with pytest.raises(ParameterError, match=r"^level=.* must be a number above 0 and below 1"):
        model.predict_interval(X, level)


def test_a_fitted_estimator_is_never_refitted() -> None:
    """A fitted one is refused with the remedy, and an unfitted one with prefit."""
    X, y = data()
    pipeline = make_pipeline(StandardScaler(), Ridge())
    with pytest.raises(NotFittedError, match="FrozenEstimator"):
        VennAbersCalibratedRegressor(pipeline, cv="prefit").fit(X, y)
    fitted = clone(pipeline).fit(X[:100], y[:100])
    with pytest.raises(ParameterError, match=r"fitted already.*cv='prefit'"):
        VennAbersCalibratedRegressor(fitted).fit(X, y)
    frozen = VennAbersCalibratedRegressor(FrozenEstimator(fitted), cv="prefit")
    assert cross_val_score(frozen, X, y, cv=3).min() > 0.3
    grid = GridSearchCV(VennAbersCalibratedRegressor(pipeline), {"calibration_size": [0.3, 0.5]})
    assert grid.fit(X, y).predict(X).shape == (300,)
    assert not hasattr(pipeline[-1], "coef_")


@pytest.mark.parametrize("cv", ["split", "prefit"])
def test_a_frozen_estimator_is_fitted(cv: str) -> None:
    """It trains never, so that all observations calibrate it, as with prefit."""
    X, y = data()
    fitted = Ridge().fit(X[:100], y[:100])
    same = VennAbersCalibratedRegressor(fitted, cv="prefit").fit(X[100:], y[100:])
    model = VennAbersCalibratedRegressor(FrozenEstimator(fitted), cv=cv).fit(X[100:], y[100:])
    assert (model.predict_interval(X) == same.predict_interval(X)).all()


def test_groups_are_never_divided() -> None:
    """The rows of a group train, or calibrate, all of them."""
    X, y = data()
    groups = np.arange(300) // 30
    split = GroupShuffleSplit(1, test_size=0.25, random_state=0)
    [(train, test)] = split.split(X, y, groups)
    model = VennAbersCalibratedRegressor(Ridge()).fit(X, y, groups=groups)
    fitted = Ridge().fit(X[train], y[train])
    by_hand = VennAbersCalibratedRegressor(fitted, cv="prefit").fit(X[test], y[test])
    assert (model.predict_interval(X) == by_hand.predict_interval(X)).all()
    with pytest.raises(ParameterError, match="'split' needs two groups"):
        VennAbersCalibratedRegressor(Ridge()).fit(X, y, groups=np.zeros(300))


def test_before_fit_there_is_no_prediction() -> None:
    """Predicting without a fit is scikit-learn's own error."""
    model = VennAbersCalibratedRegressor(Ridge())
    for call in (model.predict, model.predict_interval):
        with pytest.raises(NotFittedError):
            call(data()[0])


def test_sparse_features_and_pickles() -> None:
    """Sparse features reach the estimator, and a pickle predicts alike."""
    X, y = data()
    model = VennAbersCalibratedRegressor(Ridge(solver="lsqr")).fit(sparse.csr_matrix(X), y)
    restored = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    assert (restored.predict_interval(X) == model.predict_interval(X)).all()
    assert model.n_features_in_ == 6
