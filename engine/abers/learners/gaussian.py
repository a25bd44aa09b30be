"""Regression models that predict a normal distribution, for calibration by `abers.regression`.

Each model is a scikit-learn estimator with a standard deviation that holds for new labels: from
the residuals and their degrees of freedom, or from the posterior.
"""

# ruff: noqa: ANN401, N803, N806 - X and y as in scikit-learn, of any kind that it takes

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abers.arrays import unmasked
from abers.exceptions import MissingExtraError, ParameterError
from abers.validation import number

try:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.linear_model import BayesianRidge, LinearRegression
    from sklearn.linear_model import Ridge as RidgeRegression
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils import check_X_y
except ModuleNotFoundError as error:
    _MSG = "these models need scikit-learn; install it: pip install 'abers[sklearn]'"
    raise MissingExtraError(_MSG) from error

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = [
    "BayesianLinear",
    "GaussianProcess",
    "GaussianRegressor",
    "LeastSquares",
    "NeuralNet",
    "Ridge",
]

_FOLDS = 5
_RATE = 0.01  # the learning rate of Adam
_MAX_ITER = 2_000  # passes over the data
_NOISE = 1e-6, 1e2  # bounds of the noise, as a share of the labels' variance


class GaussianRegressor:
    """A model that predicts a mean and a standard deviation, by a scikit-learn estimator."""

    estimator: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to features of shape (n, p) and labels of shape (n,)."""
        self.estimator.fit(*_checked(X, y))
        return self

    def predict(self, X: Any) -> tuple[Floats, Floats]:
        """Predict means and standard deviations, of shape (n,) each."""
        mean, std = self.estimator.predict(unmasked(X), return_std=True)
        return np.asarray(mean, np.float64), np.asarray(std, np.float64)


class Ridge(GaussianRegressor):
    """Ridge regression with one standard deviation for all inputs.

    Parameters
    ----------
    alpha
        The penalty, 0 or more; the intercept has none.

    Raises
    ------
    ParameterError
        If `alpha` is invalid; by `fit`, if the labels leave no degree of freedom.

    Notes
    -----
    The standard deviation is the root of the residual sum of squares over n - tr(2 H - H H'), where
    the matrix H maps labels to fitted values. Its square is unbiased if `alpha` is 0 and the model
    is right. It ignores the uncertainty of the coefficients.

    References
    ----------
    Hastie & Tibshirani (1990), Generalized additive models, section 3.5, for the degrees of
    freedom of residuals.

    Examples
    --------
    >>> from abers.learners.gaussian import Ridge
    >>> model = Ridge(1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 3.0, 4.0])
    >>> mean, std = model.predict([[4.0]])
    >>> mean.round(2).tolist(), std.round(2).tolist()
    ([4.92], [0.48])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        words = "a penalty, a finite number of 0 or more"
        alpha = number(alpha, "alpha", words, lambda one: 0.0 <= one < math.inf)
        self._alpha = alpha
        self.estimator = RidgeRegression(alpha) if alpha else LinearRegression()

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to features of shape (n, p) and labels of shape (n,)."""
        X, y = _checked(X, y)
        singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
        zero = np.finfo(np.float64).eps * max(X.shape) * singular.max(initial=0.0)
        kept = singular[singular > zero]
        shares = kept**2 / (kept**2 + self._alpha)
        freedom = len(y) - 1.0 - float((2.0 * shares - shares**2).sum())
        if freedom <= 0.0:
            msg = f"{len(y)} labels leave no degree of freedom for a spread; give more of them"
            raise ParameterError(msg)
        residuals = y - self.estimator.fit(X, y).predict(X)
        self._std = math.sqrt(float((residuals**2).sum()) / freedom)
        return self

    def predict(self, X: Any) -> tuple[Floats, Floats]:
        """Predict means and standard deviations, of shape (n,) each."""
        mean = np.asarray(self.estimator.predict(unmasked(X)), np.float64)
        return mean, np.full(mean.shape, self._std)


class LeastSquares(Ridge):
    """Ordinary least squares: the base model of most papers on calibration.

    Examples
    --------
    >>> from abers.learners.gaussian import LeastSquares
    >>> model = LeastSquares().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 3.0, 4.0])
    >>> mean, std = model.predict([[4.0]])
    >>> mean.round(2).tolist(), std.round(2).tolist()
    ([5.5], [0.32])
    """

    def __init__(self) -> None:
        super().__init__(0.0)


class BayesianLinear(GaussianRegressor):
    """Bayesian linear regression; penalty and noise maximise the evidence.

    Notes
    -----
    The standard deviation is that of the posterior predictive distribution: the noise, and the
    uncertainty of the coefficients at the input. The intercept has no prior, and counts too.

    References
    ----------
    MacKay (1992), Bayesian interpolation; Bishop (2006), Pattern recognition and machine learning,
    sections 3.3 and 3.5.

    Examples
    --------
    >>> from abers.learners.gaussian import BayesianLinear
    >>> model = BayesianLinear().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 3.0, 4.0])
    >>> near, far = model.predict([[1.5], [9.0]])[1]
    >>> bool(near < far)
    True
    """

    def __init__(self) -> None:
        # Older versions of BayesianRidge assume centred features in their standard deviation.
        self.estimator = make_pipeline(StandardScaler(with_std=False), BayesianRidge())

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to features of shape (n, p) and labels of shape (n,)."""
        super().fit(X, y)
        self._of_intercept = 1.0 / (self.estimator[-1].alpha_ * len(y))
        return self

    def predict(self, X: Any) -> tuple[Floats, Floats]:
        """Predict means and standard deviations, of shape (n,) each."""
        mean, std = super().predict(X)
        return mean, np.sqrt(std**2 + self._of_intercept)


class GaussianProcess(GaussianRegressor):
    """Gaussian process regression with a Gaussian kernel and noise, on standardised features.

    Parameters
    ----------
    seed
        Seed of the restarts.
    restarts
        How often the search for the kernel's parameters starts again, from another point.

    Notes
    -----
    The standard deviation is that of the posterior predictive distribution, noise included. The
    time of a fit is proportional to the cube of the number of labels.

    References
    ----------
    Rasmussen & Williams (2006), Gaussian processes for machine learning, algorithm 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from abers.learners.gaussian import GaussianProcess
    >>> x = np.linspace(0.0, 6.0, 40)
    >>> y = np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> near, far = GaussianProcess().fit(x[:, np.newaxis], y).predict([[1.5], [9.0]])[1]
    >>> bool(near < 0.2 < 0.5 < far)
    True
    """

    def __init__(self, seed: int = 0, *, restarts: int = 0) -> None:
        kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(1.0, (1e-2, 1e3))
        process = GaussianProcessRegressor(
            kernel + WhiteKernel(0.1, _NOISE),
            normalize_y=True,
            n_restarts_optimizer=restarts,
            random_state=seed,
        )
        self.estimator = make_pipeline(StandardScaler(), process)


class NeuralNet(GaussianRegressor):
    """Two small neural nets, for the mean and for the variance, on standardised features.

    Parameters
    ----------
    hidden
        Sizes of the hidden layers.
    seed
        Seed of the first weights, the mini-batches and the folds.

    Notes
    -----
    The net of the variance learns squared residuals of labels that the net of the mean was not
    fitted to, by cross-validation. It minimises the Poisson loss, which is least at the mean of the
    squares at each input, for any distribution.

    References
    ----------
    Hall & Carroll (1989), Variance function estimation in regression: the effect of estimating the
    mean.

    Examples
    --------
    >>> import numpy as np
    >>> from abers.learners.gaussian import NeuralNet
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1.0, 1.0, size=(200, 1))
    >>> y = np.abs(x[:, 0]) + (0.6 + 0.5 * x[:, 0]) * rng.normal(size=200)
    >>> left, right = NeuralNet((16,)).fit(x, y).predict([[-0.9], [0.9]])[1]
    >>> bool(left < 0.5 < right)
    True
    """

    def __init__(self, hidden: tuple[int, ...] = (32, 32), seed: int = 0) -> None:
        self._mean = _net("squared_error", hidden, seed)
        self._variance = _net("poisson", hidden, seed)
        self._folds = KFold(_FOLDS, shuffle=True, random_state=seed)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to features of shape (n, p) and labels of shape (n,)."""
        X, y = _checked(X, y)
        self._middle, self._scale = float(y.mean()), float(y.std()) or 1.0
        z = (y - self._middle) / self._scale
        squares = (z - cross_val_predict(self._mean, X, z, cv=self._folds)) ** 2
        self._square = float(squares.mean())
        self._mean.fit(X, z)
        self._variance.fit(X, squares / self._square)
        return self

    def predict(self, X: Any) -> tuple[Floats, Floats]:
        """Predict means and standard deviations, of shape (n,) each."""
        X = unmasked(X)
        mean, variance = self._mean.predict(X), self._square * self._variance.predict(X)
        return self._middle + self._scale * mean, self._scale * np.sqrt(variance)


def _checked(X: Any, y: Any) -> tuple[Floats, Floats]:
    X, y = check_X_y(unmasked(X), unmasked(y), dtype=np.float64, y_numeric=True)
    return X, y


def _net(loss: str, hidden: tuple[int, ...], seed: int) -> Any:
    net = MLPRegressor(
        loss=loss,
        hidden_layer_sizes=hidden,
        learning_rate_init=_RATE,
        early_stopping=True,
        max_iter=_MAX_ITER,
        random_state=seed,
    )
    return make_pipeline(StandardScaler(), net)
