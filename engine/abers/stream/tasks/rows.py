"""Helpers of tasks for rows of floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.stream.columns import objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats
    from abers.stream.columns import Column

__all__ = ["by_name", "dicts"]


def by_name(names: Sequence[str], rows: Floats) -> Column:
    """Return a dict of each row, from a name of each column to the value."""
    return objects([dict(zip(names, row, strict=True)) for row in rows.tolist()])


def dicts(names: Sequence[str], row: Sequence[float]) -> list[dict[str, float]]:
    """Return a dict from name to value of each part of a row, which has a value for each name."""
    k = len(names)
    return [dict(zip(names, row[at : at + k], strict=True)) for at in range(0, len(row), k)]
