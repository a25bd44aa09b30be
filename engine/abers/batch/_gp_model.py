"""A GP-Beta model: Gaussian processes over normal distributions, fitted by a bound, and their maps.

The kernel of normal distributions in GP-Beta with its gradients, and products of matrices. Two
normal distributions are as alike as draws from them are under a Gaussian kernel of some length, on
average; lengths and spreads are positive and enter by their logarithms.

Three latent Gaussian processes over normal distributions, known at inducing points alone. The
values at the inducing points are v times the factors of both covariances, so that v is N(0, 1) in
the prior and has any normal distribution q otherwise; the values elsewhere are a linear map of v,
and a rest that is independent of it.

The evidence bound that GP-Beta is fitted by, and its gradient. The bound of a batch is a function
of the parameters and of given random numbers, so that its gradient is exact, and is that of the
expected bound on average. Densities and probabilities enter by their logarithms, so that no tail is
lost.

A GP-Beta model: its fit to labels, and its beta maps for any predicted normal distribution. The fit
is by stochastic gradients of the evidence bound. It starts from the same place whatever came
before, and is a function of the rows in sorted order and of the seed. The three latent values of a
prediction are normal given the fit; its maps are made of a fixed set of draws of them, the same for
all predictions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.exceptions import MissingExtraError

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = [
    "JITTER",
    "LATENT",
    "Kernel",
    "LabelBatch",
    "Maps",
    "Noise",
    "Normal",
    "Normals",
    "Parameters",
    "Projection",
    "bound",
    "cholesky_back",
    "diagonal",
    "log_ratio",
    "lower",
    "lower_back",
    "product",
    "projected",
    "projected_back",
    "size",
    "sizes",
    "special",
    "variance",
    "within",
]

_LOG_ROOT = math.log(2.0 * math.pi) / 2.0


def special() -> Any:
    """Return scipy's special functions."""
    try:
        from scipy import special as functions  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        msg = "the normal distribution needs scipy; run: pip install 'abers[regression]'"
        raise MissingExtraError(msg) from error
    return functions


class Normal:
    """Normal distributions: means and standard deviations are numbers, or arrays of one shape.

    The methods are those of a frozen distribution of `scipy.stats`, and broadcast as numpy does.
    """

    __slots__ = ("mean", "std")

    def __init__(self, mean: Floats | float, std: Floats | float) -> None:
        self.mean, self.std = mean, std

    def logcdf(self, t: Floats) -> Floats:
        """Return the logarithm of the CDF."""
        return np.asarray(special().log_ndtr(self._z(t)))

    def logsf(self, t: Floats) -> Floats:
        """Return the logarithm of 1 - the CDF."""
        return np.asarray(special().log_ndtr(-self._z(t)))

    def ppf(self, q: Floats) -> Floats:
        """Return the quantiles at levels."""
        return np.asarray(self.mean + self.std * special().ndtri(q))

    def isf(self, q: Floats) -> Floats:
        """Return the quantiles at 1 - levels."""
        return np.asarray(self.mean - self.std * special().ndtri(q))

    def logpdf(self, t: Floats) -> Floats:
        """Return the logarithm of the density."""
        with np.errstate(over="ignore"):
            return np.asarray(-(self._z(t) ** 2) / 2.0 - np.log(self.std) - _LOG_ROOT)

    def _z(self, t: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray((t - self.mean) / self.std)


JITTER = 1e-6  # variance of its own that each value of a latent function has
_BLOCK_MULTIPLICATIONS = 1 << 18  # with more OpenBLAS begins to use threads


class Normals(NamedTuple):
    """Normal distributions: arrays of shape (n,) of means and of standard deviations."""

    mean: Floats
    spread: Floats


class Kernel:
    """The kernel of all pairs of some distributions with others.

    With z the difference of a draw of each it is the mean of exp(-z^2 / (2 length^2)) (Song et al.
    2019, equation 9). `values` has the shape (len(left), len(right)).
    """

    def __init__(self, left: Normals, right: Normals, length: float) -> None:
        self._right, self._length = right, length
        self._total = left.spread[:, np.newaxis] ** 2 + right.spread**2 + length**2
        self._gap = left.mean[:, np.newaxis] - right.mean
        self._square = self._gap**2 / self._total
        self.values: Floats = length / np.sqrt(self._total) * np.exp(-self._square / 2.0)

    def back(self, by_values: Floats) -> tuple[Floats, Floats, float]:
        """Return the gradients by means and log spreads of the right side, and by log length."""
        share = by_values * self.values
        slope = share / self._total
        by_total = slope * (self._square - 1.0) / 2.0
        by_mean = (slope * self._gap).sum(axis=0)
        by_spread = 2.0 * self._right.spread**2 * by_total.sum(axis=0)
        return by_mean, by_spread, float(share.sum() + 2.0 * self._length**2 * by_total.sum())


def variance(predicted: Normals, length: float) -> tuple[Floats, Floats]:
    """Return the kernel of each with itself, and its derivative by the log length."""
    total = 2.0 * predicted.spread**2 + length**2
    own = length / np.sqrt(total)
    return own, own * (1.0 - length**2 / total)


def cholesky_back(by_factor: Floats, factor: Floats, inverse: Floats) -> Floats:
    """Return a gradient by a lower Cholesky factor as one by the symmetric matrix.

    Murray (2016), Differentiation of the Cholesky decomposition.
    """
    middle = np.tril(product(factor.T, by_factor))
    diagonal(middle)[:] /= 2.0
    whole = product(product(inverse.T, middle), inverse)
    return np.asarray((whole + whole.T) / 2.0)


def diagonal(matrix: Floats) -> Floats:
    """Return a view of the diagonal of a matrix, to be written to."""
    return matrix.reshape(-1)[:: len(matrix) + 1]


def product(left: Floats, right: Floats) -> Floats:
    """Multiply a matrix of shape (m, k) and one or several of shape (..., k, n).

    In blocks that BLAS multiplies in one thread. Where other work has the cores, threads that wait
    for each other take a hundred times as long as the product itself; and so the last bits do not
    depend on how many there are.
    """
    blocks = -(-left.size * right.shape[-1] // _BLOCK_MULTIPLICATIONS)
    if blocks <= 1:
        return left @ right
    parts = [part @ right for part in np.array_split(left, min(blocks, len(left)))]
    return np.concatenate(parts, axis=-2)


LATENT = 3  # functions, of ln a, ln b and c
_MAX_PARAMETER, _MAX_LOG_PARAMETER = 1e8, 100.0


class Parameters(NamedTuple):
    """What is fitted; m inducing points, and triangular factors with the logs of their diagonals.

    A latent value w stands for w / gamma + delta.
    """

    centre: Floats  # mean of q(v), of shape (3, m)
    factor: Floats  # Cholesky factor of the covariance of q(v), of shape (3 m, 3 m)
    mixing: Floats  # Cholesky factor of the coregionalisation matrix, of shape (3, 3)
    mean: Floats  # of the inducing points, of shape (m,),
    log_spread: Floats  # likewise
    log_length: Floats  # of the kernel, of shape (1,)
    log_gamma: Floats  # of the link, of shape (3,),
    delta: Floats  # likewise

    @classmethod
    def over(cls, flat: Floats, m: int) -> Parameters:
        """Return views of the parts of one array of all parameters."""
        ends = np.cumsum([np.prod(shape) for shape in sizes(m)])
        parts = np.split(flat, ends[:-1])
        return cls(*(part.reshape(shape) for part, shape in zip(parts, sizes(m), strict=True)))


def within(flat: Floats, m: int) -> bool:
    """Return whether saved parameters are too small to overflow a double."""
    parts = Parameters.over(flat, m)
    logs = (parts.log_spread, parts.log_length, parts.log_gamma)
    diagonals = (diagonal(parts.factor), diagonal(parts.mixing))
    large = max(float(np.abs(one).max()) for one in (*logs, *diagonals))
    return large <= _MAX_LOG_PARAMETER and bool(
        (np.abs(flat) <= _MAX_PARAMETER).all()
    )  # NaN is not


class Projection(NamedTuple):
    """The latent functions at some predicted distributions, given v."""

    inner: Kernel  # of the inducing points,
    factor: Floats  # its Cholesky factor,
    inverse: Floats  # and the inverse of that
    outer: Kernel  # of the inducing points (right) and the distributions
    own_by_length: Floats  # derivative of the kernel of each with itself
    weight: Floats  # of v, shape (m, n)
    rest: Floats  # variance that v leaves


def sizes(m: int) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of all parameters."""
    latent = (LATENT,)
    return ((LATENT, m), (LATENT * m,) * 2, latent * 2, (m,), (m,), (1,), latent, latent)


def size(m: int) -> int:
    """Return the number of parameters."""
    return sum(int(np.prod(shape)) for shape in sizes(m))


def lower(raw: Floats) -> Floats:
    """Make a triangular factor of one with the logs of its diagonal."""
    factor = np.tril(raw)
    diagonal(factor)[:] = np.exp(diagonal(factor))
    return factor


def lower_back(by_factor: Floats, factor: Floats) -> Floats:
    """Return a gradient by a factor as a gradient by it with the logs of its diagonal."""
    raw = np.tril(by_factor)
    diagonal(raw)[:] *= diagonal(factor)
    return raw


def projected(parameters: Parameters, predicted: Normals) -> Projection:
    """Condition the latent functions at predicted distributions on v."""
    points = Normals(parameters.mean, np.exp(parameters.log_spread))
    length = float(np.exp(parameters.log_length[0]))
    inner, outer = Kernel(points, points, length), Kernel(predicted, points, length)
    factor = np.linalg.cholesky(inner.values + JITTER * np.eye(len(points.mean)))
    inverse = np.linalg.inv(factor)
    own, by_length = variance(predicted, length)
    weight = product(inverse, outer.values.T)
    # Each has the jitter for itself, so that at least this is left, whatever the rounding.
    rest = np.maximum(own + JITTER - np.einsum("ij,ij->j", weight, weight), JITTER)
    return Projection(inner, factor, inverse, outer, by_length, weight, rest)


def projected_back(there: Projection, by_weight: Floats, by_rest: Floats) -> tuple[Floats, ...]:
    """Return gradients by weights and rests as ones by the inducing points and the length."""
    by_weight = by_weight - 2.0 * there.weight * by_rest
    by_outer = product(there.inverse.T, by_weight)
    by_factor = -np.tril(product(by_outer, there.weight.T))
    by_inner = cholesky_back(by_factor, there.factor, there.inverse)
    outer, inner = there.outer.back(by_outer.T), there.inner.back(by_inner)
    by_length = outer[2] + inner[2] + (by_rest * there.own_by_length).sum()
    # The points are on both sides of their own kernel, which is symmetric.
    return outer[0] + 2.0 * inner[0], outer[1] + 2.0 * inner[1], np.array([by_length])


class LabelBatch(NamedTuple):
    """Labels with their predicted distributions, and how many labels they stand for."""

    predicted: Normals
    below: Floats  # ln u of the PIT values
    above: Floats  # ln(1 - u)
    total: int


class Noise(NamedTuple):
    """Standard normal numbers: of shape (3 m, s) for v, and (3, s, n) for what v leaves open."""

    shared: Floats
    own: Floats


class _Drawn(NamedTuple):
    """The latent functions at the predicted distributions of a batch, in s draws."""

    there: Projection
    spread: Floats  # factor of the covariance of q(v)
    mixing: Floats  # factor of the coregionalisation matrix
    gamma: Floats
    v: Floats  # shape (3, m, s)
    white: Floats  # shape (3, s n), before they are mixed
    latent: Floats  # shape (3, s n)


def bound(parameters: Parameters, batch: LabelBatch, noise: Noise) -> tuple[float, Parameters]:
    """Return the negative evidence bound per label, estimated by a batch, and its gradient.

    Hensman, Matthews & Ghahramani (2015), Scalable variational Gaussian process classification,
    with the expectation over q by sampling, as Song et al. (2019), equations (11) and (12).
    """
    drawn = _draw_parameters(parameters, batch.predicted, noise)
    curve = (drawn.latent + parameters.delta[:, np.newaxis]).reshape(noise.own.shape)
    ratio, by_curve = log_ratio(curve, batch.below, batch.above)
    value = _divergence(parameters, drawn.spread) / batch.total - float(ratio.mean())
    by_latent = by_curve.reshape(LATENT, -1) / -ratio.size
    return value, _back(parameters, drawn, noise, by_latent, batch.total)


def log_ratio(curve: Floats, below: Floats, above: Floats) -> tuple[Floats, Floats]:
    """Return the log of the calibrated density over the base density, and its gradient.

    `curve` has the shape (3, ..., n): ln a, ln b and c of the map (Song et al. 2019, equation 7);
    `below` and `above` are ln u and ln(1 - u) of n PIT values u. The results have the shapes
    (..., n) and, by `curve`, (3, ..., n).
    """
    (a, b), c = np.exp(curve[:2]), curve[2]
    z = a * below - b * above + c
    left, right = curve[0] - below, curve[1] - above
    spread = np.logaddexp(left, right)
    tail = np.exp(-np.abs(z))
    ratio = spread - np.abs(z) - 2.0 * np.log1p(tail)
    pull = np.copysign((1.0 - tail) / (1.0 + tail), z)  # -d/dz of the log slope of the logistic
    share = np.exp(left - spread)
    by_curve = np.stack((share - pull * a * below, 1.0 - share + pull * b * above, -pull))
    return ratio, by_curve


def _draw_parameters(parameters: Parameters, predicted: Normals, noise: Noise) -> _Drawn:
    there, spread = projected(parameters, predicted), lower(parameters.factor)
    mixing, gamma = lower(parameters.mixing), np.exp(parameters.log_gamma)[:, np.newaxis]
    v = parameters.centre.reshape(-1, 1) + product(spread, noise.shared)
    v = v.reshape(LATENT, -1, noise.shared.shape[1])
    white = v.transpose(0, 2, 1) @ there.weight + np.sqrt(there.rest) * noise.own
    white = white.reshape(LATENT, -1)
    return _Drawn(there, spread, mixing, gamma, v, white, mixing / gamma @ white)


def _divergence(parameters: Parameters, spread: Floats) -> float:
    """Return the Kullback-Leibler divergence of q(v) from the prior, N(0, 1)."""
    squares = (spread**2).sum() + (parameters.centre**2).sum() - len(spread)
    return float(squares / 2.0 - diagonal(parameters.factor).sum())


def _back(
    parameters: Parameters, drawn: _Drawn, noise: Noise, by_latent: Floats, total: int
) -> Parameters:
    """Return a gradient by the latent functions as one by all parameters."""
    there = drawn.there
    by_white = ((drawn.mixing / drawn.gamma).T @ by_latent).reshape(noise.own.shape)
    by_v = product(there.weight, by_white.transpose(0, 2, 1)).reshape(noise.shared.shape)
    by_rest = np.einsum("ksn,ksn->n", by_white, noise.own) / (2.0 * np.sqrt(there.rest))
    by_weight = (drawn.v @ by_white).sum(axis=0)
    by_spread = product(by_v, noise.shared.T) + drawn.spread / total
    by_factor = lower_back(by_spread, drawn.spread)
    diagonal(by_factor)[:] -= 1.0 / total
    by_mean, by_log_spread, by_log_length = projected_back(there, by_weight, by_rest)
    return Parameters(
        centre=by_v.sum(axis=1).reshape(LATENT, -1) + parameters.centre / total,
        factor=by_factor,
        mixing=lower_back(by_latent @ drawn.white.T / drawn.gamma, drawn.mixing),
        mean=by_mean,
        log_spread=by_log_spread,
        log_length=by_log_length,
        log_gamma=-(by_latent * drawn.latent).sum(axis=1),
        delta=by_latent.sum(axis=1),
    )


_BATCH, _SAMPLES = 128, 16  # rows and draws a step
_RATE, _DECAYS, _TINY = 0.02, (0.9, 0.999), 1e-8  # of Adam
_FIRST_FACTOR = 0.1  # standard deviation of v at the start
_DRAWS = 64
_FARTHEST = 1e6  # scales from the middle; no kernel reaches so far
_EDGE = 2.0**-53  # how near to 0 and to 1 a PIT value counts in the fit
_LOG_EDGE = float(np.log(_EDGE))


class Maps(NamedTuple):
    """A fit. Means are taken less the middle, means and standard deviations over the scale."""

    middle: float
    scale: float
    inducing: int  # number of inducing points
    flat: Floats  # the parameters

    @classmethod
    def fitted(cls, rows: Floats, inducing: int, steps: int, seed: int) -> Maps:
        """Fit to an array of shape (3, n), of means, standard deviations and labels."""
        mean, std, y = rows[:, np.lexsort(rows[::-1])]
        middle = float(np.median(mean))
        scale = float(1.5 * np.median(np.abs(mean - middle)) + np.median(std))
        maps = cls(middle, scale, inducing, np.empty(0))
        base = Normal(mean, std)
        below, above = (np.clip(side(y), _LOG_EDGE, -_EDGE) for side in (base.logcdf, base.logsf))
        batch = LabelBatch(maps._scaled(mean, std), below, above, len(y))
        return maps._replace(flat=_fitted(batch, inducing, steps, seed))

    def at(self, mean: Floats, std: Floats, seed: int) -> Floats:
        """Draw ln a, ln b and c for n predicted distributions, antithetically: (3, draws, n)."""
        parameters = Parameters.over(self.flat, self.inducing)
        middle, spread = self.latent(mean, std)
        half = np.random.default_rng(seed).standard_normal((LATENT, _DRAWS // 2))
        white = middle[..., np.newaxis] + spread @ np.concatenate((half, -half), axis=1)
        link = lower(parameters.mixing) / np.exp(parameters.log_gamma)[:, np.newaxis]
        drawn = np.tensordot(link, white, axes=(1, 1)).transpose(0, 2, 1)
        return np.asarray(drawn + parameters.delta[:, np.newaxis, np.newaxis])

    def latent(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        """Return means, (n, 3), and Cholesky factors, (n, 3, 3), before the functions are mixed."""
        parameters = Parameters.over(self.flat, self.inducing)
        there = projected(parameters, self._scaled(mean, std))
        factor = lower(parameters.factor).reshape(LATENT, self.inducing, -1)
        shared = product(there.weight.T, factor).transpose(1, 0, 2)  # (n, 3, 3 m)
        own = there.rest[:, np.newaxis, np.newaxis] * np.eye(LATENT)
        covariance = shared @ shared.transpose(0, 2, 1) + own
        return (parameters.centre @ there.weight).T, np.linalg.cholesky(covariance)

    def _scaled(self, mean: Floats, std: Floats) -> Normals:
        with np.errstate(over="ignore"):  # what no double holds is farthest
            far, wide = (mean - self.middle) / self.scale, std / self.scale
        return Normals(
            np.clip(far, -_FARTHEST, _FARTHEST), np.clip(wide, 1.0 / _FARTHEST, _FARTHEST)
        )


def _fitted(rows: LabelBatch, inducing: int, steps: int, seed: int) -> Floats:
    """Fit all parameters, in one array; there are at least as many rows as inducing points."""
    rng = np.random.default_rng(seed)
    flat = _start(rows.predicted, inducing)
    parameters, adam = Parameters.over(flat, inducing), _Adam(flat, steps)
    for _ in range(steps):
        batch = _taken(rows, rng)
        noise = Noise(
            rng.standard_normal((LATENT * inducing, _SAMPLES)),
            rng.standard_normal((LATENT, _SAMPLES, len(batch.below))),
        )
        parts = bound(parameters, batch, noise)[1]
        adam.step(np.concatenate([part.ravel() for part in parts]))
    return flat


class _Adam:
    """Adam (Kingma & Ba 2015, Algorithm 1) on an array, with a rate that falls as a cosine does."""

    def __init__(self, flat: Floats, steps: int) -> None:
        self._flat, self._steps, self._made = flat, steps, 0
        self._first, self._second = np.zeros((2, len(flat)))

    def step(self, gradient: Floats) -> None:
        rate = _RATE * (1.0 + math.cos(math.pi * self._made / self._steps)) / 2.0
        self._made += 1
        self._first += (1.0 - _DECAYS[0]) * (gradient - self._first)
        self._second += (1.0 - _DECAYS[1]) * (gradient**2 - self._second)
        first = self._first / (1.0 - _DECAYS[0] ** self._made)
        second = self._second / (1.0 - _DECAYS[1] ** self._made)
        self._flat -= rate * first / (np.sqrt(second) + _TINY)


def _taken(rows: LabelBatch, rng: np.random.Generator) -> LabelBatch:
    """Take some rows."""
    n = min(_BATCH, rows.total)
    taken = rng.choice(rows.total, n, replace=False, shuffle=False)
    predicted = Normals(rows.predicted.mean[taken], rows.predicted.spread[taken])
    return LabelBatch(predicted, rows.below[taken], rows.above[taken], rows.total)


def _start(predicted: Normals, inducing: int) -> Floats:
    """Start at the identity, with inducing points evenly among the rows in order of the mean."""
    flat = np.zeros(size(inducing))
    start = Parameters.over(flat, inducing)
    diagonal(start.factor)[:] = np.log(_FIRST_FACTOR)
    n = len(predicted.mean)
    ranks = (2 * np.arange(inducing) + 1) * n // (2 * inducing)
    at = np.argsort(predicted.mean, kind="stable")[ranks]
    start.mean[:] = predicted.mean[at]
    start.log_spread[:] = np.log(predicted.spread[at])
    return flat
