"""The evidence bound that GP-Beta is fitted by, and its gradient.

Governing rule: the bound of a batch is a function of the parameters and of given random numbers, so
that its gradient is exact, and is that of the expected bound on average.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.regression._gp_kernel import Normals, diagonal
from abers.regression._gp_link import log_ratio
from abers.regression._gp_model import (
    LATENT,
    Parameters,
    Projection,
    lower,
    lower_back,
    projected,
    projected_back,
)
from abers.regression._products import product

if TYPE_CHECKING:
    from abers._arrays import Floats

__all__ = ["Batch", "Noise", "bound"]


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


class _Drawn(NamedTuple):
    """The latent functions at the places of a batch, in s draws."""

    there: Projection
    spread: Floats  # factor of the covariance of q(v)
    mixing: Floats  # factor of the coregionalisation matrix
    gamma: Floats
    v: Floats  # shape (3, m, s)
    white: Floats  # shape (3, s n), before they are mixed
    latent: Floats  # shape (3, s n)


def bound(parameters: Parameters, batch: Batch, noise: Noise) -> tuple[float, Parameters]:
    """Give the negative evidence bound, estimated by a batch, a label; and its gradient.

    Hensman, Matthews & Ghahramani (2015), Scalable variational Gaussian process classification,
    with the expectation over q by sampling, as Song et al. (2019), equations (11) and (12).
    """
    drawn = _drawn(parameters, batch.places, noise)
    curve = (drawn.latent + parameters.delta[:, np.newaxis]).reshape(noise.own.shape)
    ratio, by_curve = log_ratio(curve, batch.below, batch.above)
    value = _divergence(parameters, drawn.spread) / batch.total - float(ratio.mean())
    by_latent = by_curve.reshape(LATENT, -1) / -ratio.size
    return value, _back(parameters, drawn, noise, by_latent, batch.total)


def _drawn(parameters: Parameters, places: Normals, noise: Noise) -> _Drawn:
    there, spread = projected(parameters, places), lower(parameters.factor)
    mixing, gamma = lower(parameters.mixing), np.exp(parameters.log_gamma)[:, np.newaxis]
    v = parameters.centre.reshape(-1, 1) + product(spread, noise.shared)
    v = v.reshape(LATENT, -1, noise.shared.shape[1])
    white = v.transpose(0, 2, 1) @ there.weight + np.sqrt(there.rest) * noise.own
    white = white.reshape(LATENT, -1)
    return _Drawn(there, spread, mixing, gamma, v, white, mixing / gamma @ white)


def _divergence(parameters: Parameters, spread: Floats) -> float:
    """Kullback-Leibler divergence of q(v) from the prior, N(0, 1)."""
    squares = (spread**2).sum() + (parameters.centre**2).sum() - len(spread)
    return float(squares / 2.0 - diagonal(parameters.factor).sum())


def _back(
    parameters: Parameters, drawn: _Drawn, noise: Noise, by_latent: Floats, total: int
) -> Parameters:
    """Take a gradient by the latent functions back to all parameters."""
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
