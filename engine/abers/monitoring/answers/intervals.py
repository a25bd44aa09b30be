"""Intervals of numbers: the level that answers are about, and the rows of all levels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from abers.backends import core
from abers.monitoring.answers.rows import ALPHA, IntervalRow, View, row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["intervals_of", "labels_of_a_mark", "main_level"]

_MAIN = 0.9  # the level that answers are about
_SHARES = 4.0  # of a level of all rows each main row has a quarter


def main_level(levels: Sequence[float]) -> float | None:
    """Return the level that the answers are about: 90 %, or the nearest to it."""
    return min(levels, key=lambda one: abs(one - _MAIN), default=None)


def labels_of_a_mark(levels: Sequence[float]) -> int:
    """Return the number of labels from one mark to the next: level (1 - level) units each.

    Examples
    --------
    >>> labels_of_a_mark([0.5, 0.9]), labels_of_a_mark([0.5])
    (11112, 4000)
    """
    level = main_level(levels)
    level = _MAIN if level is None else level
    units: float = core.UNITS_OF_A_MARK
    return math.ceil(round(units / (level * (1.0 - level)), 6))


def intervals_of(
    levels: Sequence[float], sums: Sequence[Any], labels: int, tolerance: float
) -> View:
    """Return the rows of all levels, the widest intervals first.

    Each has the same share of the level of the view.
    """
    main, rows = main_level(levels), list[IntervalRow]()
    for level, (inside, below, finite, width) in zip(levels, sums, strict=True):
        outside = labels - inside
        squares = inside * (1.0 - level) ** 2 + outside * level**2
        ends = (
            level / (level + (1.0 - level) * tolerance),
            level * tolerance / (level * tolerance + 1.0 - level),
        )
        group = (labels, inside, labels * level, squares, *(labels * one for one in ends))
        kind = (f"level-{level:.9g}", f"{100.0 * level:.9g}\N{NO-BREAK SPACE}%", True)
        row = row_of(kind, group, ALPHA * _SHARES / len(levels), ("narrow", "wide"))
        known = msgspec.structs.asdict(row) | {"main": level == main}
        rows.append(
            IntervalRow(
                **known,
                level=level,
                below_count=int(below),
                above_count=int(outside - below),
                finite=int(finite),
                width=width / finite if finite else None,
            )
        )
    return View(None, [*rows])
