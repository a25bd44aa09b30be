"""A confidence sequence for the calibration error in bins: a specification of the native core."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from tests.oracles.elementary import exponential, logarithm
from tests.oracles.incomplete_gamma import LN2, log_front, log_lower_gamma, lower_gamma_series

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SHAPE", "EvidenceBudget", "Slopes", "TwoSidedMixture", "calibration_error"]

SHAPE = 60.0
"""Of the mixture: chosen before the data."""

_STEPS = 60
_PRECISION = 1e-7
_NEGLIGIBLE = 30.0  # as a logarithm


class Slopes(NamedTuple):
    """A logarithm, and its first and second derivatives by the deviation."""

    value: float
    first: float
    second: float


class TwoSidedMixture:
    """Mean of the mixtures of both sides, of outcomes with a range of 1."""

    def __init__(self, shape: float) -> None:
        """Choose the mixture before the data."""
        self._shape = shape
        self._constant = log_front(shape, 0.0) - log_lower_gamma(shape, 0.0)

    def log_at_zero(self, squares: float) -> float:
        """Return the logarithm at no deviation."""
        a = squares + self._shape
        return self._constant - log_front(a, 0.0) + log_lower_gamma(a, 0.0)

    def log_at(self, s: float, squares: float) -> Slopes:
        """Return the logarithm at a deviation of 0 or more."""
        a = squares + self._shape
        x, y = a + s, a - s
        front, share = log_front(a, s), log_lower_gamma(a, s)
        up = self._constant - front + share
        q = exponential(front - share) / x
        above = Slopes(up - LN2, s / x + q, a / (x * x) - q * ((s + 1.0) / x + q))
        if y <= 0.0:
            return above
        series = lower_gamma_series(a, y)
        apart = up - self._constant - logarithm(series)
        if apart > _NEGLIGIBLE:
            return above
        odds = exponential(-apart)
        w = odds / (1.0 + odds)
        below_q = 1.0 / (y * series)
        below = s / y - below_q
        curve = a / (y * y) + below_q * ((s - 1.0) / y - below_q)
        between = above.first - below
        return Slopes(
            above.value + logarithm(1.0 + odds),
            (1.0 - w) * above.first + w * below,
            (1.0 - w) * above.second + w * curve + w * (1.0 - w) * between * between,
        )


class _Bin:
    """How far a bin can be, and the evidence where it is."""

    def __init__(self, squares: float, at_zero: float, limit: float, last: Slopes) -> None:
        self.squares, self.at_zero, self.limit = squares, at_zero, limit
        self.last_value, self.last_slope = last.value - at_zero, last.first
        self.at, self.found = limit, last


class EvidenceBudget:
    """The most that distances of bins add up to, if their evidence is within a budget.

    The evidence of a distance r from 0 to the limit of its bin is log L(r, V) - log L(0, V).
    """

    def __init__(self, mixture: TwoSidedMixture) -> None:
        """Start without bins."""
        self._mixture = mixture
        self._bins: list[_Bin] = []

    def add(self, squares: float, at_zero: float, limit: float) -> None:
        """Add a bin; `at_zero` is its log L(0, V)."""
        if limit > 0.0:
            last = self._mixture.log_at(limit, squares)
            self._bins.append(_Bin(squares, at_zero, limit, last))

    def most(self, budget: float) -> float:
        """Return the most, or a little more."""
        spent = total = weight = least = steepest = 0.0
        for one in self._bins:
            spent += one.last_value
            total += one.limit
            weight += one.squares + SHAPE
            steepest = max(steepest, one.last_slope)
        if spent <= budget:
            return total
        slope = min(math.sqrt(2.0 * budget / weight), 0.5 * steepest)
        for one in self._bins:
            one.at = min(slope * one.squares, one.limit)
        for _ in range(_STEPS):
            excess, total, gain = self._at_slope(slope, budget)
            if abs(excess) <= _PRECISION * budget:
                break
            if excess > 0.0:
                steepest = slope
            else:
                least = slope
            following = slope - excess / gain
            if not least < following < steepest:
                following = 0.5 * (least + steepest)
            for one in self._bins:
                moved = one.at + (following - slope) / one.found.second
                one.at = min(max(moved, 0.0), one.limit)
            slope = following
        return total

    def _at_slope(self, slope: float, budget: float) -> tuple[float, float, float]:
        """Return what bins spend above the budget, the most by duality, and how that grows."""
        spent = total = gain = 0.0
        for one in self._bins:
            is_free = self._move(one, slope)
            spent += one.found.value - one.at_zero
            total += one.at
            if is_free:
                gain += slope / one.found.second
        excess = spent - budget
        return excess, total - excess / slope, gain

    def _move(self, one: _Bin, slope: float) -> bool:
        """Move a bin to where its evidence has a slope; return whether that is before its limit."""
        if one.last_slope <= slope:
            one.at = one.limit
            one.found = Slopes(one.last_value + one.at_zero, one.last_slope, one.found.second)
            return False
        low, high = 0.0, one.limit
        for step in range(1, _STEPS + 1):
            one.found = self._mixture.log_at(one.at, one.squares)
            missing = slope - one.found.first
            if step == _STEPS or abs(missing) <= _PRECISION * slope:
                break
            if missing > 0.0:
                low = one.at
            else:
                high = one.at
            following = one.at + missing / one.found.second
            one.at = following if low < following < high else 0.5 * (low + high)
        return True


def _farthest(
    mixture: TwoSidedMixture, bin_: Sequence[float], at_zero: float, budget: float
) -> float:
    """Return the largest distance from 0 of a bin if it has all of the budget."""
    labels, ones, forecasts, squares = bin_
    deviation = abs(ones - forecasts)
    ahead = forecasts if ones < forecasts else labels - forecasts
    across, rest = labels - ahead, max(ahead - deviation, 0.0)
    if across <= ahead or mixture.log_at(rest, squares).value - at_zero > budget:
        return ahead
    alone = EvidenceBudget(mixture)
    alone.add(squares, at_zero, deviation + across)
    return max(ahead, alone.most(budget) - deviation)


def calibration_error(bins: Sequence[Sequence[float]], alpha: float) -> tuple[float, float]:
    """Return the ends of the sum of distances of bins: labels, ones, forecasts and squares."""
    mixture, budget, distance = TwoSidedMixture(SHAPE), -logarithm(alpha), 0.0
    at_zero = [mixture.log_at_zero(one[3]) if one[0] else 0.0 for one in bins]
    for one in at_zero:
        budget -= one
    nearer, farther = EvidenceBudget(mixture), EvidenceBudget(mixture)
    for bin_, zero in zip(bins, at_zero, strict=True):
        labels, ones, forecasts, squares = bin_
        if not labels:
            continue
        deviation = abs(ones - forecasts)
        most = _farthest(mixture, bin_, zero, budget)
        distance += deviation
        nearer.add(squares, zero, deviation)
        farther.add(squares, zero, most - deviation)
    low = distance - nearer.most(budget)
    return max(low, 0.0), distance + farther.most(budget)
