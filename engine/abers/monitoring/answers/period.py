"""Periods of a stream: now, all of it, points over time, and what calibration saved in them."""

from __future__ import annotations

import math
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from abers.backends import core
from abers.monitoring.answers.rows import (
    ALPHA,
    added,
    calibration_error,
    counts_of,
    groups_of,
    intervals_of,
    losses_of,
    view_of,
)
from abers.monitoring.tests import ConfidenceSequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.answers.rows import Losses, Row, Sums, View, ViewGroups

__all__ = [
    "RANGE",
    "ClassViews",
    "Dot",
    "Errors",
    "Period",
    "Point",
    "Saved",
    "now_of",
    "points_of",
    "saved_of",
    "whole_of",
]

RANGE = 6.0
"""Nats of the range in which what a label saves is counted."""
_ALPHA = 0.05
# Gains with a mean square of 0.03 have this sum after some 4,000 labels, when a saving of a
# hundredth of a nat is about to be found.
_TIGHTEST = 120.0


class Saved(Struct, frozen=True):
    """Log losses of raw and calibrated probabilities, and the loss that calibration saved.

    Attributes
    ----------
    raw, calibrated
        Mean log losses in nats; None if any loss is infinite.
    infinite_raw, infinite_calibrated
        Number of labels with an infinite loss.
    certain_raw, certain_calibrated
        Number of labels with raw, or calibrated, probabilities that have a 0 or a 1 where the
        others have not: what these could save at most, or at least, has no limit.
    saved, low, high
        1 - calibrated / raw; and the range of the mean expected saving, as a share of `raw`, and
        at most 1: no loss is below 0. None where a loss is infinite, or one end cannot be known.
    nats, nats_low, nats_high
        The same in nats a label.

    Notes
    -----
    **Guarantee.** The probability that the mean expected saving of a period is ever outside the
    range, however often you read it, is at most 5 %. "Expected" is given all forecasts up to
    its own, and the labels of all predictions before it. A mean that is above the raw loss that
    came counts as this, the most that can be saved. Nothing is clipped in the number itself.

    **Proof.** Let the raw forecast of label i give the probabilities r(k) to what can come, and the
    calibrated one s(k). Both are known before the label. So the saving d = log(s(k) / r(k)) takes
    known values; m is the smallest and M the largest; m <= 0 <= M, since both sum to 1. With C = 6
    nats let X = min(d, m + C). It lies in [m, m + C], a range that is known before the label and
    has a width of C at most; and X <= d, so E[X | past] <= E[d | past]. The confidence sequence for
    outcomes of these ranges says that with probability 1 - alpha / 2, for all n at once, the sum of
    X is at most b(V) above the sum of E[X | past], V being the sum of squares of X - g for a guess
    g in the range that is known before the label, here 0 moved into it. Hence

        sum of E[d | past] >= sum of E[X | past] >= sum of X - b(V).

    The upper end follows from Y = max(d, M - C) >= d, which lies in [M - C, M]. Both ends hold
    together with probability 1 - alpha. As X <= d <= Y, the range always contains the mean of d. A
    raw forecast of 0 or 1 has no M, so no upper end, and a calibrated one no m. Divided by the mean
    raw loss that came, both are shares: the event is the same, so is its probability.

    References
    ----------
    Choe & Ramdas (2024), Comparing sequential forecasters; Howard, Ramdas, McAuliffe & Sekhon
    (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences.
    """

    raw: float | None
    calibrated: float | None
    infinite_raw: int
    infinite_calibrated: int
    certain_raw: int
    certain_calibrated: int
    saved: float | None
    low: float | None
    high: float | None
    nats: float | None
    nats_low: float | None
    nats_high: float | None


@cache
def _sequence() -> ConfidenceSequence:
    return ConfidenceSequence(_TIGHTEST, _ALPHA / 2, RANGE)


def saved_of(losses: Losses, labels: int) -> Saved:
    """Return what was saved over so many labels, at least one."""
    low, high = (_end(*one, labels) for one in ((-1.0, losses.low), (1.0, losses.high)))
    raw, calibrated = (
        None if infinite else finite / labels
        for finite, infinite in zip(losses.finite, losses.infinite, strict=True)
    )
    if raw is not None and high is not None:
        high = min(high, raw)
    nats = None if raw is None or calibrated is None else raw - calibrated
    saved, saved_low, saved_high = (
        None if raw is None or one is None or not raw > 0.0 else one / raw
        for one in (nats, low, high)
    )
    return Saved(
        raw=raw,
        calibrated=calibrated,
        infinite_raw=losses.infinite[0],
        infinite_calibrated=losses.infinite[1],
        certain_raw=int(losses.high[2]),
        certain_calibrated=int(losses.low[2]),
        saved=saved,
        low=saved_low,
        high=saved_high,
        nats=nats,
        nats_low=low,
        nats_high=high,
    )


def _end(sign: float, sums: Sequence[float], labels: int) -> float | None:
    """Return an end of the range of what was saved, in nats a label."""
    total, squares, open_ = sums
    return None if open_ else (total + sign * _sequence().boundary(squares, _ALPHA / 2)) / labels


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
