"""The rows of each key of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["by_key", "grouped"]


def grouped(keys: NDArray[np.int64]) -> tuple[list[int], NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys of a batch, the rows in the order of these, and where those of each begin.

    The rows of a key keep their order. The last offset is the number of rows.

    Examples
    --------
    >>> present, order, offsets = grouped(np.array([1, 0, 1]))
    >>> present, order.tolist(), offsets.tolist()
    ([0, 1], [1, 0, 2], [0, 1, 3])
    """
    n = len(keys)
    if n and (keys == keys[0]).all():  # sorting them takes longer than all the rest
        return [int(keys[0])], np.arange(n), np.array([0, n])
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if n else np.empty(0, int)
    return ordered[starts].tolist(), order, np.append(starts, n)


def by_key(keys: NDArray[np.int64]) -> Iterator[tuple[int, Any]]:
    """Yield each key of a batch with its rows, in their order; they index an array.

    Examples
    --------
    >>> [(key, rows.tolist()) for key, rows in by_key(np.array([1, 0, 1]))]
    [(0, [1]), (1, [0, 2])]
    """
    present, order, offsets = grouped(keys)
    if len(present) == 1:
        yield present[0], slice(None)
        return
    yield from zip(present, np.split(order, offsets[1:-1]), strict=False)
