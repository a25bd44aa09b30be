"""Regression models that predict a normal distribution, to be calibrated by `abers.regression`.

Governing rule: a model is a scikit-learn estimator; what is added is a standard deviation that is
honest for labels it was not fitted to: of what its residuals leave free, or of its posterior.
"""

# ruff: noqa: ANN401, N803, N806 - X and y as scikit-learn has them, of any kind that it takes

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from abers._arrays import unmasked
from abers._shown import shown
from abers.exceptions import MissingExtraError, ParameterError

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
    from abers._arrays import Floats

__all__ = [
    "BayesianLinear",
    "GaussianProcess",
    "GaussianRegressor",
    "LeastSquares",
    "NeuralNet",
    "Ridge",
]

_FOLDS = 5
_RATE = 0.01  # of Adam
_LONGEST = 2_000  # passes over the data
_NOISE = 1e-6, 1e2  # least and most share of the labels' variance that is noise


class GaussianRegressor(Protocol):
    """A model that predicts a mean and a standard deviation."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to features of shape (n, p) and labels of shape (n,)."""

    def predict(self, X: Any) -> tuple[Floats, Floats]:
        """Predict means and standard deviations, of shape (n,) each."""


class Ridge:
    """Linear regression with a ridge; one standard deviation for all inputs.

    Parameters
    ----------
    alpha
        The ridge, not negative; the intercept has none.

    Raises
    ------
    ParameterError
        If the ridge makes no sense; by `fit`, if the labels leave no degree of freedom.

    Notes
    -----
    The standard deviation is the root of the residual sum of squares over n - tr(2 H - H H'), H the
    matrix that makes fitted values of labels: its square is unbiased where the ridge is 0 and the
    model right. It does not know what the coefficients are uncertain by.

    References
    ----------
    Hastie & Tibshirani (1990), Generalized additive models, section 3.5, for what residuals
    leave free.

    Examples
    --------
    >>> from abers.learners.gaussian import Ridge
    >>> model = Ridge(1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 3.0, 4.0])
    >>> mean, std = model.predict([[4.0]])
    >>> mean.round(2).tolist(), std.round(2).tolist()
    ([4.92], [0.48])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        if not 0.0 <= alpha < math.inf:
            msg = f"alpha={shown(alpha)} is no ridge; give a number of 0 or more"
            raise ParameterError(msg)
        self._alpha = alpha
        self.estimator: Any = RidgeRegression(alpha) if alpha else LinearRegression()

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to features of shape (n, p) and labels of shape (n,)."""
        X, y = _checked(X, y)
        singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
        kept = singular[
            singular > np.finfo(np.float64).eps * max(X.shape) * singular.max(initial=0.0)
        ]
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
    """Ordinary least squares, a `Ridge` of 0: the base model of most papers on calibration.

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


class BayesianLinear:
    """Bayesian linear regression; ridge and noise are those of greatest evidence.

    Notes
    -----
    The standard deviation is that of the posterior predictive distribution: the noise, and what
    the coefficients are uncertain by at the input, an intercept without a prior included.

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
        # Older versions of BayesianRidge take features for centred when they state a spread.
        self.estimator: Any = make_pipeline(StandardScaler(with_std=False), BayesianRidge())

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to features of shape (n, p) and labels of shape (n,)."""
        X, y = _checked(X, y)
        self.estimator.fit(X, y)
        self._of_intercept = 1.0 / (self.estimator[-1].alpha_ * len(y))
        return self

    def predict(self, X: Any) -> tuple[Floats, Floats]:
        """Predict means and standard deviations, of shape (n,) each."""
        mean, std = self.estimator.predict(unmasked(X), return_std=True)
        return _both((mean, np.sqrt(std**2 + self._of_intercept)))


class GaussianProcess:
    """Gaussian process regression with a Gaussian kernel and noise, on standardised features.

    Parameters
    ----------
    seed
        Of the restarts.
    restarts
        How often the search for the kernel's parameters starts anew, elsewhere.

    Notes
    -----
    The standard deviation is that of the posterior predictive distribution, noise included. A fit
    takes time in proportion to the cube of the labels.

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
        self.estimator: Any = make_pipeline(StandardScaler(), process)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to features of shape (n, p) and labels of shape (n,)."""
        X, y = _checked(X, y)
        self.estimator.fit(X, y)
        return self

    def predict(self, X: Any) -> tuple[Floats, Floats]:
        """Predict means and standard deviations, of shape (n,) each."""
        return _both(self.estimator.predict(unmasked(X), return_std=True))


class NeuralNet:
    """Two small neural nets, for the mean and for the variance, on standardised features.

    Parameters
    ----------
    hidden
        Sizes of the hidden layers.
    seed
        Of the first weights, the mini-batches and the folds.

    Notes
    -----
    The variance is learned from the squared residuals of labels that a net for the mean was not
    fitted to, by cross-validation: by the Poisson loss, whose minimum is their mean at each input,
    whatever their distribution.

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
        mean = self._middle + self._scale * self._mean.predict(X)
        return _both((mean, self._scale * np.sqrt(self._square * self._variance.predict(X))))


def _checked(X: Any, y: Any) -> tuple[Floats, Floats]:
    found: tuple[Floats, Floats] = check_X_y(
        unmasked(X), unmasked(y), dtype=np.float64, y_numeric=True
    )
    return found


def _net(loss: str, hidden: tuple[int, ...], seed: int) -> Any:
    net = MLPRegressor(
        loss=loss,
        hidden_layer_sizes=hidden,
        learning_rate_init=_RATE,
        early_stopping=True,
        max_iter=_LONGEST,
        random_state=seed,
    )
    return make_pipeline(StandardScaler(), net)


def _both(found: tuple[Any, Any]) -> tuple[Floats, Floats]:
    mean, std = found
    return np.asarray(mean, np.float64), np.asarray(std, np.float64)
