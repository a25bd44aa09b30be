"""Three latent Gaussian processes over normal distributions, known at inducing points alone.

Governing rule: the values at the inducing points are v times the factors of both covariances, so
that v is N(0, 1) in the prior and has any normal distribution q otherwise; the values elsewhere are
a linear map of v, and a rest that is independent of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.regression._gp_kernel import (
    JITTER,
    Kernel,
    Normals,
    cholesky_back,
    diagonal,
    variance,
)
from abers.regression._products import product

if TYPE_CHECKING:
    from abers._arrays import Floats

__all__ = [
    "LATENT",
    "Parameters",
    "Projection",
    "lower",
    "lower_back",
    "projected",
    "projected_back",
    "sizes",
    "within",
]

LATENT = 3  # functions, of ln a, ln b and c
_MOST, _MOST_LOG = 1e8, 100.0  # of a parameter, and of one that is a logarithm


class Parameters(NamedTuple):
    """What is fitted; m inducing points, and triangular factors with the logs of their diagonals.

    Attributes
    ----------
    centre
        Mean of q(v), of shape (3, m).
    factor
        Cholesky factor of the covariance of q(v), of shape (3 m, 3 m).
    mixing
        Cholesky factor of the coregionalisation matrix, of shape (3, 3).
    mean, log_spread
        The inducing points, of shape (m,) each.
    log_length
        Of the kernel, of shape (1,).
    log_gamma, delta
        Of the link: a latent w stands for w / gamma + delta, of shape (3,) each.
    """

    centre: Floats
    factor: Floats
    mixing: Floats
    mean: Floats
    log_spread: Floats
    log_length: Floats
    log_gamma: Floats
    delta: Floats

    @classmethod
    def over(cls, flat: Floats, m: int) -> Parameters:
        """See one array of all parameters as their parts, which share its memory."""
        ends = np.cumsum([np.prod(shape) for shape in sizes(m)])
        parts = np.split(flat, ends[:-1])
        return cls(*(part.reshape(shape) for part, shape in zip(parts, sizes(m), strict=True)))


def within(flat: Floats, m: int) -> bool:
    """Tell whether saved parameters are none that leave what a double holds."""
    parts = Parameters.over(flat, m)
    logs = (parts.log_spread, parts.log_length, parts.log_gamma)
    diagonals = (diagonal(parts.factor), diagonal(parts.mixing))
    large = max(float(np.abs(one).max()) for one in (*logs, *diagonals))
    return large <= _MOST_LOG and bool((np.abs(flat) <= _MOST).all())  # NaN is not


class Projection(NamedTuple):
    """What the latent functions are at some places, given v."""

    inner: Kernel  # of the inducing points,
    factor: Floats  # its Cholesky factor,
    inverse: Floats  # and the inverse of that
    outer: Kernel  # of the inducing points (right) and the places
    own_by_length: Floats  # derivative of the kernel of each place with itself
    weight: Floats  # of v, shape (m, n)
    rest: Floats  # variance that v leaves


def sizes(m: int) -> tuple[tuple[int, ...], ...]:
    """Give the shapes of all parameters."""
    latent = (LATENT,)
    return ((LATENT, m), (LATENT * m,) * 2, latent * 2, (m,), (m,), (1,), latent, latent)


def lower(raw: Floats) -> Floats:
    """Make a triangular factor of one with the logs of its diagonal."""
    factor = np.tril(raw)
    diagonal(factor)[:] = np.exp(diagonal(factor))
    return factor


def lower_back(by_factor: Floats, factor: Floats) -> Floats:
    """Take a gradient by such a factor back to the one with the logs of its diagonal."""
    raw = np.tril(by_factor)
    diagonal(raw)[:] *= diagonal(factor)
    return raw


def projected(parameters: Parameters, places: Normals) -> Projection:
    """Condition the latent functions at some places on v."""
    points = Normals(parameters.mean, np.exp(parameters.log_spread))
    length = float(np.exp(parameters.log_length[0]))
    inner, outer = Kernel(points, points, length), Kernel(places, points, length)
    factor = np.linalg.cholesky(inner.values + JITTER * np.eye(len(points.mean)))
    inverse = np.linalg.inv(factor)
    own, by_length = variance(places, length)
    weight = product(inverse, outer.values.T)
    # A place has the jitter for itself, so that at least this is left, whatever the rounding.
    rest = np.maximum(own + JITTER - np.einsum("ij,ij->j", weight, weight), JITTER)
    return Projection(inner, factor, inverse, outer, by_length, weight, rest)


def projected_back(there: Projection, by_weight: Floats, by_rest: Floats) -> tuple[Floats, ...]:
    """Take gradients by weights and rests back to the inducing points and the length."""
    by_weight = by_weight - 2.0 * there.weight * by_rest
    by_outer = product(there.inverse.T, by_weight)
    by_factor = -np.tril(product(by_outer, there.weight.T))
    by_inner = cholesky_back(by_factor, there.factor, there.inverse)
    outer, inner = there.outer.back(by_outer.T), there.inner.back(by_inner)
    by_length = outer[2] + inner[2] + (by_rest * there.own_by_length).sum()
    # The points are on both sides of their own kernel, which is symmetric.
    return outer[0] + 2.0 * inner[0], outer[1] + 2.0 * inner[1], np.array([by_length])
