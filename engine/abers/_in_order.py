"""Observations that wait until they, and all before them, are done with; and bets on them.

The executable specification of the native ones. Governing rule: rows go in with ascending numbers,
are done with in any order, and come out in the order in which they went in.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from abers._arrays import ONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers._arrays import Bytes, Floats, Integers
    from abers._core import CalibrationSet

__all__ = ["InOrder"]

PREDICTS, LEARNS = 0, 1  # kinds of steps; another one is the end of a wait
NONE = np.iinfo(np.int64).max

_GRID = 4096.0  # forecasts are rounded to its parts for the sets, so that these stay small
_DOUBT = 100  # labels that would have to speak for a bet as much as the forecast speaks for itself
_LEAST = 2.0**-53  # no bet is 0 or 1, so that no factor is 0


@dataclass(slots=True)
class _Row:
    time: int
    values: list[float]
    waits: bool = True


class InOrder:
    """Rows of numbers that wait.

    Parameters
    ----------
    width
        Of a row; its last number is of the label, and NaN until that comes.
    least
        How many labels must have come before anything goes in.

    Attributes
    ----------
    came, skipped
        Labels, and rows that came out without one.

    Examples
    --------
    >>> queue = InOrder(1, 0)
    >>> kinds = np.array([0, 0, 0, 1, 1], np.uint8)
    >>> numbers = np.array([3, 5, 8, 5, 3])
    >>> queue.run(kinds, numbers, numbers, np.array([[0.0], [0.0], [0.0], [0.5], [0.3]]))
    2
    >>> times, steps, rows = np.empty(2, int), np.empty(2, int), np.empty((2, 1))
    >>> queue.settled(times, steps, rows)
    >>> times.tolist(), steps.tolist(), rows.tolist(), queue.first()
    ([3, 5], [4, 4], [[0.3], [0.5]], 8)
    """

    def __init__(self, width: int, least: int) -> None:
        """Begin with nothing."""
        if not width:
            msg = "a row has no place for a label"
            raise ValueError(msg)
        self._width, self._least = width, least
        self.came = self.skipped = 0
        self._rows: OrderedDict[int, _Row] = OrderedDict()
        self._settled: list[tuple[int, int, Sequence[float]]] = []

    def run(self, kinds: Bytes, numbers: Integers, times: Integers, values: Floats) -> int:
        """Do steps whose labels tell `values`, an array (n, width); how many rows came out."""
        nothing = [math.nan] * self._width
        columns = (kinds.tolist(), numbers.tolist(), times.tolist(), values.tolist())
        for step, (kind, number, time, told) in enumerate(zip(*columns, strict=True)):
            if kind == PREDICTS:
                self._put(number, time, lambda: nothing)
            else:
                self._end(number, kind, partial(_replaced, told))
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
        """Bet against the forecast of a binary label, of which `values` tells, or the label.

        A row is the forecast, the bets of the two sets of labels, and the label; its two factors
        come out. The result is how many rows did; or, if a step has no forecast and no label,
        its number less the number of steps, and nothing was done.
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
                self._end(number, kind, partial(_learned, sets, value))
                self._release(step, _factors)
        return len(self._settled)

    def _put(self, number: int, time: int, known: Callable[[], list[float]]) -> None:
        if self.came >= self._least:
            self._rows[number] = _Row(time, [*known()])

    def _end(self, number: int, kind: int, told: Callable[[list[float]], list[float]]) -> None:
        self.came += kind == LEARNS
        row = self._rows.get(number)
        if row is not None and row.waits:
            row.waits = False
            if kind == LEARNS:
                row.values = told(row.values)

    def _release(self, step: int, come_out: Callable[[list[float]], Sequence[float]]) -> None:
        while self._rows and not next(iter(self._rows.values())).waits:
            _, row = self._rows.popitem(last=False)
            if math.isnan(row.values[-1]):
                self.skipped += 1
            else:
                self._settled.append((row.time, step, come_out(row.values)))

    def settled(self, times: Integers, steps: Integers, values: Floats) -> None:
        """Write down what came out, at which steps, and forget it."""
        for place, (time, step, told) in enumerate(self._settled):
            times[place], steps[place], values[place] = time, step, told
        self._settled.clear()

    def size(self) -> int:
        """Count the rows."""
        return len(self._rows)

    def first(self) -> int:
        """Give the first number that waits; the largest there is if none does."""
        return next(iter(self._rows), NONE)

    def columns(self, numbers: Integers, times: Integers, waits: Bytes, rows: Floats) -> None:
        """Write down all rows."""
        for place, (number, row) in enumerate(self._rows.items()):
            numbers[place], times[place], waits[place] = number, row.time, row.waits
            rows[place] = row.values

    def load(self, numbers: Integers, times: Integers, waits: Bytes, rows: Floats) -> None:
        """Put rows in as they were."""
        columns = (numbers.tolist(), times.tolist(), waits.tolist(), rows.tolist())
        for number, time, flag, values in zip(*columns, strict=True):
            self._rows[number] = _Row(time, values, bool(flag))


def _replaced(told: list[float], row: list[float]) -> list[float]:
    del row
    return told


def _staked(sets: Sequence[CalibrationSet], forecast: float) -> list[float]:
    return [forecast, *(_bet(held, forecast) for held in sets), math.nan]


def _learned(sets: Sequence[CalibrationSet], label: float, row: list[float]) -> list[float]:
    for held in sets:
        held.learn(_rounded(row[0]), int(label), ONE, math.nan)
    return [*row[:3], label]


def _bet(held: CalibrationSet, forecast: float) -> float:
    """Merge what a set says of a forecast, drawn to the forecast."""
    p0, p1 = held.predict(_rounded(forecast), ONE, math.nan)
    merged = min(max(p1 / (1.0 - p0 + p1), _LEAST), 1.0 - _LEAST)
    bet = (held.size * merged + _DOUBT * forecast) / (held.size + _DOUBT)
    return min(max(bet, _LEAST), 1.0 - _LEAST)


def _rounded(forecast: float) -> float:
    return round(forecast * _GRID) / _GRID  # half to even


def _factors(row: list[float]) -> tuple[float, float]:
    """Give what the two bets win."""
    forecast, everything, recent, label = row
    one, other = (_won(bet, forecast, label) for bet in (everything, recent))
    return one, other


def _won(bet: float, forecast: float, label: float) -> float:
    won, due = (bet, forecast) if label else (1.0 - bet, 1.0 - forecast)
    return won / due if due else math.inf
