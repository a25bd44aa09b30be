"""Models that are unseen for long, and give their places to others.

Governing rule: only where there is no room for another model, and only before a
batch, all that is known of a model is forgotten, as if it had never come. Which
models those are is a function of the clocks, and only the clocks of models that
came often count: junk does not say what is late, and does not hold it back.
"""

# ruff: noqa: SLF001 - this is one more half of the class Processor

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers._clocks import NO_CLOCK, QUORUM
from abers._ledger import EARLY, EXPIRED, FINISHED, PENDING, UNKNOWN_LABELS
from abers.stream.stored import Columns, parts, read_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.stream.columns import Events
    from abers.stream.deciding import Deciding
    from abers.stream.events import DeadLetter
    from abers.stream.processor import Processor
    from abers.stream.settings import Settings

__all__ = ["Retired", "begin", "retire"]

_OFTEN = 100  # events of a model that says what is late


class Retired(NamedTuple):
    """What was retired.

    Attributes
    ----------
    numbers, names
        Of the models, in the order of the numbers that they had.
    letters
        The labels of theirs that waited for observations.
    """

    numbers: Sequence[int]
    names: Sequence[str]
    letters: Sequence[DeadLetter]


def begin(processor: Processor, events: Events) -> Retired:
    """Retire the models whose time has come, before a batch."""
    due = _due(processor._deciding, processor.settings) if len(events) else []
    return retire(processor, due)


def _due(deciding: Deciding, settings: Settings) -> list[int]:
    """List the models that are unseen for longer than `retire_after`, if there is no room."""
    admission, after = deciding.admission, settings.retire_after
    most = max(len(admission.models), len(admission.keys))
    if after is None or most < settings.max_models:
        return []
    clocks = deciding.ledger.clocks()
    often = [time for time, known, events, *_ in clocks if known and events >= _OFTEN]
    if not often:
        return []
    latest = sorted(often, reverse=True)[:QUORUM][-1]
    return [
        number
        for number, (time, *_) in enumerate(clocks)
        if time != NO_CLOCK and time + after < latest
    ]


def retire(processor: Processor, models: Sequence[int]) -> Retired:
    """Forget models, and number the others anew.

    Parameters
    ----------
    processor
        Between two batches.
    models
        Their numbers, ascending.

    Returns
    -------
    Retired
        What was retired.
    """
    if not models:
        return Retired([], [], [])
    deciding, answering = processor._deciding, processor._answering
    admission, learning = deciding.admission, deciding.learning
    names = [*admission.models]
    stays = np.ones(len(names), bool)
    stays[[*models]] = False
    keys = np.flatnonzero([stays[admission.models[model]] for model, _ in admission.keys])
    moved = _Moved(deciding, stays, keys)
    answering.keep(keys, moved.slots)
    if learning is not None:
        learning.keep(moved.slots.tolist())
    deciding.retire(models, moved.ledger)
    return Retired([*models], [names[number] for number in models], moved.letters)


class _Moved:
    """A ledger without some models, and what became of the rest of the other one.

    Attributes
    ----------
    ledger
        The new one.
    slots
        Which the observations that wait had in the other one.
    letters
        The labels that no longer wait.
    """

    def __init__(
        self, deciding: Deciding, stays: NDArray[np.bool_], keys: NDArray[np.int64]
    ) -> None:
        self._deciding, self._stays = deciding, stays
        self._models = np.cumsum(stays, dtype=np.uint32) - 1
        self._keys = np.zeros(len(deciding.admission.keys), np.uint32)
        self._keys[keys] = np.arange(len(keys))
        self.ledger = deciding.new_ledger()
        self.letters: list[DeadLetter] = []
        clocks = deciding.ledger.clocks()
        self.ledger.set_clocks([*compress(clocks, stays.tolist())])
        counts = [*deciding.ledger.counts]
        slots = [self._move(store) for store in (PENDING, EARLY, FINISHED)]
        self.slots = slots[PENDING]
        counts[EXPIRED] += deciding.ledger.count(PENDING) - self.ledger.count(PENDING)
        counts[UNKNOWN_LABELS] += len(self.letters)
        self.ledger.counts = counts

    def _move(self, store: int) -> NDArray[np.int64]:
        """Load what stays of a store, and word the labels that do not; the slots they had."""
        ledger = self._deciding.ledger
        columns = Columns.of(ledger.count(store))
        several = zip(parts(len(columns.slots)), read_ids(ledger, store, columns), strict=True)
        slots = [np.empty(0, np.int64)]
        for part, ids in several:
            some = columns.some(part)
            stay = self._stays[some.models]
            if store == EARLY:
                self._word(ids, some, ~stay)
            kept = some.some(stay)
            keys = self._keys[kept.keys] if store == PENDING else kept.keys
            self.ledger.load(
                store,
                [*compress(ids, stay.tolist())],
                self._models[kept.models],
                keys,
                kept.times,
                kept.stored,
                kept.values,
            )
            slots.append(kept.slots)
        return np.concatenate(slots)

    def _word(self, ids: Sequence[str], some: Columns, gone: NDArray[np.bool_]) -> None:
        for row in np.flatnonzero(gone).tolist():
            label = (0, ids[row], some.models[row], int(some.times[row]), float(some.values[row]))
            self.letters.append(self._deciding.unknown(label))
