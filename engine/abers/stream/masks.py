"""Which rows of a batch: all, none, or those of a mask.

Most columns are there in all rows of a batch, and most batches are of one kind. `True` and `False`
say so without an array; operations on arrays cost most of what a lone record takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from abers.stream.cells import Mask

if TYPE_CHECKING:
    from abers.arrays import Integers

__all__ = ["ALL", "Rows", "any_of", "both", "either", "mask_of", "numbers_of", "others"]

Rows: TypeAlias = Mask | bool
"""A mask; True for all rows, and False for none."""

ALL: Final[Rows] = True


def both(one: Rows, two: Rows) -> Rows:
    """Return the rows that are in both."""
    if isinstance(one, bool):
        return two if one else False
    if isinstance(two, bool):
        return one if two else False
    return one & two


def either(one: Rows, two: Rows) -> Rows:
    """Return the rows that are in one or in both."""
    if isinstance(one, bool):
        return one or two
    if isinstance(two, bool):
        return two or one
    return one | two


def others(rows: Rows) -> Rows:
    """Return all other rows."""
    return not rows if isinstance(rows, bool) else ~rows


def any_of(rows: Rows) -> bool:
    """Return whether there is a row; True of a batch without any."""
    return rows if isinstance(rows, bool) else bool(rows.any())


def mask_of(rows: Rows, size: int) -> Mask:
    """Return the mask of a batch of so many rows."""
    return np.full(size, rows) if isinstance(rows, bool) else rows


def numbers_of(rows: Rows, size: int) -> Integers:
    """Return the numbers of the rows in a batch of so many."""
    return np.flatnonzero(mask_of(rows, size))
