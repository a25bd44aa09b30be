"""Forecasts as quantiles: the specification of the native core.

A forecast is m numbers in order, the quantiles at the levels (i - 1/2) / m. Sums run from the first
to the last, so that every machine rounds them alike.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from tests.oracles.elementary import logarithm

from abers.cdfs import merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats, Integers

__all__ = ["levels", "moved", "normal", "normal_quantile", "pit", "recalibrated", "shrunk"]

_SHRINK = 30.0  # observations that the base counts as
_NARROWEST = 1e-9
_ROUNDING = 1e-12  # of cumulative weights

# Wichura (1988), Algorithm AS 241: numerators and denominators, the constants first.
_MIDDLE = (
    (
        *(3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3),
        *(1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4),
        *(3.3430575583588128105e4, 2.5090809287301226727e3),
    ),
    (
        *(1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3),
        *(2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4),
        5.2264952788528545610e3,
    ),
)
_TAIL = (
    (
        *(1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0),
        *(3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1),
        *(2.27238449892691845833e-2, 7.74545014278341407640e-4),
    ),
    (
        *(1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1),
        *(1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4),
        1.05075007164441684324e-9,
    ),
)


def levels(members: int) -> Floats:
    """Return the levels of the quantiles of a forecast."""
    return (np.arange(members) + 0.5) / members


def normal_quantile(level: float) -> float:
    """Return a quantile of the standard normal distribution, of levels from 2e-11 to 1 - 2e-11."""
    q = level - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * _polynomial(_MIDDLE[0], r) / _polynomial(_MIDDLE[1], r)
    r = math.sqrt(-logarithm(level if q < 0.0 else 1.0 - level)) - 1.6
    found = _polynomial(_TAIL[0], r) / _polynomial(_TAIL[1], r)
    return -found if q < 0.0 else found


def _polynomial(coefficients: Sequence[float], x: float) -> float:
    total = 0.0
    for one in reversed(coefficients):
        total = total * x + one
    return total


def normal(mean: float, deviation: float, members: int) -> Floats:
    """Return the quantiles of a normal distribution."""
    return mean + deviation * np.array([normal_quantile(q) for q in levels(members).tolist()])


def moved(score: float, residuals: Sequence[float], members: int) -> Floats:
    """Return the quantiles of a score plus past residuals, which ascend; without any, the score."""
    n = len(residuals)
    if not n:
        return np.full(members, score)
    # The first residual at which the share of those up to it reaches (2i + 1) / 2m.
    rows = [-(-n * (2 * i + 1) // (2 * members)) - 1 for i in range(members)]
    return score + np.array([residuals[row] for row in rows])


def pit(base: Floats, label: float) -> float:
    """Return the level at which the quantile function of a base passes a label."""
    at, values = _quantile_function(base)
    left = int(np.searchsorted(values, label, side="left"))
    right = int(np.searchsorted(values, label, side="right"))
    if left == len(values):
        return 1.0
    if left < right:
        return float((at[left] + at[right - 1]) / 2.0)
    if left == 0:
        return 0.0
    share = (label - values[left - 1]) / (values[left] - values[left - 1])
    return float(at[left - 1] + share * (at[left] - at[left - 1]))


def recalibrated(base: Floats, counts: Integers) -> Floats:
    """Return the quantile calibration of a base, drawn to the base.

    The counts are those of PIT values in bins of equal width. The base adds a uniform share of 30.
    """
    labels = int(counts.sum())
    if not labels:
        return base.copy()
    bins = len(counts)
    shares = np.cumsum(counts + _SHRINK / bins) / (labels + _SHRINK)
    cdf = np.concatenate(([0.0], shares[:-1], [1.0]))
    mapped = _interpolated(levels(len(base)), cdf, np.arange(bins + 1) / bins)
    return np.maximum.accumulate(_interpolated(mapped, *_quantile_function(base)))


def shrunk(table: Floats, base: Floats) -> Floats:
    """Return the merged distribution of a Venn-Abers band, drawn to the base.

    The rows of the table are thresholds, from minus infinity on, lower and upper CDF. A band with
    the mean width w over the base rests on about 1/w - 1 labels; the base counts as 30, and takes
    the masses beyond all labels.
    """
    thresholds, lower, upper = table
    if len(thresholds) == 1:
        return base.copy()
    members = len(base)
    over = np.searchsorted(thresholds[1:], base, side="right")
    width = float(np.cumsum(upper[over] - lower[over])[-1]) / members
    evidence = 1.0 / max(width, _NARROWEST) - 1.0
    masses = np.diff(merged(lower, upper))
    beyond = max(1.0 - float(np.cumsum(masses)[-1]), 0.0)
    of_base = (_SHRINK + evidence * beyond) / members
    points = np.concatenate((thresholds[1:], base))
    weights = np.concatenate((evidence * masses, np.full(members, of_base)))
    order = np.argsort(points, kind="stable")
    cdf = np.cumsum(weights[order])
    reached = np.searchsorted(cdf, levels(members) * cdf[-1] - _ROUNDING * cdf[-1])
    return np.asarray(points[order][reached])


def _quantile_function(base: Floats) -> tuple[Floats, Floats]:
    """Return levels from 0 to 1 and their quantiles; the ends are half a step further out."""
    low, high = base[0] - (base[1] - base[0]) / 2.0, base[-1] + (base[-1] - base[-2]) / 2.0
    at = np.concatenate(([0.0], levels(len(base)), [1.0]))
    return at, np.concatenate(([low], base, [high]))


def _interpolated(x: Floats, at: Floats, values: Floats) -> Floats:
    """Interpolate linearly between points that ascend, by operations that every machine rounds."""
    right = np.clip(np.searchsorted(at, x, side="right"), 1, len(at) - 1)
    left = right - 1
    share = (x - at[left]) / (at[right] - at[left])
    return values[left] + share * (values[right] - values[left])
