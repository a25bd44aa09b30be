"""Retirement of models without events for long, so that there can be new models.

A batch retires models only before it begins, and only if there are `max_models`. All of a retired
model is forgotten, as if it had never come. The clocks decide which models those are, and only
clocks of models with many events count, so junk does not decide what is late.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from abers.stream.joined_batch import Retired
from abers.stream.pending_store import ASSUMED, EARLY, NO_CLOCK, PENDING, QUORUM, Count
from abers.stream.saved_store import STORES, StoreColumns, parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.stream.events import DeadLetter
    from abers.stream.join import Join
    from abers.stream.settings import Settings
    from abers.stream.state import ProcessorState

__all__ = ["due", "retire"]

_MIN_CLOCK_EVENTS = 100  # events of a model before its clock counts


def due(join: Join, settings: Settings) -> list[int]:
    """Return the models without events for `retire_after`, if there are `max_models`."""
    after = settings.retire_after
    most = max(len(join.names.models), len(join.names.keys))
    if after is None or most < settings.max_models:
        return []
    clocks = join.store.clocks()
    often = [time for time, known, events, *_ in clocks if known and events >= _MIN_CLOCK_EVENTS]
    if not often:
        return []
    latest = sorted(often, reverse=True)[:QUORUM][-1]
    return [
        number
        for number, (time, *_) in enumerate(clocks)
        if time != NO_CLOCK and time + after < latest
    ]


def retire(state: ProcessorState, models: Sequence[int]) -> Retired:
    """Forget models, given by ascending numbers, between two batches; renumber the others."""
    if not models:
        return Retired([], [], [])
    join = state.join
    names = join.names.by_number
    stays = np.ones(len(names), bool)
    stays[[*models]] = False
    keys = np.flatnonzero([stays[join.names.models[model]] for model, _ in join.names.pairs])
    moved = _MovedStore(join, stays, keys)
    state.calibration.keep(keys, moved.slots)
    if join.learners is not None:
        join.learners.keep(moved.slots.tolist())
    join.retire(models, moved.store)
    return Retired([*models], [names[number] for number in models], moved.dead_letters)


class _MovedStore:
    """A copy of a pending store without some models, and the old slots of what waits."""

    def __init__(self, join: Join, stays: NDArray[np.bool_], keys: NDArray[np.int64]) -> None:
        self._join, self._stays = join, stays
        self._models = np.cumsum(stays, dtype=np.uint32) - 1
        self._keys = np.zeros(len(join.names.keys), np.uint32)
        self._keys[keys] = np.arange(len(keys))
        self.store, old = join.empty_store(), join.store
        self.dead_letters: list[tuple[int, DeadLetter]] = []
        self._dropped = 0  # observations that waited for their own label
        self.store.set_clocks([*compress(old.clocks(), stays.tolist())])
        counts = [*old.counts]
        slots = [self._move(kind) for kind in STORES]
        self.slots = slots[PENDING]
        counts[Count.EXPIRED] += self._dropped
        counts[Count.RETIRED_OBSERVATIONS] += self._dropped
        counts[Count.UNKNOWN_LABELS] += len(self.dead_letters)
        self.store.counts = counts

    def _move(self, kind: int) -> NDArray[np.int64]:
        """Move the entries that stay, and return their old slots."""
        columns = StoreColumns.empty(self._join.store.count(kind))
        slots = [np.empty(0, np.int64)]
        several = zip(
            parts(len(columns.slots)), columns.ids_of(self._join.store, kind), strict=True
        )
        for part, ids in several:
            some = columns.take(part)
            stay = self._stays[some.models]
            if kind == PENDING:
                self._dropped += int((~stay & (some.values != ASSUMED)).sum())
            if kind == EARLY:
                self._reject(ids, some, ~stay)
            kept = some.take(stay)
            keys = self._keys[kept.keys] if kind == PENDING else kept.keys
            renumbered = kept._replace(models=self._models[kept.models], keys=keys)
            renumbered.load(self.store, kind, [*compress(ids, stay.tolist())])
            slots.append(kept.slots)
        return np.concatenate(slots)

    def _reject(self, ids: Sequence[str], some: StoreColumns, gone: NDArray[np.bool_]) -> None:
        for row in np.flatnonzero(gone).tolist():
            label = (0, ids[row], some.models[row], int(some.times[row]), float(some.values[row]))
            self.dead_letters.append((0, self._join.unmatched(label)))
