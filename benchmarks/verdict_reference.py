"""How many labels a verdict needs, computed apart from abers: normal theory and scipy.

The boundary is the root of the mixture of Howard et al. (2021), proposition 9, with scipy's
incomplete gamma function; that of the test at a fixed n is a quantile of the normal distribution.
Forecasts are the quantiles of their distribution, each once.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import optimize, special, stats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Boundary = Callable[[float, float], float]

__all__ = ["Claim", "Model", "fixed", "labels_needed", "mixture"]

POINTS = 100_001
POWER = 0.99
TIGHTEST = 500.0
MAIN = 1 / 8  # of alpha, one side of a main group
ALPHA = 0.05 / 2  # of the first block


class Claim(NamedTuple):
    """A claim about a main group: its sum of labels is above or below that of one end."""

    group: str  # "all", "lower", "upper"
    above: bool
    upper_end: bool  # of the tolerance; the lower one otherwise


TRUSTWORTHY = [
    Claim(group, above=not end, upper_end=end)
    for group in ("all", "lower", "upper")
    for end in (False, True)
]
CONSTANT = TRUSTWORTHY[:2]  # equal forecasts have no lower half, and the upper half is all of them
TOO_HIGH = [Claim("all", above=False, upper_end=False)]
OVER_CONFIDENT = [
    Claim("upper", above=False, upper_end=False),
    Claim("lower", above=True, upper_end=True),
]


class Model(NamedTuple):
    """Forecasts, one a row, and the true probability of each."""

    p: Floats
    truth: Floats


def quantiles(a: float, b: float) -> Floats:
    """Return the quantiles of a beta distribution, the same number of each."""
    return np.asarray(stats.beta.ppf((np.arange(POINTS) + 0.5) / POINTS, a, b))


def cut(p: Floats) -> float:
    """Return the log odds at which the halves meet."""
    weights = p * (1.0 - p)
    return float((weights * special.logit(p)).sum() / weights.sum())


def log_mixture(s: float, v: float) -> float:
    """Return the logarithm of the gamma-exponential mixture with scale 1."""
    log = -2.0 * math.log(ALPHA * MAIN)
    rho = TIGHTEST / (log + math.log1p(log))
    a, x = v + rho, s + v + rho
    of_prior = rho * math.log(rho) - special.gammaln(rho) - math.log(special.gammainc(rho, rho))
    kernel = special.gammaln(a) + math.log(special.gammainc(a, x)) - a * math.log(x) + s + v
    return float(of_prior + kernel)


@cache
def mixture(v: float, alpha: float) -> float:
    """Return the boundary at all times."""
    threshold = -math.log(alpha)
    most = math.sqrt(2.0 * v * threshold) + 1.0
    while log_mixture(most, v) < threshold:
        most *= 2.0
    return float(optimize.brentq(lambda s: log_mixture(s, v) - threshold, 0.0, most))


def fixed(v: float, alpha: float) -> float:
    """Return the boundary of a test at one time that was fixed before."""
    return float(stats.norm.isf(alpha)) * math.sqrt(v)


def power(  # noqa: PLR0913, PLR0917 - a stream and a rule
    model: Model,
    claims: Sequence[Claim],
    tolerance: float,
    n: float,
    boundary: Boundary,
    alpha: float,
) -> float:
    """Return a lower bound on the probability that all claims hold at n labels."""
    p, truth = model
    upper = special.logit(p) >= cut(p)
    groups = {"all": np.ones(len(p), bool), "lower": ~upper, "upper": upper}
    missed = 0.0
    for group, above, upper_end in claims:
        rows = groups[group]
        odds = tolerance if upper_end else 1.0 / tolerance
        end = p * odds / (p * odds + 1.0 - p)
        sign = 1.0 if above else -1.0
        gap = sign * float((rows * (truth - end)).mean())
        square = float((rows * (truth * (1.0 - end) ** 2 + (1.0 - truth) * end**2)).mean())
        squares = float((rows * (truth * (1.0 - p) ** 2 + (1.0 - truth) * p**2)).mean())
        noise = math.sqrt(n * (square - gap * gap))
        excess = n * gap - boundary(n * squares, alpha * MAIN)
        missed += float(stats.norm.sf(excess / noise))
    return 1.0 - missed


def labels_needed(
    model: Model,
    claims: Sequence[Claim],
    tolerance: float,
    boundary: Boundary = mixture,
    alpha: float = ALPHA,
) -> int:
    """Return the number of labels at which the claims hold with probability 99 %."""
    low, high = 10.0, 1e8
    while high / low > 1.001:  # noqa: PLR2004 - to a part in a thousand
        n = math.sqrt(low * high)
        if power(model, claims, tolerance, n, boundary, alpha) < POWER:
            low = n
        else:
            high = n
    return math.ceil(high)
