"""Reference period of a stream: its predictions, scored as those of the whole stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.monitoring import event_time, is_date
from abers.stream import make_task
from abers.stream.key_groups import by_key

if TYPE_CHECKING:
    from collections.abc import Collection

    from abers.monitoring import TaskMonitor
    from abers.stream import Processor, SettledBatch
    from abers_connectors.dashboard.models import Key
    from abers_connectors.replay.options import Period

__all__ = ["Reference", "ReferencePeriod"]

_MODELS = 100  # that have a reference


class Reference(NamedTuple):
    """Predictions of a period, named by its dates."""

    name: str
    monitor: TaskMonitor


class ReferencePeriod:
    """Monitors of the predictions of observations in a period, by model and segment."""

    def __init__(self, period: Period) -> None:
        self._period = period
        self._monitors: dict[Key, TaskMonitor] = {}

    def take(self, processor: Processor, batch: SettledBatch) -> None:
        """Add the settled predictions of a batch that are in the period."""
        first, end = self._period
        inside = batch.take(np.flatnonzero((batch.times >= first) & (batch.times < end)))
        for number, rows in by_key(inside.keys):
            key = processor.keys[number]
            if key not in self._monitors and len(self._monitors) < _MODELS:
                self._monitors[key] = make_task(processor.settings).monitor()
            if key in self._monitors:
                self._monitors[key].update(inside.scored.take(rows))

    def of(self, keys: Collection[Key]) -> Reference | None:
        """Return the reference of some models together; None if no label of theirs is in it."""
        some = [self._monitors[key] for key in keys if key in self._monitors]
        return Reference(self._name(), type(some[0]).total(some)) if some else None

    def _name(self) -> str:
        first, end = self._period
        if not is_date(first):
            return f"{first:,} to {end:,}"
        return f"{_date(first)} to {_date(end)}"


def _date(time: int) -> str:
    """Return a date, with the time of day unless that is midnight."""
    return event_time(time).removesuffix(" UTC").removesuffix(" 00:00:00")
