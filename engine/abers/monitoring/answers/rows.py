"""Rows of "Where is it off?" and their sums: what groups promised, what came, how far it is off."""

from __future__ import annotations

import math
from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from abers.backends import core
from abers.monitoring import formats

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ALPHA",
    "LEANS_HIGH",
    "LEANS_LOW",
    "RIGHT",
    "TOO_HIGH",
    "TOO_LOW",
    "UNDECIDED",
    "CalibrationError",
    "Counts",
    "IntervalRow",
    "Losses",
    "Row",
    "Sums",
    "View",
    "ViewGroups",
    "added",
    "calibration_error",
    "counts_of",
    "distance",
    "groups_of",
    "intervals_of",
    "labels_of_a_mark",
    "losses_of",
    "main_level",
    "row_of",
    "view_of",
]


class Sums(NamedTuple):
    """What a test of predictions knows for the answers.

    Attributes
    ----------
    now, whole, trail
        Sums of the present window, of the whole stream, and over time, as of `core.AnswerSums` or
        `core.IntervalSums`.
    warm_up
        Number of predictions that were made in the warm-up; None if nobody counts them.
    came
        Number of labels that came.
    grace_period
        Number of labels that must come before the first prediction counts.
    views
        Names of the views that are tested.
    incidents
        Of each view with an open incident the event time at which its fault began.
    parts
        Names of the classes that have sums of their own, or levels of intervals.
    tolerance
        Ratio of odds within which predictions are right.
    of_numbers
        Whether labels are numbers.
    several
        Whether there are more than two classes.
    """

    now: Any
    whole: Any
    trail: Sequence[Any]
    warm_up: int | None
    came: int
    grace_period: int
    views: Sequence[str]
    incidents: dict[str, int]
    parts: Sequence[Any]
    tolerance: float
    of_numbers: bool = False
    several: bool = False


class Counts(NamedTuple):
    """Which predictions are counted, by number and event time; no numbers of several partitions."""

    first_row: int | None
    last_row: int | None
    start: int
    until: int
    labels: int


class ViewGroups(NamedTuple):
    """Groups of a view: their cut, first tenth of each group of tenths, and sums."""

    cut: float | None
    first: list[int]
    halves: list[list[float]]
    tenths: list[list[float]]


class Losses(NamedTuple):
    """Losses of both views, and what was saved at least and at most; see `Saved`."""

    finite: list[float]
    infinite: list[int]
    low: list[float]
    high: list[float]


def added(many: Sequence[Any]) -> Any:  # noqa: ANN401 - numbers, in lists and tuples
    """Add up numbers that stand in lists and tuples of the same form, rounded once.

    Examples
    --------
    >>> added([[0.1, 1], [0.2, 2], [0.3, 3]])
    [0.6, 6]
    """
    first = many[0]
    if len(many) == 1:
        return first
    if isinstance(first, list | tuple):
        return [added(column) for column in zip(*many, strict=True)]
    return fsum(many) if isinstance(first, float) else sum(many)


def counts_of(many: Sequence[tuple[int, int, int, int, int]]) -> Counts:
    """Return the counts of partitions that have labels."""
    if len(many) == 1:
        first, last, *rest = many[0]
        return Counts(first + 1, last + 1, *rest)
    _, _, start, until, labels = zip(*many, strict=True)
    return Counts(None, None, min(start), max(until), sum(labels))


def groups_of(many: Sequence[Sequence[Any]]) -> ViewGroups:
    """Return the groups of partitions: tenths are apart where they are in each of them."""
    cuts = {cut for cut, *_ in many}
    starts = [{merged.index(group) for group in merged} for _, merged, *_ in many]
    first = sorted(set.intersection(*starts))
    tenths = [[0.0] * 6 for _ in first]
    for _, merged, _, groups in many:
        for group, sums in enumerate(groups):
            at = sum(one <= merged.index(group) for one in first) - 1
            tenths[at] = added([tenths[at], sums])
    return ViewGroups(
        cuts.pop() if len(cuts) == 1 else None, first, added([one[2] for one in many]), tenths
    )


def losses_of(many: Sequence[Any]) -> Losses:
    """Return the losses of partitions."""
    return Losses(*added(many))


_SUMS = 4  # of a bin: labels, ones, forecasts and squares
_POINTS = 100.0


class CalibrationError(Struct, frozen=True):
    """Calibration error in bins, with the range in which it is in truth.

    Attributes
    ----------
    plain
        Mean distance of forecasts and labels over bins, a share as `PrequentialScores.ece`. It is
        above the truth by chance. NaN before the first label.
    low, high
        Ends of the range of the true error, as shares; 0 and 1 before the first label.
    labels
        Number of labels.

    Examples
    --------
    >>> CalibrationError(0.0773, 0.06142, 0.09258, 20_000).sentence
    'The calibration error is between 6.1 and 9.3 points.'
    >>> CalibrationError(0.0093, 0.0, 0.02178, 20_000).sentence
    'The calibration error is at most 2.2 points.'
    """

    plain: float
    low: float
    high: float
    labels: int

    @property
    def sentence(self) -> str:
        """The range in words, each end rounded to the cautious side."""
        return f"The calibration error is {self.ends}."

    @property
    def ends(self) -> str:
        """The range in points, in a few words."""
        low, high = _POINTS * self.low, _POINTS * self.high
        places = formats.decimals(low, high)
        most = formats.up(high, places)
        if not low:
            return f"at most {most} points"
        return f"between {formats.down(low, places)} and {most} points"


def calibration_error(bins: Sequence[Sequence[float]], alpha: float) -> CalibrationError:
    """Return the calibration error of bins, with its range at a level.

    Parameters
    ----------
    bins
        Of each bin the number of labels, that of ones, the sum of forecasts and that of squares,
        and more that is not read; see `ForecastGroup`. Bins do not depend on labels.
    alpha
        As of `CalibrationErrorSequence`.
    """
    sums = np.array([one[:_SUMS] for one in bins], dtype=np.float64)
    labels = float(sums[:, 0].sum())
    if not labels:
        return CalibrationError(math.nan, 0.0, 1.0, 0)
    low, high = core.calibration_error(sums, alpha)
    plain = float(np.abs(sums[:, 1] - sums[:, 2]).sum())
    return CalibrationError(plain / labels, low / labels, high / labels, int(labels))


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


_MAIN_INTERVAL = 0.9  # the level that answers are about
_SHARES = 4.0  # of a level of all rows each main row has a quarter


def main_level(levels: Sequence[float]) -> float | None:
    """Return the level that the answers are about: 90 %, or the nearest to it."""
    return min(levels, key=lambda one: abs(one - _MAIN_INTERVAL), default=None)


def labels_of_a_mark(levels: Sequence[float]) -> int:
    """Return the number of labels from one mark to the next: level (1 - level) units each.

    Examples
    --------
    >>> labels_of_a_mark([0.5, 0.9]), labels_of_a_mark([0.5])
    (11112, 4000)
    """
    level = main_level(levels)
    level = _MAIN_INTERVAL if level is None else level
    units: float = core.UNITS_OF_A_MARK
    return math.ceil(round(units / (level * (1.0 - level)), 6))


def intervals_of(
    levels: Sequence[float], sums: Sequence[Any], labels: int, tolerance: float
) -> View:
    """Return the rows of all levels, the widest intervals first.

    Each has the same share of the level of the view.
    """
    main, rows = main_level(levels), list[IntervalRow]()
    for level, (inside, below, finite, width) in zip(levels, sums, strict=True):
        outside = labels - inside
        squares = inside * (1.0 - level) ** 2 + outside * level**2
        ends = (
            level / (level + (1.0 - level) * tolerance),
            level * tolerance / (level * tolerance + 1.0 - level),
        )
        group = (labels, inside, labels * level, squares, *(labels * one for one in ends))
        kind = (f"level-{level:.9g}", f"{100.0 * level:.9g}\N{NO-BREAK SPACE}%", True)
        row = row_of(kind, group, ALPHA * _SHARES / len(levels), ("narrow", "wide"))
        known = msgspec.structs.asdict(row) | {"main": level == main}
        rows.append(
            IntervalRow(
                **known,
                level=level,
                below_count=int(below),
                above_count=int(outside - below),
                finite=int(finite),
                width=width / finite if finite else None,
            )
        )
    return View(None, [*rows])
