"""Helpers of tasks for rows of floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.stream.columns import objects
from abers.stream.settings import LARGEST_TIME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats
    from abers.stream.columns import Column

__all__ = ["are_numbers", "by_name", "dicts"]


def are_numbers(column: Floats) -> bool:
    """Return whether a column has numbers of observations."""
    whole = (column >= 0.0) & (column < LARGEST_TIME) & (column == np.floor(column))
    return bool(whole.all())


def by_name(names: Sequence[str], rows: Floats) -> Column:
    """Return a dict of each row, from a name of each column to the value."""
    return objects([dict(zip(names, row, strict=True)) for row in rows.tolist()])


def dicts(names: Sequence[str], row: Sequence[float]) -> list[dict[str, float]]:
    """Return a dict from name to value of each part of a row, which has a value for each name."""
    k = len(names)
    return [dict(zip(names, row[at : at + k], strict=True)) for at in range(0, len(row), k)]
