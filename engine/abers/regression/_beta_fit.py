"""The fit of a beta map to PIT values.

Governing rule: on uniform values the slope of the map is a density, so the map is fitted by
likelihood; its log is concave in (a, b, c), so the maximum under a, b >= 0 is the free one, or the
better of those on which one of the two is 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abers.calibration._logistic import logistic
from abers.regression._beta_curve import BetaCurve

if TYPE_CHECKING:
    from abers._arrays import Floats

__all__ = ["fitted"]

_FREE = ([0, 1, 2], [1, 2], [0, 2])  # parameters that are fitted, the others being 0
_FIRST = np.array([1.0, 1.0, 0.0])  # the identity
_EDGE = 2.0**-53  # how near to 0 and to 1 a value counts
_STEPS = 100  # of Newton; a dozen in practice
_ENOUGH = 1e-4  # share of the promised fall that a step must bring
_SURE = 1e-12  # a fall this small is lost in the rounding of the loss
_CLOSE = 1e-20  # Newton decrement, squared


def fitted(values: Floats) -> BetaCurve:
    """Fit the map to PIT values, which it is to make uniform.

    Parameters
    ----------
    values
        Array of shape (n,), n > 0, in [0, 1].

    Returns
    -------
    BetaCurve
        The parameters of greatest likelihood times a normal prior of variance 1 around the
        identity, which weighs about as much as one value and keeps them finite.
    """
    u = np.clip(values, _EDGE, 1.0 - _EDGE)
    features = np.stack((np.log(u), -np.log1p(-u), np.ones(len(u))))
    slopes = np.stack((1.0 - u, u, np.zeros(len(u))))
    fits = []
    for free in _FREE:
        theta = np.zeros(3)
        theta[free] = _newton(features[free], slopes[free], free)
        if (theta[:2] >= 0.0).all():
            fits.append((_loss(features, slopes, theta, _FIRST), theta))
        if len(free) == len(theta) and fits:
            break
    return BetaCurve(*min(fits, key=lambda fit: fit[0])[1].tolist())


def _newton(features: Floats, slopes: Floats, free: list[int]) -> Floats:
    """Minimise the loss over the free parameters by Newton's method with backtracking."""
    prior = _FIRST[free]
    theta, here = prior, _loss(features, slopes, prior, prior)
    for _ in range(_STEPS):
        gradient, hessian = _derivatives(features, slopes, theta, prior)
        step = np.linalg.solve(hessian, gradient)
        fall = float((step * gradient).sum())
        if fall <= _CLOSE:
            break
        share, needed = 1.0, _ENOUGH * fall if fall > _SURE else -math.inf
        there = _loss(features, slopes, theta - step, prior)
        while there > here - share * needed:
            share /= 2.0
            there = _loss(features, slopes, theta - share * step, prior)
        theta, here = theta - share * step, there
    return theta


def _loss(features: Floats, slopes: Floats, theta: Floats, prior: Floats) -> float:
    """Mean negative log density but for a constant, and the prior's share; infinite outside."""
    spread, z = _weighted(slopes, theta), _weighted(features, theta)
    if not (spread > 0.0).all():
        return math.inf
    density = np.log(spread) - np.abs(z) - 2.0 * _log1p_exp(z)
    return float((((theta - prior) ** 2).sum() / 2.0 - density.sum()) / len(z))


def _derivatives(
    features: Floats, slopes: Floats, theta: Floats, prior: Floats
) -> tuple[Floats, Floats]:
    z, steep = _weighted(features, theta), slopes / _weighted(slopes, theta)
    pull, curved = np.tanh(z / 2.0), 2.0 * logistic(z) * logistic(-z)
    gradient = np.array([(pull * x - s).sum() for x, s in zip(features, steep, strict=True)])
    pairs = list(zip(features, steep, strict=True))
    hessian = np.array([[(curved * x * y + s * t).sum() for y, t in pairs] for x, s in pairs])
    return (gradient + theta - prior) / len(z), (hessian + np.eye(len(theta))) / len(z)


def _weighted(rows: Floats, theta: Floats) -> Floats:
    """Sum rows with weights, in a fixed order."""
    total: Floats = rows[0] * theta[0]
    for row, each in zip(rows[1:], theta[1:], strict=True):
        total = total + row * each
    return total


def _log1p_exp(z: Floats) -> Floats:
    return np.log1p(np.exp(-np.abs(z)))
