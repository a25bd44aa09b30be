"""Exponential and logarithm of our own, equal to the bit on every machine.

Those of C libraries and of numpy differ in the last bit between versions, and so must not touch a
state that is compared byte by byte. Both are within three units in the last place of the true
value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats

__all__ = [
    "exponential",
    "geometric_mean",
    "geometric_means",
    "logarithm",
    "logistic",
    "logistics",
    "logit",
]

_FAR = 700.0  # log odds, beyond which a probability is 0 or 1

# The logarithm of 2 in two parts: k times the first is exact for any exponent k of a double.
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")  # 1 / log 2
_TAYLOR = [1.0 / math.factorial(n) for n in range(14)]
_ATANH = [1.0 / (2 * n + 1) for n in range(12)]
_HALF_ROOT = float.fromhex("0x1.6a09e667f3bcdp-1")  # the root of 1/2


def exponential(x: float) -> float:
    """Return e to the power of x, for |x| up to 700."""
    k = math.floor(x * _PER_LN2 + 0.5)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    total = 0.0
    for coefficient in reversed(_TAYLOR):
        total = total * r + coefficient
    return math.ldexp(total, k)


def logarithm(x: float) -> float:
    """Return the natural logarithm of a positive, normal number."""
    m, k = math.frexp(x)
    if m < _HALF_ROOT:
        m, k = 2.0 * m, k - 1
    f = (m - 1.0) / (m + 1.0)
    s = f * f
    total = 0.0
    for coefficient in reversed(_ATANH):
        total = total * s + coefficient
    return k * _LN2_HIGH + (2.0 * f * total + k * _LN2_LOW)


def logistic(x: float) -> float:
    """Return 1 / (1 + exp(-x)); beyond 700 it is that of 700."""
    x = min(max(x, -_FAR), _FAR)
    if x >= 0.0:
        return 1.0 / (1.0 + exponential(-x))
    odds = exponential(x)
    return odds / (1.0 + odds)


def logistics(scores: Floats, out: Floats) -> None:
    """Write the logistic function of each score."""
    out[:] = [logistic(score) for score in scores.tolist()]


def logit(p: float) -> float:
    """Return the log odds of a probability between 0 and 1."""
    return logarithm(p / (1.0 - p))


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of numbers of which each is NaN, 0, or normal and positive."""
    total = 0.0
    for value in values:
        if math.isnan(value):
            return value
        if value <= 0.0:
            return 0.0
        total += logarithm(value)
    return exponential(total / len(values))


def geometric_means(rows: Floats, out: Floats) -> None:
    """Write the geometric mean of each column."""
    out[:] = [geometric_mean(column) for column in rows.T.tolist()]
