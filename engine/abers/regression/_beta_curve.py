"""Beta maps of probabilities, u to logistic(a ln u - b ln(1 - u) + c), one or the mean of several.

Governing rule: a probability comes as its logarithm and that of what it leaves, and is sought by
its log odds, so that both tails are as exact as the middle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from abers.calibration._logistic import logistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers._arrays import Floats

__all__ = ["BetaCurve", "BetaMixture", "Curve", "bounded", "logs"]

_LEAST = -1e300  # stands for the logarithm of 0; 0 times it is 0
_ENDS = 746.0  # log odds, either way, at which a double is 0
_DEEPEST = 744.4  # those of the smallest double
_STEPS = 100  # of Newton; less than ten in practice
_CLOSE = 1e-13


class Curve(Protocol):
    """A continuous, ascending map of probabilities.

    It is asked by ln u and ln(1 - u), arrays of one shape, and answers by arrays of that shape.
    """

    def mapped(self, below: Floats, above: Floats) -> Floats:
        """Map probabilities."""

    def log_slope(self, below: Floats, above: Floats) -> Floats:
        """Log of the derivative by u, the ratio of the calibrated density to the base density."""

    def inverse(self, odds: Floats) -> Floats:
        """Find the log odds of what is mapped to given log odds: infinite if nothing inside can."""


class BetaCurve(NamedTuple):
    """A beta map with a, b >= 0; the identity unless told otherwise."""

    a: float = 1.0
    b: float = 1.0
    c: float = 0.0

    def mapped(self, below: Floats, above: Floats) -> Floats:
        """Map probabilities."""
        return logistic(self.a * below - self.b * above + self.c)

    def log_slope(self, below: Floats, above: Floats) -> Floats:
        """Log of the derivative by u."""
        with np.errstate(divide="ignore"):
            log_a, log_b = np.log(self.a), np.log(self.b)
        return _log_slope(log_a, log_b, self.a * below - self.b * above + self.c, below, above)

    def inverse(self, odds: Floats) -> Floats:
        """Find log odds of u, or an infinity if nothing inside is mapped to `odds`."""

        def forward(x: Floats) -> tuple[Floats, Floats]:
            below, above = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)
            slope = self.a * np.exp(above) + self.b * np.exp(below)
            return self.a * below - self.b * above + self.c, slope

        found = _solved(forward, odds)
        return np.clip(found, -_DEEPEST if self.a else None, _DEEPEST if self.b else None)


class BetaMixture:
    """The mean of several beta maps with a, b > 0.

    Parameters
    ----------
    curves
        Array of shape (3, s, ...): ln a, ln b and c of s maps. The axes after the first two are
        those that the arrays it is asked with begin with; each place there has maps of its own.
    """

    def __init__(self, curves: Floats) -> None:
        self._curves = curves

    def mapped(self, below: Floats, above: Floats) -> Floats:
        """Map probabilities."""
        return np.asarray(logistic(self._odds(below, above)).mean(axis=0))

    def log_slope(self, below: Floats, above: Floats) -> Floats:
        """Log of the derivative by u: that of the mean of the derivatives."""
        log_a, log_b, _ = self._over(below.ndim)
        slopes = _log_slope(log_a, log_b, self._odds(below, above), below, above)
        highest = slopes.max(axis=0)
        return np.asarray(highest + np.log(np.exp(slopes - highest).mean(axis=0)))

    def inverse(self, odds: Floats) -> Floats:
        """Find log odds of u."""
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
    """Give ln u and ln(1 - u) of probabilities."""
    with np.errstate(divide="ignore"):
        return bounded(np.log(u)), bounded(np.log1p(-u))


def bounded(logarithms: Floats) -> Floats:
    """Keep logarithms of probabilities finite, whatever a distribution says of them."""
    return np.maximum(logarithms, _LEAST)


def _sides(z: Floats) -> tuple[Floats, Floats]:
    """Give logistic(z) and logistic(-z), which have their exponential in common."""
    e = np.exp(-np.abs(z))
    total = 1.0 + e
    return np.where(z >= 0.0, 1.0, e) / total, np.where(z <= 0.0, 1.0, e) / total


def _log_slope(log_a: Floats | float, log_b: Floats | float, z: Floats, *logs: Floats) -> Floats:
    below, above = logs
    size = np.abs(z)
    return np.logaddexp(log_a - below, log_b - above) - size - 2.0 * np.log1p(np.exp(-size))


def _solved(forward: Callable[[Floats], tuple[Floats, Floats]], target: Floats) -> Floats:
    """Find where an ascending function has given values, by Newton's method inside a bracket.

    `forward` gives its values and its slopes; where no step can be made of them the bracket is
    halved, so that what is nowhere reached is looked for at an end.
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
