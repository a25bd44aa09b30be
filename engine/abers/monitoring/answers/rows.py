"""Rows of "Where is it off?": groups of predictions, what they promised, and what came."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

from msgspec import Struct

from abers.backends import core
from abers.monitoring.answers import formats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.answers.calibration_error import CalibrationError
    from abers.monitoring.answers.sums import ViewGroups

__all__ = [
    "ALPHA",
    "LEANS_HIGH",
    "LEANS_LOW",
    "RIGHT",
    "TOO_HIGH",
    "TOO_LOW",
    "UNDECIDED",
    "IntervalRow",
    "Row",
    "View",
    "distance",
    "row_of",
    "view_of",
]

RIGHT, UNDECIDED = "right", "undecided"
TOO_HIGH, TOO_LOW, LEANS_HIGH, LEANS_LOW = "too high", "too low", "leans high", "leans low"
ALPHA = 0.05
"""Bound on the probability that a window has a false statement about one view."""
_MAIN, _TENTH = 0, 3  # groups of `core.margin`: 1/4 of the level, and 1/40


class Row(Struct, frozen=True, kw_only=True):
    """A group of labelled predictions.

    Attributes
    ----------
    key
        "all", "lower", "upper", "tenth-3" by its first tenth, or "level-0.9".
    name
        What a table calls it, such as "All", "< 0.27" or "≥ 0.4".
    main
        Whether the answers are about it: all, and both halves.
    labels
        Number of labels.
    came_count
        Number of labels that are 1; of a first choice that were right, of intervals inside.
    promised_sum
        Sum of the probabilities.
    promised, came
        Both as shares of the labels; None without labels.
    gap, low, high
        Points that came above what was promised, and the range in which that is in truth: no share
        is below 0 or above 1.
    tolerance_low, tolerance_high
        Gaps, in points, that do not matter.
    status
        "right", "too high", "too low", "leans high", "leans low" or "undecided"; of intervals
        "too narrow" and so on.

    Notes
    -----
    The probability that the range of any row of a view misses the truth is at most 5 %, for each
    window of "now" and for the whole stream, whenever it is read. A row is right if the
    range is within the tolerance, too high or too low if it is outside, leans if it excludes 0, and
    is else undecided.
    """

    key: str
    name: str
    main: bool
    labels: int
    came_count: int
    promised_sum: float
    promised: float | None
    came: float | None
    gap: float | None
    low: float | None
    high: float | None
    tolerance_low: float | None
    tolerance_high: float | None
    status: str


class IntervalRow(Row, frozen=True, kw_only=True):
    """A level of central intervals.

    Attributes
    ----------
    level
        Share of labels that was promised to be inside.
    below_count, above_count
        Number of labels below, and above.
    finite
        Number of intervals that have both ends.
    width
        Mean width of these; or None.
    """

    level: float
    below_count: int
    above_count: int
    finite: int
    width: float | None


class View(Struct, frozen=True):
    """Rows of a view, "raw" or "calibrated".

    Attributes
    ----------
    cut
        Probability at which the halves meet; None without halves, and if parts of the model have
        different ones.
    rows
        All, the halves, and the tenths that have labels.
    error
        Calibration error over the tenths, with its range; None of numbers and of a class.

    Notes
    -----
    The range of the calibration error has a level of its own: the probability that it ever misses
    the truth is at most 5 %, for each window of "now" and for the whole stream, whenever it is
    read.
    """

    cut: float | None
    rows: list[Row]
    error: CalibrationError | None = None

    @property
    def main(self) -> list[Row]:
        """Main rows with labels."""
        return [row for row in self.rows if row.main and row.labels]

    @property
    def wrong_by(self) -> float:
        """Number of labels by which both halves are off at least, together; all without halves."""
        halves = [row for row in self.rows if row.key in {"lower", "upper"}] or self.main
        return fsum(distance(row) * row.labels / 100.0 for row in halves)


def distance(row: Row) -> float:
    """Return how many points 0 is outside the range of a row."""
    if row.low is None or row.high is None:
        return 0.0
    return max(row.low, -row.high, 0.0)


def row_of(
    kind: tuple[str, str, bool], sums: Sequence[float], alpha: float, words: tuple[str, str]
) -> Row:
    """Return the row of a group.

    Parameters
    ----------
    kind
        Key, name, and whether it is a main row.
    sums
        Labels, those that are 1, probabilities, squares, and lower and upper ends at the tolerance.
    alpha
        Of all rows of the view.
    words
        What a row is where less came than was promised, and where more: "high" and "low".
    """
    key, name, main = kind
    n, k, promised, squares, least, most = sums
    numbers: dict[str, float | None] = dict.fromkeys(
        ("promised", "came", "gap", "low", "high", "tolerance_low", "tolerance_high")
    )
    status = UNDECIDED
    if n:
        margin = core.margin(squares, _MAIN if main else _TENTH, alpha)
        gap = k - promised
        low, high = max(gap - margin, -promised), min(gap + margin, n - promised)
        points = [100.0 * one / n for one in (gap, low, high)]
        ends = [100.0 * (one - promised) / n for one in (least, most)]
        names = ("promised", "came", "gap", "low", "high", "tolerance_low", "tolerance_high")
        numbers = dict(zip(names, (promised / n, k / n, *points, *ends), strict=True))
        status = _status((points[1], points[2]), (ends[0], ends[1]), words)
    return Row(
        key=key,
        name=name,
        main=main,
        labels=int(n),
        came_count=int(k),
        promised_sum=promised,
        status=status,
        **numbers,
    )


def _status(
    points: tuple[float, float], tolerance: tuple[float, float], words: tuple[str, str]
) -> str:
    """Return the status of a range."""
    low, high = points
    fewer, more = words
    if tolerance[0] <= low and high <= tolerance[1]:
        return RIGHT
    if high <= tolerance[0]:
        return f"too {fewer}"
    if low >= tolerance[1]:
        return f"too {more}"
    if high < 0.0:
        return f"leans {fewer}"
    return f"leans {more}" if low > 0.0 else UNDECIDED


def view_of(
    groups: ViewGroups, alpha: float = ALPHA, error: CalibrationError | None = None
) -> View:
    """Return the rows of a view, all, halves and tenths, and its calibration error."""
    lower, upper = groups.halves
    whole = [one + other for one, other in zip(lower, upper, strict=True)]
    below, above = "lower half", "upper half"
    if groups.cut is not None:
        cut = formats.probability(groups.cut)
        below, above = f"< {cut}", f"≥ {cut}"
    kinds = [("all", "All", True), ("lower", below, True), ("upper", above, True)]
    words = ("high", "low")
    rows = [
        row_of(kind, sums, alpha, words)
        for kind, sums in zip(kinds, (whole, lower, upper), strict=True)
    ]
    rows = rows if lower[0] and upper[0] else rows[:1]
    if len(groups.tenths) > 1:
        ends = [*groups.first[1:], 10]
        for first, end, sums in zip(groups.first, ends, groups.tenths, strict=True):
            if sums[0]:
                rows.append(row_of(_tenth(first, end), sums, alpha, words))
    return View(groups.cut, rows, error)


def _tenth(first: int, end: int) -> tuple[str, str, bool]:
    """Return key and name of the tenths from one to another."""
    if first == 0:
        name = f"< {end / 10}"
    elif end == 10:  # noqa: PLR2004 - of ten
        name = f"≥ {first / 10}"
    else:
        name = f"{first / 10}\N{EN DASH}{end / 10}"
    return f"tenth-{first}", name, False
