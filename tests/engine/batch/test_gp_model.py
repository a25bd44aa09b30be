"""The parts of GP-Beta, `abers.batch._gp_*`: against definitions and differences.

Oracles work with the processes themselves, by Kronecker products, where the model
works with whitened numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special

from abers.batch._beta_curve import BetaCurve
from abers.batch._gp_model import (
    JITTER,
    Kernel,
    LabelBatch,
    Maps,
    Noise,
    Normals,
    Parameters,
    bound,
    log_ratio,
    lower,
    product,
    size,
    sizes,
    variance,
)

M, N, DRAWS, TOTAL = 3, 5, 4, 50
STEP = 1e-5


def normals(n: int, seed: int) -> Normals:
    """Make predicted distributions."""
    rng = np.random.default_rng(seed)
    return Normals(rng.normal(size=n), np.exp(0.4 * rng.normal(size=n)))


def parameters(seed: int = 0) -> Any:  # noqa: ANN401 - an array
    """Make parameters away from anything special, in one array."""
    return 0.4 * np.random.default_rng(seed).normal(size=size(M))


def batch(seed: int = 1) -> LabelBatch:
    """Make labels with what was predicted."""
    z = np.random.default_rng(seed).normal(size=N)
    return LabelBatch(normals(N, seed), special.log_ndtr(z), special.log_ndtr(-z), TOTAL)


def noise(seed: int = 2) -> Noise:
    """Draw what the bound takes."""
    rng = np.random.default_rng(seed)
    return Noise(rng.normal(size=(3 * M, DRAWS)), rng.normal(size=(3, DRAWS, N)))


# The kernel


@pytest.mark.parametrize(
    ("mean", "spread", "length"),
    [(0.0, (1.0, 1.0), 1.0), (1.5, (0.2, 2.0), 0.7), (3.0, (1.0, 0.5), 5.0)],
)
def test_the_kernel_is_the_mean_of_that_of_draws(
    mean: float, spread: tuple[float, float], length: float
) -> None:
    """It is the double integral of exp(-(x - y)^2 / (2 length^2)) over both distributions."""

    def density(x: float, middle: float, width: float) -> float:
        return math.exp(-(((x - middle) / width) ** 2) / 2.0) / (width * math.sqrt(2.0 * math.pi))

    def integrand(x: float, y: float) -> float:
        weight = density(x, 0.0, spread[0]) * density(y, mean, spread[1])
        return weight * math.exp(-((x - y) ** 2) / (2.0 * length**2))

    ends = (-8.0 * spread[0], 8.0 * spread[0])
    others = (mean - 8.0 * spread[1], mean + 8.0 * spread[1])
    known = integrate.dblquad(integrand, *others, *ends, epsabs=1e-9)[0]
    left, right = (
        Normals(np.array([m]), np.array([s])) for m, s in zip((0.0, mean), spread, strict=True)
    )
    assert Kernel(left, right, length).values.item() == pytest.approx(known, abs=1e-8)


def test_the_kernel_without_spreads_is_gaussian() -> None:
    """Between points it is exp(-(x - y)^2 / (2 length^2))."""
    points = Normals(np.array([0.0, 1.0, 3.0]), np.zeros(3))
    gaps = points.mean[:, np.newaxis] - points.mean
    found = Kernel(points, points, 2.0).values
    assert found == pytest.approx(np.exp(-(gaps**2) / 8.0), rel=1e-14)


def test_the_kernel_of_each_with_itself_is_the_diagonal() -> None:
    """The variance agrees with the whole matrix, and so does its derivative by the log length."""
    places = normals(6, 0)
    own, slope = variance(places, 0.8)
    assert own == pytest.approx(np.diagonal(Kernel(places, places, 0.8).values), rel=1e-14)
    ends = [variance(places, 0.8 * math.exp(step))[0] for step in (-STEP, STEP)]
    assert slope == pytest.approx((ends[1] - ends[0]) / (2.0 * STEP), rel=1e-8)


# The link


def test_the_density_ratio_is_the_slope_of_the_beta_map() -> None:
    """It is that of `BetaCurve`, in both tails too, and its gradient that of differences."""
    rng = np.random.default_rng(0)
    z = np.array([-30.0, -2.0, 0.1, 1.0, 9.0])
    below, above = special.log_ndtr(z), special.log_ndtr(-z)
    curve = 0.7 * rng.normal(size=(3, 5))
    found, slopes = log_ratio(curve, below, above)
    known = [
        BetaCurve(math.exp(a), math.exp(b), c).log_slope(below, above)[i]
        for i, (a, b, c) in enumerate(curve.T.tolist())
    ]
    assert found == pytest.approx(known, rel=1e-12)
    for k in range(3):
        shift = STEP * np.eye(3)[k][:, np.newaxis]
        ends = [log_ratio(curve + way * shift, below, above)[0] for way in (-1.0, 1.0)]
        assert slopes[k] == pytest.approx((ends[1] - ends[0]) / (2.0 * STEP), rel=1e-6, abs=1e-9)


# The bound


def test_every_gradient_is_that_of_differences() -> None:
    """All parameters in turn, those above the diagonal of a factor included, which do nothing."""
    flat = parameters()
    gradient = bound(Parameters.over(flat, M), batch(), noise())[1]
    found = np.concatenate([part.ravel() for part in gradient])
    known = np.empty(size(M))
    for i in range(size(M)):
        ends = []
        for way in (-STEP, STEP):
            moved = flat.copy()
            moved[i] += way
            ends.append(bound(Parameters.over(moved, M), batch(), noise())[0])
        known[i] = (ends[1] - ends[0]) / (2.0 * STEP)
    assert found == pytest.approx(known, abs=1e-8)
    shapes = [part.shape for part in gradient]
    assert shapes == list(sizes(M))
    for part in np.split(known, np.cumsum([np.prod(shape) for shape in shapes])[:-1]):
        assert np.abs(part).max() > 1e-3  # or the step would tell nothing


def dense(given: Parameters) -> tuple[Any, Any, Any, Any]:
    """Return the prior covariance, and the mean and covariance of q, at the inducing points."""
    points = Normals(given.mean, np.exp(given.log_spread))
    kernel = Kernel(points, points, math.exp(given.log_length.item())).values + JITTER * np.eye(M)
    mixing, spread = lower(given.mixing), lower(given.factor)
    outward = np.kron(mixing, np.linalg.cholesky(kernel))
    prior = np.kron(mixing @ mixing.T, kernel)
    return prior, outward @ given.centre.ravel(), outward @ spread @ spread.T @ outward.T, kernel


def test_the_divergence_is_that_of_the_processes() -> None:
    """Whitening changes no divergence: the bound has that of q from the prior, over values."""
    given = Parameters.over(parameters(), M)
    prior, mean, covariance, _ = dense(given)
    inverse = np.linalg.inv(prior)
    apart = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(covariance)[1]
    known = (np.trace(inverse @ covariance) + mean @ inverse @ mean - 3 * M + apart) / 2.0
    once, twice = (bound(given, batch()._replace(total=n), noise())[0] for n in (1, 2))
    assert 2.0 * (once - twice) == pytest.approx(known, rel=1e-9)


def test_the_likelihood_is_that_of_the_values_drawn() -> None:
    """Each draw goes through the conditional distribution given the values, and the link."""
    given, drawn = Parameters.over(parameters(), M), noise()
    many = batch()._replace(total=10**15)  # no divergence
    points = Normals(given.mean, np.exp(given.log_spread))
    length = math.exp(given.log_length.item())
    _, mean, _, kernel = dense(given)
    outward = np.kron(lower(given.mixing), np.linalg.cholesky(kernel)) @ lower(given.factor)
    total = 0.0
    for s in range(DRAWS):
        values = (mean + outward @ drawn.shared[:, s]).reshape(3, M)
        for i in range(N):
            place = Normals(many.predicted.mean[i : i + 1], many.predicted.spread[i : i + 1])
            cross = Kernel(points, place, length).values[:, 0]
            weight = np.linalg.solve(kernel, cross)
            rest = variance(place, length)[0].item() + JITTER - cross @ weight
            w = values @ weight + math.sqrt(rest) * lower(given.mixing) @ drawn.own[:, s, i]
            a, b, c = w / np.exp(given.log_gamma) + given.delta
            curve = BetaCurve(math.exp(a), math.exp(b), c)
            total += curve.log_slope(many.below[i : i + 1], many.above[i : i + 1]).item()
    assert bound(given, many, drawn)[0] == pytest.approx(-total / (DRAWS * N), rel=1e-9)


# The maps


def test_predictions_are_the_processes_at_new_places() -> None:
    """Mean and covariance of the three functions are those of the processes given q."""
    given = Parameters.over(parameters(), M)
    maps = Maps(0.5, 2.0, M, parameters())
    places = normals(4, 3)
    prior, mean, covariance, _ = dense(given)
    points = Normals(given.mean, np.exp(given.log_spread))
    length = math.exp(given.log_length.item())
    mixing = lower(given.mixing)
    middle, factor = maps.latent(0.5 + 2.0 * places.mean, 2.0 * places.spread)
    for i in range(4):
        place = Normals(places.mean[i : i + 1], places.spread[i : i + 1])
        cross = np.kron(mixing @ mixing.T, Kernel(place, points, length).values)
        weight = np.linalg.solve(prior, cross.T).T
        own = (variance(place, length)[0].item() + JITTER) * mixing @ mixing.T
        known = own - weight @ cross.T + weight @ covariance @ weight.T
        assert mixing @ middle[i] == pytest.approx(weight @ mean, rel=1e-9)
        assert mixing @ factor[i] @ factor[i].T @ mixing.T == pytest.approx(known, rel=1e-8)


def test_draws_have_the_mean_and_nearly_the_covariance_that_they_should() -> None:
    """They are antithetic, so their mean is exact; the same draws serve all places."""
    maps = Maps(0.0, 1.0, M, parameters())
    given = Parameters.over(maps.flat, M)
    places = normals(4, 3)
    drawn = maps.at(*places, 0)
    middle, factor = maps.latent(*places)
    link = lower(given.mixing) / np.exp(given.log_gamma)[:, np.newaxis]
    for i in range(4):
        known = link @ middle[i] + given.delta
        assert drawn[:, :, i].mean(axis=1) == pytest.approx(known, rel=1e-12)
        spread = link @ factor[i]
        assert np.cov(drawn[:, :, i]) == pytest.approx(
            spread @ spread.T, abs=0.5 * np.max(spread) ** 2
        )
    assert np.array_equal(maps.at(*places, 0), drawn)
    assert not np.array_equal(maps.at(*places, 1), drawn)
    alone = maps.at(places.mean[2:3], places.spread[2:3], 0)
    assert alone[..., 0] == pytest.approx(drawn[..., 2], rel=1e-9)


def test_products_in_blocks_are_products() -> None:
    """Matrices of any size, and several at once on the right, give what numpy gives."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(130, 70)), rng.normal(size=(3, 70, 90))
    for a, b in ((left, right), (left, right[0]), (left[:3], right), (left[:1], right[0, :, :1])):
        assert product(a, b) == pytest.approx(a @ b, rel=1e-12, abs=1e-12)
    assert product(left[:1], np.ones((70, 10_000))).shape == (1, 10_000)
