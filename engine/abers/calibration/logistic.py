"""Logistic regression on a few features with soft targets, by Newton's method.

The mean loss is convex, and made strictly so by a ridge of 1e-9, so there is one minimum, finite
even where labels are separable. The start decides only how soon it is reached. Sums are numpy's
own, which do not depend on threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = ["fit", "logistic", "loss"]

_RIDGE = 1e-9
_STEPS = 100  # of Newton; a dozen in practice
_MIN_FALL_SHARE = 1e-4  # share of the promised fall that a step must bring
_MIN_FALL = 1e-12  # a smaller fall is lost in the rounding of the loss: the step is right
_CLOSE = 1e-20  # Newton decrement, squared: 1e-10 standard errors of one observation


def logistic(z: Floats) -> Floats:
    """Return 1 / (1 + exp(-z)) without overflow."""
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1.0 + e)


def loss(features: Floats, weights: Floats, targets: Floats, theta: Floats) -> float:
    """Return the mean log loss at theta, ridge included.

    Features have shape (d, n) and weights (n,); targets are weight times wanted probability.
    """
    z = _scores(features, theta)
    softplus = np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))
    mean = (weights * softplus - targets * z).sum() / weights.sum()
    return float(mean + _RIDGE / 2 * (theta * theta).sum())


def fit(features: Floats, weights: Floats, targets: Floats, start: Floats) -> Floats:
    """Minimise `loss` over theta, from a start.

    Newton's method with backtracking (Lin, Lin & Weng 2007, A note on Platt's
    probabilistic outputs for support vector machines): every step lowers the loss.
    """
    theta, here = start, loss(features, weights, targets, start)
    for _ in range(_STEPS):
        gradient, hessian = _derivatives(features, weights, targets, theta)
        step = np.linalg.solve(hessian, gradient)
        fall = float((step * gradient).sum())
        if fall <= _CLOSE:
            return theta
        share = 1.0
        tried, there = theta - step, loss(features, weights, targets, theta - step)
        while fall > _MIN_FALL and there > here - _MIN_FALL_SHARE * share * fall:
            share /= 2.0
            tried = theta - share * step
            there = loss(features, weights, targets, tried)
        theta, here = tried, there
    return theta


def _derivatives(
    features: Floats, weights: Floats, targets: Floats, theta: Floats
) -> tuple[Floats, Floats]:
    p, total = logistic(_scores(features, theta)), weights.sum()
    gradient = np.array([(x * (weights * p - targets)).sum() for x in features]) / total
    curved = weights * p * (1.0 - p)
    hessian = np.array([[(x * y * curved).sum() for y in features] for x in features])
    return gradient + _RIDGE * theta, hessian / total + _RIDGE * np.eye(len(theta))


def _scores(features: Floats, theta: Floats) -> Floats:
    z: Floats = features[0] * theta[0]
    for x, each in zip(features[1:], theta[1:], strict=True):
        z = z + x * each
    return z
