"""A reorder buffer of predictions: a specification of the native core.

Rows enter with ascending numbers, are completed by their labels in any order, and leave in the
order in which they entered: a row leaves when it and all rows before it are complete.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.arrays import Bytes, Floats, Integers

__all__ = ["Left", "ReorderBuffer"]

PREDICTS, LEARNS = 0, 1  # kinds of steps; any other completes a row without a label


@dataclass(slots=True)
class _Row:
    time: int
    values: list[float]
    pending: bool = True


class Left(NamedTuple):
    """A row that left with a label."""

    number: int
    time: int
    step: int
    gap: int
    values: list[float]


class ReorderBuffer:
    """Rows of `width` numbers in order of entry; the first one enters after `least` labels.

    The last number of a row belongs to the label, and is NaN until that arrives. `came` counts the
    labels, `skipped` the rows that left without one, and `gap` those since the last that had one.

    Examples
    --------
    >>> buffer = ReorderBuffer(1, 0)
    >>> kinds = np.array([0, 0, 0, 1, 1], np.uint8)
    >>> numbers = np.array([3, 5, 8, 5, 3])
    >>> values = np.array([[0.0], [0.0], [0.0], [0.5], [0.3]])
    >>> made, times, steps, gaps, rows = buffer.run(kinds, numbers, numbers, values)
    >>> made.tolist(), steps.tolist(), rows.tolist(), buffer.size()
    ([3, 5], [4, 4], [[0.3], [0.5]], 1)
    """

    def __init__(self, width: int, least: int) -> None:
        """Start empty."""
        if not width:
            msg = "a row has no place for a label"
            raise ValueError(msg)
        self._width, self._least = width, least
        self.came = self.skipped = self.gap = 0
        self._rows: OrderedDict[int, _Row] = OrderedDict()

    def run(
        self,
        kinds: Bytes,
        numbers: Integers,
        times: Integers,
        values: Floats,
        most: int | None = None,
    ) -> tuple[Integers, Integers, Integers, Integers, Floats]:
        """Do steps whose labels bring rows of `values`; return the rows that left.

        These are their numbers and times, the steps at which they left, the rows skipped before
        each, and their values. A row leaves without a label when one is predicted whose number is
        `most` higher.
        """
        nothing = [math.nan] * self._width
        columns = (kinds.tolist(), numbers.tolist(), times.tolist(), values.tolist())
        left: list[Left] = []
        for step, (kind, number, time, row) in enumerate(zip(*columns, strict=True)):
            left += self.step(step, kind, number, time, most, lambda: nothing, lambda _, r=row: r)  # type: ignore[misc]
        ends = [[one[place] for one in left] for place in range(4)]
        table = np.array([one.values for one in left], float).reshape(len(left), self._width)
        first, second, third, fourth = (np.array(one, np.int64) for one in ends)
        return first, second, third, fourth, table

    def step(  # noqa: PLR0913, PLR0917 - as in the core
        self,
        at: int,
        kind: int,
        number: int,
        time: int,
        most: int | None,
        predicted: Callable[[], list[float]],
        labelled: Callable[[list[float]], list[float]],
    ) -> list[Left]:
        """Do the step of this index; return the rows that left."""
        if kind != PREDICTS:
            self._complete(number, kind, labelled)
            return self._release(at)
        self._put(number, time, predicted)
        if most is not None:
            for earlier in [one for one in self._rows if one <= number - most]:
                self._rows[earlier].pending = False
        return self._release(at)

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

    def _release(self, step: int) -> list[Left]:
        left = []
        while self._rows and not next(iter(self._rows.values())).pending:
            number, row = self._rows.popitem(last=False)
            if math.isnan(row.values[-1]):
                self.skipped += 1
                self.gap += 1
            else:
                left.append(Left(number, row.time, step, self.gap, row.values))
                self.gap = 0
        return left

    def size(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

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
