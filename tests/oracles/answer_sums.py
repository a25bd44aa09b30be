"""Sums behind the three answers about a model: a specification of the native core.

All rows are kept, and the sums computed from their definition, row after row.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.oracles.elementary import logarithm, logistic, logit
from tests.oracles.tally import BINS, EDGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats, Integers

__all__ = ["MARK", "AnswerSums", "Groups", "IntervalSums", "Losses", "Period", "Point"]

MARK = 1_000.0
"""Units from one mark to the next."""
_FEWEST = 25.0  # units of a group of tenths before a window
_RANGE = 6.0  # nats of the range in which a loss is saved
_LEAST = float.fromhex("0x1.4875c38cc6b4ap-22")  # log odds of -15
_SUMS = 6  # labels, labels 1, forecasts, squares, lower and upper ends
_POINTS, _FIRST = 64, 40  # of a trail, and labels of its first points

Counts = tuple[int, int, int, int, int]  # first and last number, start, until, labels


class Groups(NamedTuple):
    """Groups of one view: cut, group of each tenth, and the sums of halves and of groups."""

    cut: float
    merged: list[int]
    halves: list[tuple[float, ...]]
    tenths: list[tuple[float, ...]]


class Losses(NamedTuple):
    """Finite losses and infinite ones by view; saved at least and at most: sum, squares, open."""

    losses: list[float]
    infinite: list[int]
    low: tuple[float, float, int]
    high: tuple[float, float, int]


class Period(NamedTuple):
    """Sums of some rows: by part and view their groups."""

    counts: Counts
    units: float
    parts: list[list[Groups]]
    losses: Losses


class Point(NamedTuple):
    """Sums of consecutive labels: by half labels, and of each view ones, forecasts, squares."""

    counts: Counts
    halves: list[tuple[float, list[tuple[float, float, float]]]]
    losses: list[float]
    infinite: list[int]


class _Row(NamedTuple):
    p: tuple[float, float]  # raw and served
    label: float
    number: int
    time: int


class AnswerSums:
    """Rows of two classes; see `AnswerSums` in _core/answer_sums.hpp."""

    def __init__(self, tolerance: float) -> None:
        """Start with no rows."""
        self._tolerance = tolerance
        self._skipped: list[_Row] = []
        self._rows: list[_Row] = []

    @property
    def skipped(self) -> int:
        """Number of predictions of the warm-up."""
        return len(self._skipped)

    def skip(self, raw: Floats, served: Floats) -> None:
        """Take forecasts of the warm-up."""
        pairs = zip(raw.tolist(), served.tolist(), strict=True)
        self._skipped += [_Row(pair, 0.0, 0, 0) for pair in pairs]

    def add(
        self, raw: Floats, served: Floats, labels: Floats, numbers: Integers, times: Integers
    ) -> None:
        """Take rows whose labels came."""
        columns = [one.tolist() for one in (raw, served, labels, numbers, times)]
        self._rows += [_Row((p, q), *row) for p, q, *row in zip(*columns, strict=True)]

    def now(self) -> Period:
        """Return the sums of the rows since the last mark but one, or of all."""
        marks, units = [0], 0.0
        for number, row in enumerate(self._rows, 1):
            units += _units(row.p[1])
            if units >= MARK:
                units -= MARK
                marks.append(number)
        last = max(len(marks) - 2, 0)
        first = marks[last]
        before = self._rows[marks[last - 1] : first] if last else self._skipped
        return self._period(before, self._rows[first:], merges=True)

    def whole(self) -> Period:
        """Return the sums of all rows."""
        return self._period(self._skipped, self._rows, merges=False)

    def trail(self) -> list[Point]:
        """Return the sums of consecutive rows, in at most 64 points."""
        cut, size = _fixed([one.p[0] for one in self._skipped], merges=False)[0], _FIRST
        while len(self._rows) > _POINTS * size:
            size *= 2
        return [_point(part, cut) for part in _parts(self._rows, size)]

    def _period(self, before: Sequence[_Row], rows: Sequence[_Row], *, merges: bool) -> Period:
        total = 0.0
        for row in rows:
            total += _units(row.p[1])
        views = []
        for view in (0, 1):
            cut, merged = _fixed([one.p[view] for one in before], merges=merges)
            if not rows:  # the groups are fixed at the first row
                cut, merged = 0.0, [0] * BINS
            views.append(self._groups(cut, merged, rows, view))
        return Period(_counts(rows), total, [views], _losses(rows))

    def _groups(self, cut: float, merged: list[int], rows: Sequence[_Row], view: int) -> Groups:
        halves, tenths = ([[0.0] * _SUMS for _ in range(n)] for n in (2, BINS))
        for row in rows:
            p, y, t = row.p[view], row.label, self._tolerance
            q = 1.0 - p
            ends = p / (p + q * t), p * t / (p * t + q)
            terms = (1.0, y, p, (y - p) * (y - p), *ends)
            for sums in (halves[p >= cut], tenths[merged[_tenth(p)]]):
                sums[:] = [one + term for one, term in zip(sums, terms, strict=True)]
        groups = tenths[: merged[-1] + 1]
        return Groups(cut, merged, [*map(tuple, halves)], [*map(tuple, groups)])


def _parts(rows: list[Any], size: int) -> list[list[Any]]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def _counts(rows: Sequence[Any]) -> Counts:
    if not rows:
        return (0, 0, 0, 0, 0)
    times = [row.time for row in rows]
    return (rows[0].number, rows[-1].number, times[0], max(times), len(rows))


def _units(p: float) -> float:
    return p * (1.0 - p)


def _tenth(p: float) -> int:
    return bisect_right(EDGES, p)


def _fixed(before: Sequence[float], *, merges: bool) -> tuple[float, list[int]]:
    """Return the cut of the halves, and the group of each tenth, by the forecasts before."""
    weight = mean = 0.0
    units = [0.0] * BINS
    for p in before:
        w, x = _units(p), logit(min(max(p, _LEAST), 1.0 - _LEAST))
        weight += w
        if w > 0.0:
            mean += (x - mean) * (w / weight)
        units[_tenth(p)] += w
    left = 0.0
    for one in units:
        left += one
    merged, group, mine = list[int](), 0, 0.0
    for one in units:
        merged.append(group)
        mine, left = mine + one, left - one
        if not merges or (mine >= _FEWEST and left >= _FEWEST):
            group, mine = group + 1, 0.0
    return _rounded(logistic(mean)) if weight else 0.0, merged


def _rounded(p: float) -> float:
    for scale in (10.0**k for k in range(2, 8)):
        found = math.floor(scale * p + 0.5) / scale
        if 0.0 < found < 1.0:
            break
    return found


def _point(rows: Sequence[_Row], cut: float) -> Point:
    labels, sums = [0.0, 0.0], [[[0.0] * 3 for _ in range(2)] for _ in range(2)]
    for row in rows:
        half = int(row.p[0] >= cut)
        labels[half] += 1.0
        for p, view in zip(row.p, sums[half], strict=True):
            terms = (row.label, p, (row.label - p) * (row.label - p))
            view[:] = [one + term for one, term in zip(view, terms, strict=True)]
    halves = [(n, [(a, b, c) for a, b, c in views]) for n, views in zip(labels, sums, strict=True)]
    return Point(_counts(rows), halves, *_losses(rows)[:2])


def _losses(rows: Sequence[_Row]) -> Losses:
    losses, infinite = [0.0, 0.0], [0, 0]
    low, high = [0.0, 0.0, 0], [0.0, 0.0, 0]
    for row in rows:
        for view, p in enumerate(row.p):
            came = p if row.label else 1.0 - p
            if came > 0.0:
                losses[view] += -logarithm(came)
            else:
                infinite[view] += 1
        both = [_log_ratio(*row.p), _log_ratio(*(1.0 - p for p in row.p))]
        saved, least, most = both[0 if row.label else 1], min(both), max(both)
        if least > -math.inf:
            _add_end(low, min(saved, least + _RANGE), least, least + _RANGE)
        else:
            low[2] += 1
        if most < math.inf:
            _add_end(high, max(saved, most - _RANGE), most - _RANGE, most)
        else:
            high[2] += 1
    ends = [(one[0], one[1], int(one[2])) for one in (low, high)]
    return Losses(losses, infinite, *ends)


def _add_end(sums: list[float], saved: float, least: float, most: float) -> None:
    guess = min(max(0.0, least), most)
    sums[0] += saved
    sums[1] += (saved - guess) * (saved - guess)


def _log_ratio(raw: float, served: float) -> float:
    """Return what is saved if an outcome with these probabilities comes."""
    if raw == 0.0:
        return math.inf if served > 0.0 else 0.0
    ratio = served / raw
    if ratio == 0.0:
        return -math.inf
    return logarithm(ratio) if ratio < math.inf else math.inf


class _Label(NamedTuple):
    inside: list[float]
    below: list[float]
    widths: list[float]
    error: float
    distance: float
    number: int
    time: int


class IntervalSums:
    """Labels of numbers, by level of their intervals; see `IntervalSums` in the core."""

    def __init__(self, levels: int, mark: int) -> None:
        """Start with no labels."""
        self._levels, self._mark = levels, mark
        self._rows: list[_Label] = []

    def add(self, rows: Floats, numbers: Integers, times: Integers) -> None:
        """Take labels, a row each: inside, below, widths, error and distance."""
        k = self._levels
        for row, number, time in zip(rows.tolist(), numbers.tolist(), times.tolist(), strict=True):
            parts = row[:k], row[k : 2 * k], row[2 * k : 3 * k]
            self._rows.append(_Label(*parts, row[-2], row[-1], number, time))

    def now(self) -> tuple[Any, ...]:
        """Return the sums of the labels since the last mark but one."""
        first = max(len(self._rows) // self._mark - 1, 0) * self._mark
        return self._sums(self._rows[first:])

    def whole(self) -> tuple[Any, ...]:
        """Return the sums of all labels."""
        return self._sums(self._rows)

    def trail(self) -> list[tuple[Any, ...]]:
        """Return the sums of consecutive labels, in at most 64 points."""
        size = _FIRST
        while len(self._rows) > _POINTS * size:
            size *= 2
        return [self._sums(part) for part in _parts(self._rows, size)]

    def _sums(self, rows: list[_Label]) -> tuple[Any, ...]:
        levels = []
        for k in range(self._levels):
            widths = [row.widths[k] for row in rows if math.isfinite(row.widths[k])]
            counts = sum(row.inside[k] for row in rows), sum(row.below[k] for row in rows)
            levels.append((*counts, len(widths), sum(widths)))
        with_median = [row for row in rows if math.isfinite(row.distance)]
        distances = [
            sum(abs(row.error) for row in rows),
            sum(abs(row.error) for row in with_median),
            sum(row.distance for row in with_median),
        ]
        errors, below = sum(row.error for row in rows), sum(row.error < 0.0 for row in rows)
        return (_counts(rows), levels, errors, below, len(with_median), distances)
