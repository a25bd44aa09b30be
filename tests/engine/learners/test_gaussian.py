"""Models with normal predictions, `abers.learners.gaussian`: against closed forms."""

# ruff: noqa: N803, N806 - X and y as scikit-learn has them

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abers import ParameterError
from abers.batch import GPBeta
from abers.learners.gaussian import (
    BayesianLinear,
    GaussianProcess,
    LeastSquares,
    NeuralNet,
    Ridge,
)
from abers.regression.scores import log_score_normal

if TYPE_CHECKING:
    from abers.learners.gaussian import GaussianRegressor

Data = tuple[Any, Any]


def data(n: int, seed: int = 0) -> Data:
    """Make labels that are linear in three features but for noise of 0.5."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, -2.0, 0.5] + 3.0 + 0.5 * rng.normal(size=n)


def designed(X: Any) -> Any:  # noqa: ANN401 - arrays
    """Put the intercept's column before features."""
    return np.column_stack([np.ones(len(X)), X])


EVERY = pytest.mark.parametrize(
    "make",
    [LeastSquares, Ridge, BayesianLinear, GaussianProcess, lambda: NeuralNet((8,))],
    ids=["ols", "ridge", "bayesian", "process", "net"],
)


# Linear models


def test_least_squares_are_the_normal_equations() -> None:
    """Mean and spread are the textbook's, with n less p + 1 degrees of freedom."""
    (X, y), (T, _) = data(40), data(5, 1)
    weights = np.linalg.solve(designed(X).T @ designed(X), designed(X).T @ y)
    residuals = y - designed(X) @ weights
    mean, std = LeastSquares().fit(X, y).predict(T)
    assert mean == pytest.approx(designed(T) @ weights, rel=1e-10)
    assert std == pytest.approx(np.full(5, np.sqrt((residuals**2).sum() / 36.0)), rel=1e-10)


@pytest.mark.parametrize("alpha", [0.1, 3.0, 100.0])
def test_a_ridge_has_the_degrees_of_freedom_of_its_smoother(alpha: float) -> None:
    """Mean and spread are those of the matrix H that makes fitted values: n - tr(2 H - H H')."""
    (X, y), (T, _) = data(40), data(5, 1)
    penalty = alpha * np.diag([0.0, 1.0, 1.0, 1.0])
    inverse = np.linalg.solve(designed(X).T @ designed(X) + penalty, designed(X).T)
    H = designed(X) @ inverse
    freedom = 40.0 - np.trace(2.0 * H - H @ H.T)
    mean, std = Ridge(alpha).fit(X, y).predict(T)
    assert mean == pytest.approx(designed(T) @ inverse @ y, rel=1e-9)
    known = np.sqrt(((y - H @ y) ** 2).sum() / freedom)
    assert std == pytest.approx(np.full(5, known), rel=1e-9)


def test_the_spread_of_least_squares_is_unbiased() -> None:
    """Over many small samples the mean variance is the true one, which the plain one is not."""
    found = [LeastSquares().fit(*data(8, seed)).predict(np.zeros((1, 3))) for seed in range(500)]
    assert np.mean([std**2 for _, std in found]) == pytest.approx(0.25, abs=0.03)


def test_features_that_say_the_same_count_once() -> None:
    """A copied feature and a constant one leave spread and mean as they are."""
    (X, y), (T, _) = data(40), data(5, 1)
    more = [np.column_stack([each, each[:, 0], np.ones(len(each))]) for each in (X, T)]
    mean, std = LeastSquares().fit(X, y).predict(T)
    same, known = LeastSquares().fit(more[0], y).predict(more[1])
    assert (same == pytest.approx(mean), known == pytest.approx(std)) == (True, True)


def test_without_a_degree_of_freedom_no_spread_is_stated() -> None:
    """Four labels of a model with four coefficients are refused, five are not."""
    with pytest.raises(ParameterError, match="4 labels leave no degree of freedom"):
        LeastSquares().fit(*data(4))
    assert LeastSquares().fit(*data(5)).predict(np.zeros((1, 3)))[1] > 0.0
    for alpha in (-1.0, np.inf, np.nan):
        with pytest.raises(ParameterError, match="must be a penalty"):
            Ridge(alpha)


def test_the_bayesian_spread_is_of_the_posterior_predictive() -> None:
    """With the fitted precisions, the variance is noise plus that of the coefficients."""
    (X, y), (T, _) = data(30), data(5, 1)
    model = BayesianLinear().fit(X, y)
    mean, std = model.predict(T)
    found = model.estimator[-1]
    noise, ridge = found.alpha_, found.lambda_
    prior = np.diag([0.0, ridge, ridge, ridge])
    covariance = np.linalg.inv(prior + noise * designed(X).T @ designed(X))
    weights = noise * covariance @ designed(X).T @ y
    assert mean == pytest.approx(designed(T) @ weights, rel=1e-8)
    known = 1.0 / noise + np.einsum("ij,jk,ik->i", designed(T), covariance, designed(T))
    assert std == pytest.approx(np.sqrt(known), rel=1e-8)
    assert 1.0 / noise == pytest.approx(0.25, abs=0.1)


# A process and a net


def test_the_process_is_the_conditional_normal_distribution() -> None:
    """With the fitted kernel, mean and spread are those of conditioning, noise included."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(-3.0, 3.0, size=(40, 1)), np.array([[0.0], [2.0], [9.0]])
    y = 5.0 + 3.0 * np.sin(x[:, 0]) + 0.3 * rng.normal(size=40)
    model = GaussianProcess().fit(x, y)
    mean, std = model.predict(t)
    x, t = (x - x.mean()) / x.std(), (t - x.mean()) / x.std()
    kernel = model.estimator[-1].kernel_
    columns = np.column_stack([(y - y.mean()) / y.std(), kernel(x, t)])
    weights = np.linalg.solve(kernel(x) + 1e-10 * np.eye(40), columns)
    assert mean == pytest.approx(y.mean() + y.std() * kernel(t, x) @ weights[:, 0], rel=1e-6)
    rest = np.diagonal(kernel(t) - kernel(t, x) @ weights[:, 1:])
    assert std == pytest.approx(y.std() * np.sqrt(rest), rel=1e-6)
    assert std[0] == pytest.approx(0.3, abs=0.1)
    assert std[2] > 1.0  # far from all labels


def test_the_net_learns_where_labels_scatter() -> None:
    """Means and spreads are near the true ones, which change with the input."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(1_500, 2))
    true = 2.0 + X[:, 0]
    y = 100.0 + 10.0 * np.abs(X[:, 1]) + true * rng.normal(size=1_500)
    mean, std = NeuralNet().fit(X, y).predict(X)
    assert np.abs(mean - 100.0 - 10.0 * np.abs(X[:, 1])).mean() < 0.5
    assert np.corrcoef(std, true)[0, 1] > 0.8
    assert np.mean(((y - mean) / std) ** 2) == pytest.approx(1.0, abs=0.15)


# Every model


@EVERY
def test_a_model_states_its_spread_honestly(make: Any) -> None:  # noqa: ANN401
    """On new labels, squared errors are as large as the variances say, on average."""
    model: GaussianRegressor = make()
    (X, y), (T, labels) = data(120), data(2_000, 1)
    mean, std = model.fit(X, y).predict(T)
    assert mean.shape == std.shape == (2_000,)
    assert (std > 0.0).all()
    assert np.mean(((labels - mean) / std) ** 2) == pytest.approx(1.0, abs=0.35)


@EVERY
def test_a_model_fitted_again_predicts_the_same(make: Any) -> None:  # noqa: ANN401
    """A fit is a function of the data and the seed; a second fit forgets the first."""
    (X, y), again = data(60), make()
    again.fit(X[:30], -y[:30])
    known, found = make().fit(X, y).predict(X), again.fit(X, y).predict(X)
    assert np.array_equal(known, found)


@EVERY
def test_what_is_no_number_is_refused(make: Any) -> None:  # noqa: ANN401
    """NaN in features or labels is an error of scikit-learn's, a ValueError."""
    X, y = data(20)
    for features, labels in ((X * np.nan, y), (X, y * np.nan)):
        with pytest.raises(ValueError, match="NaN"):
            make().fit(features, labels)


def test_calibration_mends_what_the_model_cannot_say() -> None:
    """Least squares, whose spread is one for all inputs, gain from GP-Beta where it changes."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2_400, 1))
    y = 3.0 * X[:, 0] + (0.2 + X[:, 0]) * rng.normal(size=2_400)
    model = LeastSquares().fit(X[:400], y[:400])
    calibrator = GPBeta(inducing=8, steps=300)
    calibrator.learn_many(*model.predict(X[400:1_400]), y[400:1_400])
    mean, std = model.predict(X[1_400:])
    base = log_score_normal(mean, std, y[1_400:]).mean()
    assert calibrator.log_score_many(mean, std, y[1_400:]).mean() < base - 0.08


def test_without_scikit_learn_the_remedy_is_named() -> None:
    """Importing the models without it gives the pip command."""
    program = """
import sys
sys.modules["sklearn"] = None
from abers import MissingExtraError
try:
    import abers.learners.gaussian
except MissingExtraError as error:
    print(error)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert "pip install 'abers[sklearn]'" in ran.stdout
