"""What groups of forecasts show: on which side of the tolerance each is, and all together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from abers.monitoring.confidence_sequence import ConfidenceSequence
from abers.monitoring.forecast_groups import GRID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.forecast_groups import ForecastGroup, ForecastGroups
    from abers.monitoring.level_sums import LevelSums

__all__ = [
    "ALL",
    "FIRST_BIN",
    "LOWER",
    "NOT_FOUND",
    "OVER_CONFIDENT",
    "STATUSES",
    "TOO_HIGH",
    "TOO_LOW",
    "TRUSTWORTHY",
    "UNDER_CONFIDENT",
    "UPPER",
    "WHOLE",
    "GroupFinding",
    "established",
    "find",
    "find_in",
    "leans",
    "margin",
]

TRUSTWORTHY = "trustworthy"
TOO_HIGH, TOO_LOW = "too high", "too low"
OVER_CONFIDENT, UNDER_CONFIDENT = "over-confident", "under-confident"
NOT_FOUND = "no miscalibration found"
STATUSES = (TRUSTWORTHY, TOO_HIGH, TOO_LOW, OVER_CONFIDENT, UNDER_CONFIDENT, NOT_FOUND)
ALL, LOWER, UPPER, FIRST_BIN = range(4)
"""Indices of groups; the bins are the last."""

WHOLE = 3
"""Rank of a finding about all forecasts."""

_INSIDE, _UNDECIDED, _EMPTY = "inside", "undecided", "empty"
_SHAPES = {OVER_CONFIDENT: (TOO_LOW, TOO_HIGH), UNDER_CONFIDENT: (TOO_HIGH, TOO_LOW)}
# Of alpha: 1/4 to each of three main groups and 1/40 to each of ten bins, half of it a side.
_MAIN_SHARE, _BIN_SHARE = 1 / 8, 1 / 80
# Halves of forecasts with p ~ Beta(2, 5) have such a sum of squares after 5,600 labels, when a
# tolerance of 1.25 is about to be established.
_SEQUENCE = ConfidenceSequence(500.0, 0.05 / 2 * _MAIN_SHARE)


class GroupFinding(NamedTuple):
    """What groups show.

    Attributes
    ----------
    status
        One of `STATUSES`.
    group
        Index of the group that shows it best.
    inside
        Whether all main groups are inside the tolerance.
    """

    status: str
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

    @property
    def is_possible(self) -> bool:
        """Whether a group can be outside in this way."""
        shaped = self.status in _SHAPES and self.group in {LOWER, UPPER}
        return shaped or self.status in {TOO_HIGH, TOO_LOW}

    @property
    def side(self) -> str:
        """On which side of the tolerance its group is, if it is outside."""
        if self.status not in _SHAPES:
            return self.status
        return _SHAPES[self.status][self.group - LOWER]

    def agrees(self, status: str) -> bool:
        """Return whether a verdict with a status may stay beside it: it is the same, or a part."""
        if self.status == status:
            return True
        if status not in _SHAPES or self.rank == WHOLE:
            return False
        return self.group >= FIRST_BIN or self.status == _SHAPES[status][self.group - LOWER]


_UNDECIDED_YET = GroupFinding(NOT_FOUND, ALL, inside=False)


def find(groups: Sequence[ForecastGroup], alpha: float) -> GroupFinding:
    """Return what the groups show at the level of all of them together."""
    main, bins = alpha * _MAIN_SHARE, alpha * _BIN_SHARE
    sides = [_side(one, main) for one in groups[:FIRST_BIN]]
    status, group = _of_main(*sides)
    inside = sides[ALL] == _INSIDE and {_INSIDE, _EMPTY}.issuperset(sides)
    if status == NOT_FOUND:
        for index, one in enumerate(groups[FIRST_BIN:], FIRST_BIN):
            side = _outside(one, bins)
            if side is not None:
                return GroupFinding(side, index, inside)
    return GroupFinding(TRUSTWORTHY if inside and status == NOT_FOUND else status, group, inside)


def find_in(groups: ForecastGroups | LevelSums, alpha: float) -> GroupFinding:
    """Return what sums show, as `find` of their groups; most often that is nothing yet."""
    thresholds = (-math.log(alpha * share) for share in (_MAIN_SHARE, _BIN_SHARE))
    return _UNDECIDED_YET if groups.is_undecided(*thresholds) else find(groups.groups(), alpha)


def _of_main(whole: str, lower: str, upper: str) -> tuple[str, int]:
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


def _side(one: ForecastGroup, alpha: float) -> str:
    """Return on which side of the tolerance a group is, at a level of each side."""
    if not one.labels:
        return _EMPTY
    if (side := _outside(one, alpha)) is not None:
        return side
    below, above = one.most - one.observed, one.observed - one.least
    reaches = _SEQUENCE.reaches
    inside = reaches(below, one.squares, alpha) and reaches(above, one.squares, alpha)
    return _INSIDE if inside else _UNDECIDED


def _outside(one: ForecastGroup, alpha: float) -> str | None:
    """Return on which side of the tolerance a group is known to be outside, or None."""
    _, observed, _, squares, least, most = one
    if observed > most:
        return TOO_LOW if _SEQUENCE.reaches(observed - most, squares, alpha) else None
    if observed < least:
        return TOO_HIGH if _SEQUENCE.reaches(least - observed, squares, alpha) else None
    return None


def leans(one: ForecastGroup, side: str) -> bool:
    """Return whether the labels of a group are on a side of the tolerance, whatever the level."""
    return one.observed < one.least if side == TOO_HIGH else one.observed > one.most


def established(groups: ForecastGroups | LevelSums, alpha: float) -> float | None:
    """Return the smallest tolerance of the grid within which all main groups are, or None."""
    for tolerance in GRID:
        sides = {_side(one, alpha * _MAIN_SHARE) for one in groups.main_groups(tolerance)}
        if sides <= {_INSIDE, _EMPTY} and _INSIDE in sides:
            return tolerance
    return None


def margin(one: ForecastGroup, group: int, alpha: float) -> float:
    """Return what the labels 1 of a group may be from the sum of their true probabilities."""
    share = _MAIN_SHARE if group < FIRST_BIN else _BIN_SHARE
    return _SEQUENCE.boundary(one.squares, alpha * share)
