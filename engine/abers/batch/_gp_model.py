"""Three latent Gaussian processes over normal distributions, known at inducing points alone.

The values at the inducing points are v times the factors of both covariances, so that v is N(0, 1)
in the prior and has any normal distribution q otherwise; the values elsewhere are a linear map of
v, and a rest that is independent of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.batch._gp_kernel import (
    JITTER,
    Kernel,
    Normals,
    cholesky_back,
    diagonal,
    product,
    variance,
)

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = [
    "LATENT",
    "Parameters",
    "Projection",
    "lower",
    "lower_back",
    "projected",
    "projected_back",
    "size",
    "sizes",
    "within",
]

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
