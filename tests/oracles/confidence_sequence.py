"""Confidence sequence for the mean of bounded outcomes: a specification of the native core."""

from __future__ import annotations

import math

from tests.oracles.elementary import exponential, logarithm

__all__ = ["ConfidenceSequence", "log_gamma", "stirling"]

_HALF_LOG_2_PI = float.fromhex("0x1.d67f1c864beb5p-1")
_LN2 = float.fromhex("0x1.62e42fefa39efp-1")
_SERIES = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156]
_FAR = 10.0  # from here on the series is as precise as a double
_PRECISION = 1e-13  # relative, of the continued fraction
_TINY = 1e-300  # in place of a denominator of 0
_LEAST = -700.0  # logarithm of what is as good as 0
_ROOT = 1e-10  # relative precision of a boundary
_SHAPES = 2.0**-300, 2.0**300  # so that nothing overflows


def stirling(a: float) -> float:
    """Return what log gamma(a) exceeds (a - 1/2) log a - a + log(2 pi) / 2 by, for a > 0."""
    before = 0.0
    while a < _FAR:
        before += (a + 0.5) * (logarithm(a + 1.0) - logarithm(a)) - 1.0
        a += 1.0
    inverse, total = 1.0 / a, 0.0
    for coefficient in reversed(_SERIES):
        total = total * (inverse * inverse) + coefficient
    return before + inverse * total


def log_gamma(a: float) -> float:
    """Return the logarithm of the gamma function of a positive number."""
    return (a - 0.5) * logarithm(a) - a + _HALF_LOG_2_PI + stirling(a)


class ConfidenceSequence:
    """Empirical Bernstein confidence sequence; see `abers.monitoring.ConfidenceSequence`."""

    def __init__(self, tightest: float, alpha: float, scale: float) -> None:
        """Choose the mixture before the data."""
        log = -2.0 * logarithm(alpha)
        shape = tightest / (scale * scale) / (log + logarithm(1.0 + log))
        self._scale, self._shape = scale, min(max(shape, _SHAPES[0]), _SHAPES[1])
        self._constant = _front(self._shape, 0.0) - _log_p(self._shape, 0.0)

    def log_mixture(self, deviation: float, squares: float) -> float:
        """Return the natural logarithm of the mixture."""
        s, shape = deviation / self._scale, self._shape_of(squares)
        return self._constant - _front(shape, s) + _log_p(shape, s)

    def reaches(self, deviation: float, squares: float, alpha: float) -> bool:
        """Return whether a deviation reaches the boundary."""
        return self.reaches_at(deviation, squares, -logarithm(alpha))

    def reaches_at(self, deviation: float, squares: float, threshold: float) -> bool:
        """Return whether it does at the level exp(-threshold)."""
        if deviation <= 0.0 or deviation * deviation < 2.0 * squares * threshold:
            return False
        s, shape = deviation / self._scale, self._shape_of(squares)
        most = self._constant - _front(shape, s)
        if most < threshold:
            return False
        return most - _LN2 >= threshold or most + _log_p(shape, s) >= threshold

    def boundary(self, squares: float, alpha: float) -> float:
        """Return the deviation at which the mixture reaches 1/alpha."""
        threshold = -logarithm(alpha)

        def excess(deviation: float) -> float:
            return self.log_mixture(deviation, squares) - threshold

        low = math.sqrt(2.0 * squares * threshold)
        high = low + self._scale
        below, above = excess(low), excess(high)
        while above < 0.0:
            low, below, high = high, above, 2.0 * high
            above = excess(high)
        stays = 0
        while high - low > _ROOT * high:
            step = _ROOT / 4.0 * high
            at = (below * high - above * low) / (below - above)
            at = at + step if at < 0.5 * (low + high) else at - step
            at = min(max(at, low + step), high - step)
            if (found := excess(at)) < 0.0:
                low, below = at, found
                above = above / 2.0 if stays == -1 else above
                stays = -1
            else:
                high, above = at, found
                below = below / 2.0 if stays == 1 else below
                stays = 1
        return high

    def _shape_of(self, squares: float) -> float:
        return squares / (self._scale * self._scale) + self._shape


def _front(a: float, s: float) -> float:
    """Return log(x^a exp(-x) / gamma(a)) for x = a + s."""
    rest = 0.5 * logarithm(a) - _HALF_LOG_2_PI
    return a * logarithm((a + s) / a) - s + rest - stirling(a)


def _log_p(a: float, s: float) -> float:
    """Return log P(a, a + s), the regularised lower incomplete gamma function."""
    log_front = _front(a, s)
    if log_front < _LEAST:
        return 0.0
    b = s + 1.0
    c, d = 1.0 / _TINY, 1.0 / b
    fraction, n, factor = d, 0.0, 0.0
    while abs(factor - 1.0) > _PRECISION:
        n += 1.0
        term = n * (a - n)
        b += 2.0
        d = 1.0 / (term * d + b or _TINY)
        c = b + term / c or _TINY
        factor = c * d
        fraction *= factor
    return logarithm(1.0 - fraction * exponential(log_front))
