"""What a ledger holds, by columns, some entries at a time.

Governing rule: the ids of a store are never all in memory as Python has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from abers._core import Ledger

__all__ = ["Columns", "parts", "read_ids"]

_TOGETHER = 1 << 16  # entries that are read or written at once


class Columns(NamedTuple):
    """What the ledger says of the entries of a store, and how long their ids are."""

    slots: NDArray[np.int64]
    models: NDArray[np.uint32]
    keys: NDArray[np.uint32]
    times: NDArray[np.int64]
    stored: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, count: int) -> Columns:
        """Make room for so many."""
        slots, times, stored = (np.empty(count, np.int64) for _ in range(3))
        models, keys = np.empty(count, np.uint32), np.empty(count, np.uint32)
        return cls(slots, models, keys, times, stored, np.empty(count))

    def some(self, rows: slice | NDArray[np.bool_]) -> Columns:
        """Give some of the rows."""
        columns: list[Any] = [column[rows] for column in self]
        return Columns(*columns)


def read_ids(ledger: Ledger, store: int, columns: Columns) -> Iterator[list[str]]:
    """Give the ids of a store, some at a time, while its columns are filled."""
    behind = 0
    for part in parts(len(columns.slots)):
        ids, behind = ledger.entries(store, behind, *columns.some(part))
        yield ids


def parts(count: int) -> Iterator[slice]:
    """Cut so many rows into parts of which each is small."""
    return (slice(first, first + _TOGETHER) for first in range(0, count, _TOGETHER))
