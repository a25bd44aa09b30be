"""A reorder buffer of predictions, and bets on their labels: a specification of the native core.

Rows enter with ascending numbers, are completed by their labels in any order, and leave in the
order in which they entered: a row leaves when it and all rows before it are complete.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from abers.arrays import ONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers._core import CalibrationSet
    from abers.arrays import Bytes, Floats, Integers

__all__ = ["ReorderBuffer"]

PREDICTS, LEARNS = 0, 1  # kinds of steps; any other completes a row without a label
NONE = np.iinfo(np.int64).max

_GRID = 4096.0  # the sets learn forecasts rounded to multiples of 1 / _GRID, and stay small
_DOUBT = 100  # the weight of the forecast itself in a bet, in labels
_LEAST = 2.0**-53  # bets stay this far from 0 and 1, so no factor is 0
_SETS, _PLACES = 2, 4  # of a view: sets, and numbers of a row


@dataclass(slots=True)
class _Row:
    time: int
    values: list[float]
    pending: bool = True


class ReorderBuffer:
    """Rows of `width` numbers in order of entry; the first one enters after `least` labels.

    The last number of a row belongs to the label, and is NaN until that arrives. `came` counts the
    labels, `skipped` the rows that left without one, and `gap` those since the last that had one.

    Examples
    --------
    >>> buffer = ReorderBuffer(1, 0)
    >>> kinds = np.array([0, 0, 0, 1, 1], np.uint8)
    >>> numbers = np.array([3, 5, 8, 5, 3])
    >>> buffer.run(kinds, numbers, numbers, np.array([[0.0], [0.0], [0.0], [0.5], [0.3]]))
    2
    >>> times, steps, gaps, rows = (*np.empty((3, 2), int), np.empty((2, 1)))
    >>> buffer.settled(times, steps, gaps, rows)
    >>> times.tolist(), steps.tolist(), rows.tolist(), buffer.first()
    ([3, 5], [4, 4], [[0.3], [0.5]], 8)
    """

    def __init__(self, width: int, least: int) -> None:
        """Start empty."""
        if not width:
            msg = "a row has no place for a label"
            raise ValueError(msg)
        self._width, self._least = width, least
        self.came = self.skipped = self.gap = 0
        self._rows: OrderedDict[int, _Row] = OrderedDict()
        self._settled: list[tuple[int, int, int, Sequence[float]]] = []

    def run(self, kinds: Bytes, numbers: Integers, times: Integers, values: Floats) -> int:
        """Do steps whose labels bring rows of `values`; return the number of rows that left."""
        nothing = [math.nan] * self._width
        columns = (kinds.tolist(), numbers.tolist(), times.tolist(), values.tolist())
        for step, (kind, number, time, row) in enumerate(zip(*columns, strict=True)):
            if kind == PREDICTS:
                self._put(number, time, lambda: nothing)
            else:
                self._complete(number, kind, lambda _, new=row: new)  # type: ignore[misc]
                self._release(step, list)
        return len(self._settled)

    def bet(  # noqa: PLR0913, PLR0917 - a column each
        self,
        sets: Sequence[CalibrationSet],
        tolerance: float,
        kinds: Bytes,
        numbers: Integers,
        times: Integers,
        values: Floats,
    ) -> int:
        """Bet against forecasts of binary labels; `values` are forecasts and labels, by view.

        A row has of each view the forecast, the bets of its two sets, of all labels and of the
        last ones, and the label. It leaves with of each view forecast, label, the factors of
        the two bets against the forecast, and their factors against odds that are `tolerance` times
        off. More columns of `values`, which labels bring, stand before these in a row, and leave
        behind them. Return the number of rows that left. If a step has an invalid forecast or
        label, do nothing and return its number minus the number of steps.
        """
        views = len(sets) // _SETS
        steps = (kinds.tolist(), numbers.tolist(), times.tolist(), values.tolist())
        columns = [*zip(*steps, strict=True)]
        for step, (kind, _, _, row) in enumerate(columns):
            given = row[:views]
            if not all(
                0.0 <= one <= 1.0 if kind == PREDICTS else one in {0.0, 1.0} for one in given
            ):
                return step - len(columns)
        for step, (kind, number, time, row) in enumerate(columns):
            if kind == PREDICTS:
                self._put(number, time, partial(_staked, sets, row))
            else:
                self._complete(number, kind, partial(_learned, sets, row))
                self._release(step, partial(_settled, views, tolerance))
        return len(self._settled)

    def _put(self, number: int, time: int, known: Callable[[], list[float]]) -> None:
        if self.came >= self._least:
            self._rows[number] = _Row(time, [*known()])

    def _complete(
        self, number: int, kind: int, labelled: Callable[[list[float]], list[float]]
    ) -> None:
        self.came += kind == LEARNS
        row = self._rows.get(number)
        if row is not None and row.pending:
            row.pending = False
            if kind == LEARNS:
                row.values = labelled(row.values)

    def _release(self, step: int, result: Callable[[list[float]], Sequence[float]]) -> None:
        while self._rows and not next(iter(self._rows.values())).pending:
            _, row = self._rows.popitem(last=False)
            if math.isnan(row.values[-1]):
                self.skipped += 1
                self.gap += 1
            else:
                self._settled.append((row.time, step, self.gap, result(row.values)))
                self.gap = 0

    def settled(self, times: Integers, steps: Integers, gaps: Integers, values: Floats) -> None:
        """Write the rows that left, their steps and the rows skipped before each; forget them."""
        for i, (time, step, gap, row) in enumerate(self._settled):
            times[i], steps[i], gaps[i], values[i] = time, step, gap, row
        self._settled.clear()

    def size(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def first(self) -> int:
        """Return the number of the first row; the greatest integer if there is none."""
        return next(iter(self._rows), NONE)

    def columns(self, numbers: Integers, times: Integers, waits: Bytes, rows: Floats) -> None:
        """Write all rows."""
        for i, (number, row) in enumerate(self._rows.items()):
            numbers[i], times[i], waits[i] = number, row.time, row.pending
            rows[i] = row.values

    def load(self, numbers: Integers, times: Integers, waits: Bytes, rows: Floats) -> None:
        """Load rows as `columns` wrote them."""
        columns = (numbers.tolist(), times.tolist(), waits.tolist(), rows.tolist())
        for number, time, flag, values in zip(*columns, strict=True):
            self._rows[number] = _Row(time, values, bool(flag))


def _staked(sets: Sequence[CalibrationSet], forecasts: Sequence[float]) -> list[float]:
    views = len(sets) // _SETS
    row = [math.nan] * (len(forecasts) - views)
    for view, forecast in enumerate(forecasts[:views]):
        held = sets[_SETS * view : _SETS * (view + 1)]
        row += [forecast + 0.0, *(_bet(one, forecast) for one in held), math.nan]
    return row


def _learned(
    sets: Sequence[CalibrationSet], labels: Sequence[float], row: list[float]
) -> list[float]:
    views = len(sets) // _SETS
    more = labels[views:]
    learned = [*more, *row[len(more) :]]
    for view, label in enumerate(labels[:views]):
        at = len(more) + _PLACES * view
        learned[at + _PLACES - 1] = label
        for held in sets[_SETS * view : _SETS * (view + 1)]:
            held.learn(_rounded(learned[at]), int(label), ONE, math.nan)
    return learned


def _bet(held: CalibrationSet, forecast: float) -> float:
    """Return the merged prediction of a set, shrunk to the forecast."""
    p0, p1 = held.predict(_rounded(forecast), ONE, math.nan)
    merged = min(max(p1 / (1.0 - p0 + p1), _LEAST), 1.0 - _LEAST)
    bet = (held.size * merged + _DOUBT * forecast) / (held.size + _DOUBT)
    return min(max(bet, _LEAST), 1.0 - _LEAST)


def _rounded(forecast: float) -> float:
    return round(forecast * _GRID) / _GRID  # half to even


def _settled(views: int, tolerance: float, row: Sequence[float]) -> list[float]:
    """Return forecast, label and factors of each view, and what the label brought beside."""
    found: list[float] = []
    more = len(row) - _PLACES * views
    for at in range(more, len(row), _PLACES):
        forecast, *bets, label = row[at : at + _PLACES]
        found += [forecast, label, *(_won(bet, forecast, label) for bet in bets)]
        found += [_won(bet, _tolerated(bet, forecast, tolerance), label) for bet in bets]
    return [*found, *row[:more]]


def _tolerated(bet: float, p: float, tolerance: float) -> float:
    """Return the probability nearest to the bet among those whose odds are tolerated."""
    lower = p / (p + (1.0 - p) * tolerance)
    upper = p * tolerance / (p * tolerance + (1.0 - p))
    return min(max(bet, lower), upper)


def _won(bet: float, forecast: float, label: float) -> float:
    won, due = (bet, forecast) if label else (1.0 - bet, 1.0 - forecast)
    return won / due if due else math.inf
