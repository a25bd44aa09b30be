"""Reference period of a stream: its predictions, scored as those of the whole stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.monitoring import event_time, is_date
from abers.monitoring.answers import main_level
from abers.pages.model_findings import ReferenceShares
from abers.stream import make_task
from abers.stream.key_groups import by_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from abers.arrays import Floats
    from abers.monitoring import ScoredRows, TaskMonitor
    from abers.stream import Processor, SettledBatch
    from abers_connectors.dashboard.models import Key
    from abers_connectors.replay.options import Period

__all__ = ["Reference", "ReferencePeriod"]

_MODELS = 100  # that have a reference


class Reference(NamedTuple):
    """Predictions of a period, named by its dates, and what they promised."""

    name: str
    monitor: TaskMonitor
    shares: ReferenceShares


class ReferencePeriod:
    """Monitors of the predictions of observations in a period, by model and segment."""

    def __init__(self, period: Period) -> None:
        self._period = period
        self._monitors: dict[Key, TaskMonitor] = {}
        self._sums: dict[Key, dict[str, Floats]] = {}

    def take(self, processor: Processor, batch: SettledBatch) -> None:
        """Add the settled predictions of a batch that are in the period."""
        first, end = self._period
        inside = batch.take(np.flatnonzero((batch.times >= first) & (batch.times < end)))
        for number, rows in by_key(inside.keys):
            key = processor.keys[number]
            if key not in self._monitors and len(self._monitors) < _MODELS:
                self._monitors[key] = make_task(processor.settings).monitor()
            if key in self._monitors:
                scored = inside.scored.take(rows)
                self._monitors[key].update(scored)
                self._add(key, scored)

    def _add(self, key: Key, scored: ScoredRows) -> None:
        """Add what predictions promised, and what came of it."""
        sums = self._sums.setdefault(key, {})
        for view, promised, came in _promises(scored):
            sums[view] = sums.get(view, np.zeros(2)) + np.array((promised, came))

    def of(self, keys: Collection[Key]) -> Reference | None:
        """Return the reference of some models together; None if no label of theirs is in it."""
        known = [key for key in keys if key in self._monitors]
        if not known:
            return None
        some = [self._monitors[key] for key in known]
        total = type(some[0]).total(some)
        return Reference(self._name(), total, self._shares(known, total.count))

    def _shares(self, keys: Sequence[Key], labels: int) -> ReferenceShares:
        """Return what was promised and came for some models together."""
        views = [*self._sums[keys[0]]]
        sums = {view: np.sum([self._sums[key][view] for key in keys], axis=0) for view in views}
        promised, came = (
            {view: float(one[at]) / labels for view, one in sums.items()} for at in (0, 1)
        )
        return ReferenceShares(*self._period, labels, promised, came)

    def _name(self) -> str:
        first, end = self._period
        if not is_date(first):
            return f"{first:,} to {end:,}"
        return f"{_date(first)} to {_date(end)}"


def _promises(scored: ScoredRows) -> Iterator[tuple[str, float, float]]:
    """Yield of each view the sum of what was promised, and how often it came."""
    for view, one in scored.forecasts.items():
        yield view, float(one.probabilities.sum()), float(one.true.sum())
    level = main_level([*scored.covered])
    if level is not None:
        inside = scored.covered[level]
        yield "calibrated", level * len(inside), float(inside.sum())


def _date(time: int) -> str:
    """Return a date, with the time of day unless that is midnight."""
    return event_time(time).removesuffix(" UTC").removesuffix(" 00:00:00")
