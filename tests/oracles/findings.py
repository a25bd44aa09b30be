"""What groups of forecasts show: a specification of the native core.

Statuses are their numbers among `abers.monitoring.forecast_groups.STATUSES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.oracles.confidence_sequence import ConfidenceSequence
from tests.oracles.elementary import logarithm

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ALL",
    "FIRST_BIN",
    "WHOLE",
    "Finding",
    "Group",
    "are_inside",
    "find",
    "margin",
    "thresholds",
]

TRUSTWORTHY, TOO_HIGH, TOO_LOW, OVER_CONFIDENT, UNDER_CONFIDENT, NOT_FOUND = range(6)
ALL, LOWER, UPPER, FIRST_BIN = range(4)
WHOLE = 3

_INSIDE, _UNDECIDED, _EMPTY = "inside", "undecided", "empty"
_SHAPES = {OVER_CONFIDENT: (TOO_LOW, TOO_HIGH), UNDER_CONFIDENT: (TOO_HIGH, TOO_LOW)}
_MAIN_SHARE, _BIN_SHARE = 1 / 8, 1 / 80
_SEQUENCE = ConfidenceSequence(500.0, 0.05 / 2 * _MAIN_SHARE, 1.0)


class Group(NamedTuple):
    """Sums of a group, as `abers.monitoring.ForecastGroup`."""

    labels: float
    observed: float
    expected: float
    squares: float
    least: float
    most: float


class Finding(NamedTuple):
    """What groups show, the group that shows it best, and whether the main groups are inside."""

    status: int
    group: int
    inside: bool

    @property
    def outside(self) -> bool:
        """Whether forecasts are outside the tolerance."""
        return self.status not in {TRUSTWORTHY, NOT_FOUND}

    @property
    def rank(self) -> int:
        """How much it says: 3 of all forecasts, 2 of one half, 1 of one bin; 0 if not outside."""
        if not self.outside:
            return 0
        if self.status in _SHAPES or self.group == ALL:
            return WHOLE
        return 2 if self.group < FIRST_BIN else 1

    def leans(self, one: Group) -> bool:
        """Return whether later labels of its group are on its side of the tolerance."""
        side = self.status
        if side in _SHAPES:
            side = _SHAPES[side][self.group - LOWER]
        return one.observed < one.least if side == TOO_HIGH else one.observed > one.most

    def agrees(self, status: int) -> bool:
        """Return whether a verdict with a status may stay next to it: it is the same, or a part."""
        if self.status == status:
            return True
        if status not in _SHAPES or self.rank == WHOLE:
            return False
        return self.group >= FIRST_BIN or self.status == _SHAPES[status][self.group - LOWER]


def find(groups: Sequence[Group], alpha: float) -> Finding:
    """Return what the groups show at the level of all of them together."""
    main, bins = thresholds(alpha)
    sides = [_side(one, main) for one in groups[:FIRST_BIN]]
    status, group = _of_main(*sides)
    inside = sides[ALL] == _INSIDE and {_INSIDE, _EMPTY}.issuperset(sides)
    if status == NOT_FOUND:
        for index, one in enumerate(groups[FIRST_BIN:], FIRST_BIN):
            side = _outside(one, bins)
            if side is not None:
                return Finding(side, index, inside)
    return Finding(TRUSTWORTHY if inside and status == NOT_FOUND else status, group, inside)


def thresholds(alpha: float) -> tuple[float, float]:
    """Return the logarithms of one divided by the level of a side: of main groups, and of bins."""
    return -logarithm(alpha * _MAIN_SHARE), -logarithm(alpha * _BIN_SHARE)


def are_inside(groups: Sequence[Group], alpha: float) -> bool:
    """Return whether the main groups are inside their tolerance, and one is not empty."""
    main, _ = thresholds(alpha)
    sides = {_side(one, main) for one in groups}
    return sides <= {_INSIDE, _EMPTY} and _INSIDE in sides


def margin(squares: float, group: int, alpha: float) -> float:
    """Return what the ones of a group may be from the sum of their true probabilities."""
    share = _MAIN_SHARE if group < FIRST_BIN else _BIN_SHARE
    return _SEQUENCE.boundary(squares, alpha * share)


def _of_main(whole: int | str, lower: int | str, upper: int | str) -> tuple[int, int]:
    """Return the status that the main groups decide, and the group that shows it."""
    for status, (below, above) in _SHAPES.items():
        if upper == above and lower in {_INSIDE, below}:
            return status, UPPER
        if lower == below and upper == _INSIDE:
            return status, LOWER
    for side in (TOO_HIGH, TOO_LOW):
        if whole == side or lower == upper == side:
            return side, ALL
        if side in {lower, upper}:
            return side, LOWER if lower == side else UPPER
    return NOT_FOUND, ALL


def _side(one: Group, threshold: float) -> int | str:
    """Return on which side of the tolerance a group is."""
    if not one.labels:
        return _EMPTY
    if (side := _outside(one, threshold)) is not None:
        return side
    below, above = one.most - one.observed, one.observed - one.least
    inside = all(_SEQUENCE.reaches_at(gap, one.squares, threshold) for gap in (below, above))
    return _INSIDE if inside else _UNDECIDED


def _outside(one: Group, threshold: float) -> int | None:
    """Return on which side of the tolerance a group is known to be outside, or None."""
    if _SEQUENCE.reaches_at(one.observed - one.most, one.squares, threshold):
        return TOO_LOW
    if _SEQUENCE.reaches_at(one.least - one.observed, one.squares, threshold):
        return TOO_HIGH
    return None
