"""Three latent Gaussian processes over normal distributions, known at inducing points alone.

Governing rule: everything random is a linear map of standard normal numbers. The values at the
inducing points are v, which is N(0, 1) in the prior and has any normal distribution q otherwise,
times the factors of both covariances. So the evidence bound of a batch is a function of the
parameters and of given random numbers, with exact gradients.
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
from abers.regression._gp_link import log_ratio
from abers.regression._products import product

if TYPE_CHECKING:
    from abers._arrays import Floats

__all__ = ["LATENT", "Batch", "Noise", "Parameters", "bound", "lower", "projected", "sizes"]

LATENT = 3  # functions, of ln a, ln b and c


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


class Batch(NamedTuple):
    """Labels with their predicted distributions, and how many labels they stand for."""

    places: Normals
    below: Floats  # ln u of the PIT values
    above: Floats  # ln(1 - u)
    total: int


class Noise(NamedTuple):
    """Standard normal numbers: of shape (3 m, s) for v, and (3, s, n) for what v leaves open."""

    shared: Floats
    own: Floats


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


def _lower_back(back: Floats, factor: Floats) -> Floats:
    raw = np.tril(back)
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


def bound(parameters: Parameters, batch: Batch, noise: Noise) -> tuple[float, Parameters]:
    """Give the negative evidence bound, estimated by a batch, a label; and its gradient.

    Hensman, Matthews & Ghahramani (2015), Scalable variational Gaussian process classification,
    with the expectation over q by sampling, as Song et al. (2019), equations (11) and (12).
    """
    m, n, samples = len(parameters.mean), len(batch.below), noise.shared.shape[1]
    there, spread = projected(parameters, batch.places), lower(parameters.factor)
    mixing, gamma = lower(parameters.mixing), np.exp(parameters.log_gamma)[:, np.newaxis]
    deviation = np.sqrt(there.rest)
    v = (parameters.centre.reshape(-1, 1) + product(spread, noise.shared)).reshape(
        LATENT, m, samples
    )
    white = (v.transpose(0, 2, 1) @ there.weight + deviation * noise.own).reshape(LATENT, -1)
    latent = mixing / gamma @ white
    curve = (latent + parameters.delta[:, np.newaxis]).reshape(LATENT, samples, n)
    ratio, by_curve = log_ratio(curve, batch.below, batch.above)
    divergence = ((spread**2).sum() + (parameters.centre**2).sum() - LATENT * m) / 2.0 - diagonal(
        parameters.factor
    ).sum()
    value = float(divergence / batch.total - ratio.mean())
    by_latent = by_curve.reshape(LATENT, -1) / -(samples * n)
    by_white = ((mixing / gamma).T @ by_latent).reshape(LATENT, samples, n)
    by_v = product(there.weight, by_white.transpose(0, 2, 1)).reshape(LATENT * m, samples)
    by_rest = np.einsum("ksn,ksn->n", by_white, noise.own) / (2.0 * deviation)
    by_weight = (v @ by_white).sum(axis=0) - 2.0 * there.weight * by_rest
    by_factor = _lower_back(product(by_v, noise.shared.T) + spread / batch.total, spread)
    diagonal(by_factor)[:] -= 1.0 / batch.total
    by_mean, by_log_spread, by_log_length = _points_back(there, by_weight, by_rest)
    return value, Parameters(
        by_v.sum(axis=1).reshape(LATENT, m) + parameters.centre / batch.total,
        by_factor,
        _lower_back(by_latent @ white.T / gamma, mixing),
        by_mean,
        by_log_spread,
        by_log_length,
        -(by_latent * latent).sum(axis=1),
        by_latent.sum(axis=1),
    )


def _points_back(there: Projection, by_weight: Floats, by_rest: Floats) -> tuple[Floats, ...]:
    """Take gradients by the weights and the rests back to the inducing points and the length."""
    by_outer = product(there.inverse.T, by_weight)
    by_factor = -np.tril(product(by_outer, there.weight.T))
    by_inner = cholesky_back(by_factor, there.factor, there.inverse)
    outer, inner = there.outer.back(by_outer.T), there.inner.back(by_inner)
    by_length = outer[2] + inner[2] + (by_rest * there.own_by_length).sum()
    # The points are on both sides of their own kernel, which is symmetric.
    return outer[0] + 2.0 * inner[0], outer[1] + 2.0 * inner[1], np.array([by_length])
