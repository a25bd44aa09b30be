"""The gamma function and its incomplete integrals: a specification of the native core."""

from __future__ import annotations

from tests.oracles.elementary import exponential, logarithm

__all__ = ["LN2", "log_front", "log_gamma", "log_lower_gamma", "lower_gamma_series", "stirling"]

LN2 = float.fromhex("0x1.62e42fefa39efp-1")

_HALF_LOG_2_PI = float.fromhex("0x1.d67f1c864beb5p-1")
_SERIES = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156]
_FAR = 10.0  # from here on the series is as precise as a double
_PRECISION = 1e-13  # relative, of the continued fraction
_TERM = 1e-14  # relative, the last of a series
_TINY = 1e-300  # in place of a denominator of 0
_LEAST = -700.0  # logarithm of what is as good as 0


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


def log_front(a: float, s: float) -> float:
    """Return log(x^a exp(-x) / gamma(a)) for x = a + s."""
    rest = 0.5 * logarithm(a) - _HALF_LOG_2_PI
    return a * logarithm((a + s) / a) - s + rest - stirling(a)


def log_lower_gamma(a: float, s: float) -> float:
    """Return log P(a, a + s), the regularised lower incomplete gamma function, for s >= 0."""
    front = log_front(a, s)
    if front < _LEAST:
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
    return logarithm(1.0 - fraction * exponential(front))


def lower_gamma_series(a: float, x: float) -> float:
    """Return P(a, x) gamma(a) exp(x) / x^a for 0 <= x <= a."""
    term = total = 1.0 / a
    at = a + 1.0
    while term > _TERM * total:
        term *= x / at
        total += term
        at += 1.0
    return total
