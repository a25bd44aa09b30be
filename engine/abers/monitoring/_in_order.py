"""What waits until all that came before it is done with.

Governing rule: rows go in with ascending numbers, are done with in any order, and come out in the
order in which they went in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["InOrder"]


class InOrder:
    """Rows of numbers that wait.

    Parameters
    ----------
    width
        Of a row.

    Examples
    --------
    >>> queue = InOrder(1)
    >>> queue.push(np.array([3, 5, 8]), np.array([30, 50, 80]), np.array([[0.3], [0.5], [0.8]]))
    >>> queue.finish(queue.places(np.array([5])))
    >>> queue.release()[0].tolist()
    []
    >>> queue.finish(queue.places(np.array([3])))
    >>> queue.release()[0].tolist(), queue.numbers.tolist()
    ([30, 50], [8])
    """

    def __init__(self, width: int) -> None:
        self._start = self._end = 0
        # Numbers, times, whether a row still waits, and the rows: each with room at the end.
        self._columns: tuple[NDArray[Any], ...] = (
            np.empty(0, np.int64),
            np.empty(0, np.int64),
            np.empty(0, bool),
            np.empty((0, width)),
        )

    def _held(self, column: int) -> NDArray[Any]:
        return self._columns[column][self._start : self._end]

    @property
    def numbers(self) -> Integers:
        """The numbers of the rows, ascending."""
        return self._held(0)

    @property
    def open(self) -> NDArray[np.bool_]:
        """Which rows are not done with."""
        return self._held(2)

    @property
    def rows(self) -> Floats:
        """The rows, which may be written to."""
        return self._held(3)

    def push(self, numbers: Integers, times: Integers, rows: Floats) -> None:
        """Put rows at the end."""
        n = len(numbers)
        if self._end + n > len(self._columns[0]):
            self._make_room(n)
        self._end += n
        for column, new in zip(self._columns, (numbers, times, True, rows), strict=True):
            column[self._end - n : self._end] = new

    def _make_room(self, more: int) -> None:
        held = [self._held(column) for column in range(len(self._columns))]
        count = self._end - self._start
        shape = 2 * count + more
        self._columns = tuple(np.empty((shape, *one.shape[1:]), one.dtype) for one in held)
        for column, one in zip(self._columns, held, strict=True):
            column[:count] = one
        self._start, self._end = 0, count

    def places(self, numbers: Integers) -> Integers:
        """Find rows by their numbers; -1 if one is not there or done with."""
        if self._start == self._end:
            return np.full(len(numbers), -1)
        places = np.searchsorted(self.numbers, numbers)
        there = np.minimum(places, self._end - self._start - 1)
        return np.where((self.numbers[there] == numbers) & self.open[there], places, -1)

    def finish(self, places: Integers) -> None:
        """Be done with rows."""
        self.open[places] = False

    def release(self) -> tuple[Integers, Floats]:
        """Give times and rows of those that wait for nothing, and forget them."""
        waits = self.open
        first = int(np.argmax(waits)) if len(waits) else 0
        count = first if len(waits) and waits[first] else len(waits)
        times, rows = self._held(1)[:count].copy(), self.rows[:count].copy()
        self._start += count
        return times, rows

    def state(self) -> list[bytes]:
        """Give what waits: what `load` takes."""
        return [_bytes(self._held(column)) for column in range(len(self._columns))]

    def load(self, state: Sequence[bytes]) -> None:
        """Fill an empty queue with what gave this `state`."""
        numbers, times = (np.frombuffer(one, "<i8").astype(np.int64) for one in state[:2])
        rows = np.frombuffer(state[3], "<f8").astype(np.float64)
        self.push(numbers, times, rows.reshape(len(numbers), self._columns[3].shape[1]))
        self.open[:] = np.frombuffer(state[2], bool)


def _bytes(column: NDArray[Any]) -> bytes:
    return column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes()
