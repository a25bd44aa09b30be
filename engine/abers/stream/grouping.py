"""The rows of each key in a batch.

Governing rule: rows keep their order, and a batch of one key costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["by_key"]


def by_key(keys: NDArray[np.int64]) -> Iterator[tuple[int, Any]]:
    """Give the rows of each key, in their order.

    Examples
    --------
    >>> [(key, rows.tolist()) for key, rows in by_key(np.array([1, 0, 1]))]
    [(0, [1]), (1, [0, 2])]
    """
    if not len(keys):
        return
    if (keys == keys[0]).all():  # sorting them costs more than the rest
        yield int(keys[0]), slice(None)
        return
    order = np.argsort(keys, kind="stable")
    numbers, starts = np.unique(keys[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)
