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


@dataclass(slots=True)
class _Row:
    time: int
    values: list[float]
    pending: bool = True


class ReorderBuffer:
    """Rows of `width` numbers in order of entry; the first one enters after `least` labels.

    The last number of a row belongs to the label, and is NaN until that arrives. `came` counts the
    labels, and `skipped` the rows that left without one.

    Examples
    --------
    >>> buffer = ReorderBuffer(1, 0)
    >>> kinds = np.array([0, 0, 0, 1, 1], np.uint8)
    >>> numbers = np.array([3, 5, 8, 5, 3])
    >>> buffer.run(kinds, numbers, numbers, np.array([[0.0], [0.0], [0.0], [0.5], [0.3]]))
    2
    >>> times, steps, rows = np.empty(2, int), np.empty(2, int), np.empty((2, 1))
    >>> buffer.settled(times, steps, rows)
    >>> times.tolist(), steps.tolist(), rows.tolist(), buffer.first()
    ([3, 5], [4, 4], [[0.3], [0.5]], 8)
    """

    def __init__(self, width: int, least: int) -> None:
        """Start empty."""
        if not width:
            msg = "a row has no place for a label"
            raise ValueError(msg)
        self._width, self._least = width, least
        self.came = self.skipped = 0
        self._rows: OrderedDict[int, _Row] = OrderedDict()
        self._settled: list[tuple[int, int, Sequence[float]]] = []

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
        everything: CalibrationSet,
        recent: CalibrationSet,
        kinds: Bytes,
        numbers: Integers,
        times: Integers,
        values: Floats,
    ) -> int:
        """Bet against forecasts of binary labels; `values` are the forecasts and the labels.

        A row is the forecast, the bets of the two sets of labels, and the label. It leaves as its
        two factors. Return the number of rows that left. If a step has an invalid forecast or
        label, do nothing and return its number minus the number of steps.
        """
        steps = (kinds.tolist(), numbers.tolist(), times.tolist(), values.tolist())
        columns = [*zip(*steps, strict=True)]
        for step, (kind, _, _, value) in enumerate(columns):
            if not (0.0 <= value <= 1.0 if kind == PREDICTS else value in {0.0, 1.0}):
                return step - len(columns)
        sets = (everything, recent)
        for step, (kind, number, time, value) in enumerate(columns):
            if kind == PREDICTS:
                self._put(number, time, partial(_staked, sets, value))
            else:
                self._complete(number, kind, partial(_learned, sets, value))
                self._release(step, _factors)
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
            else:
                self._settled.append((row.time, step, result(row.values)))

    def settled(self, times: Integers, steps: Integers, values: Floats) -> None:
        """Write the rows that left with their steps, and forget them."""
        for i, (time, step, row) in enumerate(self._settled):
            times[i], steps[i], values[i] = time, step, row
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


def _staked(sets: Sequence[CalibrationSet], forecast: float) -> list[float]:
    return [forecast, *(_bet(held, forecast) for held in sets), math.nan]


def _learned(sets: Sequence[CalibrationSet], label: float, row: list[float]) -> list[float]:
    for held in sets:
        held.learn(_rounded(row[0]), int(label), ONE, math.nan)
    return [*row[:3], label]


def _bet(held: CalibrationSet, forecast: float) -> float:
    """Return the merged prediction of a set, shrunk to the forecast."""
    p0, p1 = held.predict(_rounded(forecast), ONE, math.nan)
    merged = min(max(p1 / (1.0 - p0 + p1), _LEAST), 1.0 - _LEAST)
    bet = (held.size * merged + _DOUBT * forecast) / (held.size + _DOUBT)
    return min(max(bet, _LEAST), 1.0 - _LEAST)


def _rounded(forecast: float) -> float:
    return round(forecast * _GRID) / _GRID  # half to even


def _factors(row: list[float]) -> tuple[float, float]:
    """Return the factors of the two bets."""
    forecast, everything, recent, label = row
    one, other = (_won(bet, forecast, label) for bet in (everything, recent))
    return one, other


def _won(bet: float, forecast: float, label: float) -> float:
    won, due = (bet, forecast) if label else (1.0 - bet, 1.0 - forecast)
    return won / due if due else math.inf
