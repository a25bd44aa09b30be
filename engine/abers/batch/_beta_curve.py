"""Beta maps of probabilities, u to logistic(a ln u - b ln(1 - u) + c), their means and their fit.

A probability is given by its logarithm and that of its complement, and found by its log odds, so
that both tails are as exact as the middle. On uniform values the slope of the map is a density, so
the map is fitted by likelihood; its log is concave in (a, b, c), so the maximum under a, b >= 0 is
the free one, or the better of those on which one of the two is 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from abers.calibration.baselines import logistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.arrays import Floats

    Curve: TypeAlias = "BetaCurve | BetaMixture"

__all__ = ["BetaCurve", "BetaMixture", "bounded", "fitted", "logs"]

_LEAST = -1e300  # stands for the logarithm of 0; 0 times it is 0
_ENDS = 746.0  # log odds, either way, at which a double is 0
_DEEPEST = 744.4  # those of the smallest double
_STEPS = 100  # of Newton; less than ten in practice
_CLOSE = 1e-13
# Of the fit
_FREE = ([0, 1, 2], [1, 2], [0, 2])  # parameters that are fitted; the others are 0
_FIRST = np.array([1.0, 1.0, 0.0])  # the identity
_EDGE = 2.0**-53  # how near to 0 and to 1 a value counts
_FIT_STEPS = 100  # of Newton; a dozen in practice
_MIN_FALL_SHARE = 1e-4  # share of the promised fall that a step must bring
_MIN_FALL = 1e-12  # a fall this small is lost in the rounding of the loss
_DECREMENT = 1e-20  # Newton decrement, squared


class BetaCurve(NamedTuple):
    """A beta map with a, b >= 0; by default the identity.

    The methods take ln u and ln(1 - u), arrays of one shape, and return arrays of that shape.
    """

    a: float = 1.0
    b: float = 1.0
    c: float = 0.0

    def mapped(self, below: Floats, above: Floats) -> Floats:
        """Map probabilities."""
        return logistic(self.a * below - self.b * above + self.c)

    def log_slope(self, below: Floats, above: Floats) -> Floats:
        """Return the log of the derivative by u, which is calibrated over base density."""
        with np.errstate(divide="ignore"):
            log_a, log_b = np.log(self.a), np.log(self.b)
        return _log_slope(log_a, log_b, self.a * below - self.b * above + self.c, below, above)

    def inverse(self, odds: Floats) -> Floats:
        """Return the log odds of u that is mapped to `odds`; infinite if nothing inside is."""

        def forward(x: Floats) -> tuple[Floats, Floats]:
            below, above = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)
            slope = self.a * np.exp(above) + self.b * np.exp(below)
            return self.a * below - self.b * above + self.c, slope

        found = _solved(forward, odds)
        return np.clip(found, -_DEEPEST if self.a else None, _DEEPEST if self.b else None)


class BetaMixture:
    """The mean of several beta maps with a, b > 0; the methods are those of `BetaCurve`.

    `curves` has the shape (3, s, ...): ln a, ln b and c of s maps. Its other axes are the first
    ones of the arrays that the methods take; each index there has maps of its own.
    """

    def __init__(self, curves: Floats) -> None:
        self._curves = curves

    def mapped(self, below: Floats, above: Floats) -> Floats:
        """Map probabilities."""
        return np.asarray(logistic(self._odds(below, above)).mean(axis=0))

    def log_slope(self, below: Floats, above: Floats) -> Floats:
        """Return the log of the derivative by u: that of the mean of the derivatives."""
        log_a, log_b, _ = self._over(below.ndim)
        slopes = _log_slope(log_a, log_b, self._odds(below, above), below, above)
        highest = slopes.max(axis=0)
        return np.asarray(highest + np.log(np.exp(slopes - highest).mean(axis=0)))

    def inverse(self, odds: Floats) -> Floats:
        """Return log odds of u."""
        curves = self._over(odds.ndim)
        (a, b), c = np.exp(curves[:2]), curves[2]

        def forward(x: Floats) -> tuple[Floats, Floats]:
            below, above = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)
            p, rest = _sides(a * below - b * above + c)
            slope = (p * rest * (a * np.exp(above) + b * np.exp(below))).mean(axis=0)
            p, rest = p.mean(axis=0), rest.mean(axis=0)
            with np.errstate(divide="ignore", invalid="ignore"):  # beyond what doubles resolve
                return np.log(p) - np.log(rest), slope / (p * rest)

        return np.clip(_solved(forward, odds), -_DEEPEST, _DEEPEST)

    def _over(self, ndim: int) -> Floats:
        missing = ndim + 2 - self._curves.ndim
        return self._curves.reshape(self._curves.shape + (1,) * missing)

    def _odds(self, below: Floats, above: Floats) -> Floats:
        log_a, log_b, c = self._over(below.ndim)
        return np.asarray(np.exp(log_a) * below - np.exp(log_b) * above + c)


def logs(u: Floats) -> tuple[Floats, Floats]:
    """Return ln u and ln(1 - u) of probabilities."""
    with np.errstate(divide="ignore"):
        return bounded(np.log(u)), bounded(np.log1p(-u))


def bounded(logarithms: Floats) -> Floats:
    """Return logarithms of probabilities, which are finite for any distribution."""
    return np.maximum(logarithms, _LEAST)


def _sides(z: Floats) -> tuple[Floats, Floats]:
    """Return logistic(z) and logistic(-z), which have their exponential in common."""
    e = np.exp(-np.abs(z))
    total = 1.0 + e
    return np.where(z >= 0.0, 1.0, e) / total, np.where(z <= 0.0, 1.0, e) / total


def _log_slope(log_a: Floats | float, log_b: Floats | float, z: Floats, *logs: Floats) -> Floats:
    below, above = logs
    size = np.abs(z)
    return np.logaddexp(log_a - below, log_b - above) - size - 2.0 * np.log1p(np.exp(-size))


def _solved(forward: Callable[[Floats], tuple[Floats, Floats]], target: Floats) -> Floats:
    """Find where an ascending function has given values, by Newton's method inside a bracket.

    `forward` returns values and slopes. Where they give no step inside the bracket it is halved,
    so that the search for a value that is never reached goes to an end.
    """
    low, high = np.full((2, *target.shape), np.reshape((-_ENDS, _ENDS), (2, *[1] * target.ndim)))
    x = np.clip(target, low, high)
    for _ in range(_STEPS):
        value, slope = forward(x)
        below = value < target
        low, high = np.where(below, x, low), np.where(below, high, x)
        with np.errstate(all="ignore"):
            there = x + (target - value) / slope
        there = np.where((low <= there) & (there <= high), there, (low + high) / 2.0)
        moved, x = np.abs(there - x), there
        if (moved <= _CLOSE * (1.0 + np.abs(x))).all():
            break
    return x


def fitted(values: Floats) -> BetaCurve:
    """Fit the map to n > 0 PIT values, which it is to make uniform.

    Its parameters have the greatest likelihood times a normal prior of variance 1 around the
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
    for _ in range(_FIT_STEPS):
        gradient, hessian = _derivatives(features, slopes, theta, prior)
        step = np.linalg.solve(hessian, gradient)
        fall = float((step * gradient).sum())
        if fall <= _DECREMENT:
            break
        share, needed = 1.0, _MIN_FALL_SHARE * fall if fall > _MIN_FALL else -math.inf
        there = _loss(features, slopes, theta - step, prior)
        while there > here - share * needed:
            share /= 2.0
            there = _loss(features, slopes, theta - share * step, prior)
        theta, here = theta - share * step, there
    return theta


def _loss(features: Floats, slopes: Floats, theta: Floats, prior: Floats) -> float:
    """Return the mean negative log density plus the prior's share; infinite outside."""
    spread, z = _weighted(slopes, theta), _weighted(features, theta)
    if not (spread > 0.0).all():
        return math.inf
    density = np.log(spread) - np.abs(z) - 2.0 * np.log1p(np.exp(-np.abs(z)))
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
    """Return the weighted sum of rows, added in a fixed order."""
    total: Floats = rows[0] * theta[0]
    for row, each in zip(rows[1:], theta[1:], strict=True):
        total = total + row * each
    return total
