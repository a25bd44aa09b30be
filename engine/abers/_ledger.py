"""The ledger of a stream in plain Python: the executable specification of the native one.

Governing rule: events come in order of arrival, and time is their own. An entry
carries the clock at which it was stored, and goes when more than its span has
passed since; the oldest goes when there is no room. The class takes checked
events; the checking is done by `abers.stream.Processor`.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Numbers = NDArray[np.uint32]
    Bytes = NDArray[np.uint8]

__all__ = ["EARLY", "FINISHED", "PENDING", "Ledger", "Unknown"]

PENDING, EARLY, FINISHED = 0, 1, 2  # the stores
(
    EARLY_LABELS,
    DUPLICATE_OBSERVATIONS,
    DUPLICATE_LABELS,
    LATE_LABELS,
    LATE_EVENTS,
    EXPIRED,
    EVICTED,
    UNKNOWN_LABELS,
    FORGOTTEN,
) = range(9)  # the counts

Name: TypeAlias = "tuple[int, str]"  # model and id
Unknown: TypeAlias = "tuple[int, str, int, int, float]"
"""A label that waited in vain: row of the event that ended the wait, id, model, time, value."""


class _Entry(NamedTuple):
    slot: int  # of a prediction: no two that wait, or left since `recycle`, share one
    key: int
    time: int
    stored: int
    value: float


class Ledger:
    """What waits for a label, what waits for an observation, and what is done with."""

    def __init__(  # noqa: PLR0913, PLR0917 - the limits
        self,
        lateness: int,
        wait: int,
        memory: int,
        max_pending: int,
        max_early: int,
        max_finished: int,
    ) -> None:
        """Let entries go by these spans of time, and numbers."""
        self._lateness, self._wait, self._memory = lateness, wait, memory
        self._most = (max_pending, max_early, max_finished)
        self._stores: tuple[OrderedDict[Name, _Entry], ...] = (
            OrderedDict(),
            OrderedDict(),
            OrderedDict(),
        )
        self._pending, self._early, self._finished = self._stores
        self.clock: int | None = None
        self.counts = [0] * 9
        self._capacity = 1
        self._free: list[int] = []
        self._left: list[int] = []

    def take(  # noqa: PLR0913, PLR0917 - one array a column
        self,
        ids: list[str],
        kinds: Bytes,
        models: Numbers,
        keys: Numbers,
        times: Integers,
        values: Floats,
        steps: Integers,
        learns: Bytes,
        learned: Floats,
    ) -> tuple[int, list[Unknown], int]:
        """Take events (kind 0 observes, 1 labels).

        Gives the number of steps written, the unknown labels, and how many observations were
        dropped, which `dropped` writes out.

        A step has the columns row, slot, key, time of the observation and time of the label
        in `steps`, whether it learns in `learns`, and what in `learned`.
        """
        self._unknown: list[Unknown] = []
        self._dropped: list[tuple[int, int, int]] = []
        self._steps: list[tuple[tuple[int, int, int, int, int], bool, float]] = []
        columns = (column.tolist() for column in (kinds, models, keys, times, values))
        for row, (id_, kind, model, key, time, value) in enumerate(zip(ids, *columns, strict=True)):
            self._row = row
            self._tick(time)
            if kind:
                self._settle((model, id_), time, value)
            else:
                self._observe((model, id_), key, time)
        for i, step in enumerate(self._steps):
            steps[:, i], learns[i], learned[i] = step
        return len(self._steps), self._unknown, len(self._dropped)

    def dropped(self, rows: Integers, slots: Integers, keys: Integers) -> None:
        """Write out row, slot and key of the observations that the last batch dropped."""
        for i, one in enumerate(self._dropped):
            rows[i], slots[i], keys[i] = one

    def recycle(self) -> None:
        """Let the slots that were left be used again."""
        self._free += self._left
        self._left = []

    def _tick(self, time: int) -> None:
        if self.clock is None or time > self.clock:
            self.clock = time
            self._expire(time - self._lateness)
        elif time < self.clock - self._lateness:
            self.counts[LATE_EVENTS] += 1

    def _expire(self, now: int) -> None:
        while self._over(self._pending, self._wait, now):
            self._drop_pending(EXPIRED)
        while self._over(self._early, self._wait, now):
            self._drop_early()
        while self._over(self._finished, self._memory, now):
            self._finished.popitem(last=False)

    @staticmethod
    def _over(store: OrderedDict[Name, _Entry], span: int, now: int) -> bool:
        return bool(store) and next(iter(store.values())).stored + span < now

    def _observe(self, name: Name, key: int, time: int) -> None:
        if name in self._pending or name in self._finished:
            self.counts[DUPLICATE_OBSERVATIONS] += 1
            return
        slot = self._slot()
        self._pending[name] = _Entry(slot, key, time, self._now, 0.0)
        self._steps.append(((self._row, slot, key, time, 0), False, 0.0))
        if name in self._early:
            label = self._early.pop(name)
            self._pair(name, label.time, label.value)
        if len(self._pending) > self._most[PENDING]:
            self._drop_pending(EVICTED)

    def _settle(self, name: Name, time: int, value: float) -> None:
        if name in self._pending:
            self._pair(name, time, value)
        elif name in self._finished:
            labelled = self._finished[name].key
            self.counts[DUPLICATE_LABELS if labelled else LATE_LABELS] += 1
        elif name in self._early:
            self.counts[DUPLICATE_LABELS] += 1
        else:
            self._early[name] = _Entry(0, 0, time, self._now, value)
            self.counts[EARLY_LABELS] += 1
            if len(self._early) > self._most[EARLY]:
                self._drop_early()

    def _pair(self, name: Name, told: int, value: float) -> None:
        """Learn a label whose observation waits for it."""
        entry = self._pending.pop(name)
        step = (self._row, entry.slot, entry.key, entry.time, told)
        self._steps.append((step, True, value))
        self._finish(name, entry, labelled=True)

    def _drop_pending(self, reason: int) -> None:
        name, entry = self._pending.popitem(last=False)
        self.counts[reason] += 1
        self._dropped.append((self._row, entry.slot, entry.key))
        self._finish(name, entry, labelled=False)

    def _drop_early(self) -> None:
        (model, id_), label = self._early.popitem(last=False)
        self.counts[UNKNOWN_LABELS] += 1
        self._unknown.append((self._row, id_, model, label.time, label.value))

    def _finish(self, name: Name, entry: _Entry, *, labelled: bool) -> None:
        self._left.append(entry.slot)
        self._finished[name] = _Entry(0, int(labelled), 0, self._now, 0.0)
        if len(self._finished) > self._most[FINISHED]:
            self._finished.popitem(last=False)
            self.counts[FORGOTTEN] += 1

    @property
    def _now(self) -> int:
        return 0 if self.clock is None else self.clock

    def _slot(self) -> int:
        if self._free:
            return self._free.pop()
        self._capacity += 1
        return self._capacity - 1

    # The way in and out of saved state. Arrays are filled in place.

    def capacity(self) -> int:
        """Count the slots there are, slot 0 among them, which is never used."""
        return self._capacity

    def count(self, store: int) -> int:
        """Count the entries of a store."""
        return len(self._stores[store])

    def entries(  # noqa: PLR0913, PLR0917 - one array a column
        self,
        store: int,
        behind: int,
        slots: Integers,
        models: Numbers,
        keys: Numbers,
        times: Integers,
        stored: Integers,
        values: Floats,
    ) -> tuple[list[str], int]:
        """Write out as many entries of a store as the columns hold, oldest first.

        They begin behind a place, or with the first behind 0. Gives their ids, and the place of
        the last, which is a number that means something here alone.
        """
        end = behind + len(slots)
        if end > len(self._stores[store]):
            msg = "there are fewer entries"
            raise IndexError(msg)
        ids = []
        for i, ((model, id_), entry) in enumerate(islice(self._stores[store].items(), behind, end)):
            models[i] = model
            slots[i], keys[i], times[i], stored[i], values[i] = entry
            ids.append(id_)
        return ids, end

    def load(  # noqa: PLR0913, PLR0917 - one array a column
        self,
        store: int,
        ids: Sequence[str],
        models: Numbers,
        keys: Numbers,
        times: Integers,
        stored: Integers,
        values: Floats,
    ) -> None:
        """Add what `entries` gave to a store that was empty; the slots are 1, 2, ..."""
        columns = (column.tolist() for column in (models, keys, times, stored, values))
        first = len(self._stores[store]) + 1
        for slot, (id_, model, *rest) in enumerate(zip(ids, *columns, strict=True), start=first):
            if (model, id_) in self._stores[store]:
                msg = "an id is there twice"
                raise ValueError(msg)
            self._stores[store][model, id_] = _Entry(slot, *rest)
        if store == PENDING:
            self._capacity = len(self._pending) + 1
