"""The evidence bound that GP-Beta is fitted by, and its gradient.

The bound of a batch is a function of the parameters and of given random numbers, so that its
gradient is exact, and is that of the expected bound on average. Densities and probabilities enter
by their logarithms, so that no tail is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.batch._gp_kernel import Normals, diagonal, product
from abers.batch._gp_model import (
    LATENT,
    Parameters,
    Projection,
    lower,
    lower_back,
    projected,
    projected_back,
)

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = ["LabelBatch", "Noise", "bound", "log_ratio"]


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
