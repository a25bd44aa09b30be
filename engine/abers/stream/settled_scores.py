"""Settled predictions of a batch, added to the monitors and histories of their keys.

Where all monitors of a key are of the core, one native call takes the rows of all keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.backends import core
from abers.monitoring import BinaryMonitor, ProtectionMonitor, Totals
from abers.stream.key_groups import by_key, grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Integers
    from abers.monitoring import ScoredRows, TaskMonitor
    from abers.stream.history import ModelHistory

__all__ = ["add_settled"]


def add_settled(
    monitors: Sequence[TaskMonitor],
    histories: Sequence[ModelHistory],
    keys: Integers,
    scored: ScoredRows,
    times: Integers,
) -> list[int]:
    """Add predictions, each of the key in its row, to monitors and histories by key.

    Return the keys with a window that ended, ascending.
    """
    if len(keys) and scored.widths is not None and _is_native(monitors[keys[0]]):
        return _add_natively(monitors, histories, keys, scored, times)
    return [
        key
        for key, rows in by_key(keys)
        if histories[key].update(scored.take(rows), times[rows], monitors[key])
    ]


def _is_native(monitor: TaskMonitor) -> bool:
    """Return whether a monitor and all others of its key are of the core."""
    others = all(type(one) is ProtectionMonitor for one in monitor.others)
    return type(monitor) is BinaryMonitor and others


def _add_natively(
    monitors: Sequence[Any],
    histories: Sequence[ModelHistory],
    keys: Integers,
    scored: ScoredRows,
    times: Integers,
) -> list[int]:
    present, order, offsets = grouped(keys)
    watched = [histories[key].watched(monitors[key]) for key in present]
    ended = dict[int, None]()
    for at, labels, first, last, scores, outside in core.score_rows(
        watched, order, offsets, *_columns(scored, times)
    ):
        totals: dict[str, Any] = {BinaryMonitor.name: scores}
        if outside is not None:
            totals[ProtectionMonitor.name] = outside
        histories[present[at]].windowed.note(Totals(labels, first, last, totals))
        ended[present[at]] = None
    return [*ended]


def _columns(scored: ScoredRows, times: Integers) -> tuple[Any, ...]:
    """Return the columns that the core reads."""
    views: Any = scored.forecasts
    raw = views.get("raw")
    given = (
        scored.labels,
        views["calibrated"].probabilities,
        None if raw is None else raw.probabilities,
        scored.widths,
        None if scored.outside is None else scored.outside.view(np.uint8),
        times,
    )
    return tuple(None if one is None else np.ascontiguousarray(one) for one in given)
