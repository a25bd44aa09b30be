"""Periods of a stream: now, the whole stream, and points over time."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from abers.backends import core
from abers.monitoring.answers.calibration_error import calibration_error
from abers.monitoring.answers.intervals import intervals_of
from abers.monitoring.answers.pays import saved_of
from abers.monitoring.answers.rows import ALPHA, view_of
from abers.monitoring.answers.sums import added, counts_of, groups_of, losses_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.answers.pays import Saved
    from abers.monitoring.answers.rows import Row, View
    from abers.monitoring.answers.sums import Sums, ViewGroups

__all__ = ["ClassViews", "Dot", "Errors", "Period", "Point", "now_of", "points_of", "whole_of"]

_MAIN = 0  # group of `core.margin` with a quarter of the level, half of it a side
_ONE = 4.0 * ALPHA  # so that a dot has all of the usual level
_POINTS = 64  # at most
_PLACES = {"raw": 0, "calibrated": 1}  # of views in sums


class ClassViews(Struct, frozen=True):
    """What was promised and came of a class, by view."""

    name: str
    views: dict[str, View]


class Errors(Struct, frozen=True):
    """How far single numbers are from labels.

    Attributes
    ----------
    model, median
        Mean absolute errors of the model's number, and of the median that is served; both of the
        labels with a finite median, and `model` of all without any.
    medians
        Number of labels with a finite median.
    bias
        Mean of label minus the model's number.
    below
        Share of the labels below the model's number.
    """

    model: float | None
    median: float | None
    bias: float | None
    below: float | None
    medians: int


class Period(Struct, frozen=True, kw_only=True):
    """A stretch of labelled predictions.

    Attributes
    ----------
    first_row, last_row
        Numbers of the first and the last prediction of the model, in the order of the output; 1 is
        its first, and warm-up and predictions without a label count too. None if the model is
        in several partitions or segments.
    start, until
        Event times of the first prediction, and the latest.
    labels
        Number of labels.
    views
        Rows by view, "raw" and "calibrated".
    losses
        Log losses; None of numbers.
    classes
        Rows of each of several classes.
    errors
        Errors of single numbers; None of classes.
    """

    first_row: int | None
    last_row: int | None
    start: int
    until: int
    labels: int
    views: dict[str, View]
    losses: Saved | None = None
    classes: list[ClassViews] = []
    errors: Errors | None = None


class Dot(Struct, frozen=True):
    """What was promised and came in a group at a time.

    Attributes
    ----------
    labels
        Number of labels.
    came
        By view the share of label 1, of right first choices, or inside.
    promised
        By view the mean probability.
    low, high
        By view the range in which the share is in truth: 95 %, for this dot alone.
    """

    labels: int
    came: dict[str, float]
    promised: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]


class Point(Struct, frozen=True, kw_only=True):
    """A point over time.

    Attributes
    ----------
    first_row, last_row, start, until, labels
        As of `Period`.
    groups
        "all", "lower" and "upper" by the raw cut of the whole stream, and "level-0.9"; only groups
        with labels.
    losses
        Mean log loss by view; None if it is infinite. Of numbers the mean absolute errors of the
        model's number and of the median.
    """

    first_row: int | None
    last_row: int | None
    start: int
    until: int
    labels: int
    groups: dict[str, Dot]
    losses: dict[str, float | None]


def now_of(many: Sequence[Sums]) -> Period | None:
    """Return the present windows of partitions together; None before the first label."""
    return _period(many, [one.now for one in many])


def whole_of(many: Sequence[Sums]) -> Period | None:
    """Return the whole streams of partitions together; None before the first label."""
    return _period(many, [one.whole for one in many])


def _period(many: Sequence[Sums], periods: Sequence[Any]) -> Period | None:
    sums = [one for one in periods if one[0][4]]
    if not sums:
        return None
    first, counts = many[0], counts_of([one[0] for one in sums])
    known = counts._asdict()
    if first.of_numbers:
        levels, *errors = added([one[1:] for one in sums])
        view = intervals_of(first.parts, levels, counts.labels, first.tolerance)
        return Period(**known, views={"calibrated": view}, errors=_errors(errors, counts.labels))
    of_parts = [*zip(*(one[2] for one in sums), strict=True)]
    main = _groups(of_parts[0], first.views)
    views = {view: _main_view(groups) for view, groups in main.items()}
    of_class = ALPHA / len(first.parts) if first.parts else ALPHA
    classes = [
        ClassViews(
            name,
            {view: view_of(of, of_class) for view, of in _groups(part, first.views).items()},
        )
        for name, part in zip(first.parts, of_parts[1:], strict=True)
    ]
    losses = saved_of(losses_of([one[3] for one in sums]), counts.labels)
    return Period(**known, views=views, losses=losses, classes=classes)


def _groups(parts: Sequence[Any], views: Sequence[str]) -> dict[str, ViewGroups]:
    """Return the groups of each view; in sums are both, equal if there is one."""
    return {view: groups_of([one[_PLACES[view]] for one in parts]) for view in views}


def _main_view(groups: ViewGroups) -> View:
    return view_of(groups, ALPHA, calibration_error(groups.tenths, ALPHA))


def _errors(sums: Sequence[Any], labels: int) -> Errors:
    error, below, medians, (every, paired, median) = sums
    by_model, by_median = every / labels, math.nan
    if medians:
        by_model, by_median = paired / medians, median / medians
    model, middle, bias, share = (
        one if math.isfinite(one) else None
        for one in (by_model, by_median, error / labels, below / labels)
    )
    return Errors(model, middle, bias, share, int(medians))


def points_of(many: Sequence[Sums]) -> list[Point]:
    """Return the points of partitions together, in the order of their latest event times."""
    found = sorted((point for one in many for point in one.trail), key=lambda point: point[0][3])
    parts = [[one] for one in found]
    while len(parts) > _POINTS:
        parts = [[*chain(*parts[at : at + 2])] for at in range(0, len(parts), 2)]
    several = len([one for one in many if one.trail]) > 1
    return [_point(many[0], part, several=several) for part in parts]


def _point(first: Sums, sums: list[Any], *, several: bool) -> Point:
    counts = counts_of([one[0] for one in sums])
    if several:
        counts = counts._replace(first_row=None, last_row=None)
    known, n = counts._asdict(), counts.labels
    if first.of_numbers:
        levels, *errors = added([one[1:] for one in sums])
        found = _errors(errors, n)
        view = intervals_of(first.parts, levels, n, first.tolerance)
        groups = {row.key: _dot_of_level(row) for row in view.rows}
        return Point(**known, groups=groups, losses={"raw": found.model, "median": found.median})
    halves, losses, infinite = added([one[1:] for one in sums])
    of_groups = {"all": added(halves), "lower": halves[0], "upper": halves[1]}
    means = {view: None if infinite[at] else losses[at] / n for view, at in _PLACES.items()}
    return Point(
        **known,
        groups={name: _dot(first.views, *one) for name, one in of_groups.items() if one[0]},
        losses={view: means[view] for view in first.views},
    )


def _dot(views: Sequence[str], labels: float, sums: Sequence[Sequence[float]]) -> Dot:
    came, promised, low, high = dict[str, float](), dict[str, float](), {}, {}
    for view in views:
        observed, expected, squares = sums[_PLACES[view]]
        margin = core.margin(squares, _MAIN, _ONE)
        ends = _ends(observed, margin, labels)
        numbers = (observed, expected, *ends)
        came[view], promised[view], low[view], high[view] = (one / labels for one in numbers)
    return Dot(int(labels), came, promised, low, high)


def _ends(count: float, margin: float, labels: float) -> tuple[float, float]:
    """Return the range of a count."""
    return max(count - margin, 0.0), min(count + margin, labels)


def _dot_of_level(row: Row) -> Dot:
    n, level = row.labels, row.promised or 0.0
    squares = row.came_count * (1.0 - level) ** 2 + (n - row.came_count) * level**2
    margin = core.margin(squares, _MAIN, _ONE)
    numbers = (row.came_count, row.promised_sum, *_ends(row.came_count, margin, n))
    came, promised, low, high = ({"calibrated": one / n} for one in numbers)
    return Dot(n, came, promised, low, high)
