"""Pool of predictive distributions in lanes: the specification of the native core.

A forecast is m numbers in order, each with the mass 1 / m. The pool of the forecasts of K methods
has all their numbers, each with the weight of its method. A share is a pool too, by weights that
are fixed when an observation is predicted. On a support of width R the continuous ranked
probability score is exp-concave with the rate 1 / (2 R) for a pool, so the total score of a lane
exceeds that of a method of weight w by at most 2 R ln(1 / w).
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeAlias

from tests.oracles.elementary import exponential

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats

    StepCDF: TypeAlias = list[tuple[float, float]]

__all__ = ["likelihoods", "pooled", "prior", "score", "scores", "weights_of"]

_OF_SHARES = 0.7  # of what the base leaves


def prior(methods: int, shares: int, first_weight: float) -> list[float]:
    """Return the first weights in a lane: of the base, the other methods, and the shares."""
    rest = 1.0 - first_weight
    others = rest * (1.0 - _OF_SHARES) / (methods - 1)
    return [first_weight, *[others] * (methods - 1), *[rest * _OF_SHARES / shares] * shares]


def weights_of(lane: Sequence[float], shares: Sequence[Sequence[float]]) -> list[float]:
    """Return the weight of each method in a lane, with what the shares give to it."""
    methods = len(lane) - len(shares)
    found = list(lane[:methods])
    for k in range(methods):
        for of_lane, given in zip(lane[methods:], shares, strict=True):
            found[k] += of_lane * given[k]
    return found


def pooled(forecasts: Floats, weights: Sequence[float]) -> StepCDF:
    """Return the CDF of a pool; where several numbers are equal, it is one step."""
    points = sorted((at, k) for k, row in enumerate(forecasts.tolist()) for at in row)
    steps, total = [], 0.0
    for (at, k), following in zip(points, chain(points[1:], [None]), strict=True):
        total += weights[k]
        if following is None or following[0] != at:
            steps.append((at, total))
    return [(at, held / total) for at, held in steps]


def scores(
    forecasts: Floats, shares: Sequence[Sequence[float]], lane: Sequence[float], label: float
) -> list[float]:
    """Return the score of each method and share, then of the pool."""
    members = forecasts.shape[1]
    steps = [
        *([(at, (i + 1.0) / members) for i, at in enumerate(row)] for row in forecasts.tolist()),
        *(pooled(forecasts, weights) for weights in (*shares, weights_of(lane, shares))),
    ]
    return [score(one, label) for one in steps]


def likelihoods(of: Sequence[float], width: float) -> list[float]:
    """Return what multiplies the weights of a lane."""
    rate = 1.0 / (2.0 * width)
    return [exponential(-rate * one) for one in of]


def score(steps: StepCDF, label: float) -> float:
    """Return the continuous ranked probability score of a step CDF that ends at 1."""
    total = max(steps[0][0] - label, 0.0) + max(label - steps[-1][0], 0.0)
    for (low, below), (high, _) in pairwise(steps):
        middle = min(max(label, low), high)
        total += below * below * (middle - low)
        total += (1.0 - below) * (1.0 - below) * (high - middle)
    return total
