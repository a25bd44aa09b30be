"""The pending store of a stream: a specification of the native core.

The store joins observations and labels. Events come in order of arrival and carry their own times.
Each model has a clock, see `abers.reference.clock`. An entry carries the clock of its model at
which it was stored, and expires when more than its span has passed since. A model that has more
entries of a kind than it may loses its oldest one. Only the bytes of the entries are limited for
all models together; beyond that the oldest of all is evicted. The class takes checked events;
`abers.stream.Processor` checks them.

If a label is assumed for observations whose own does not come, an observation that expires makes a
step that learns it, at its time and the span. It then waits once more as long, for a late label.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from abers.reference.clock import FOREVER, NO_CLOCK, Clock, Tick
from abers.reference.store_counts import Count
from abers.reference.stored_entry import StoredEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from abers.arrays import Bytes, Floats, Integers
    from abers.reference.clock import Row

    Numbers = NDArray[np.uint32]

__all__ = ["ASSUMED", "ASSUMES", "EARLY", "FINISHED", "LATE", "PENDING", "PendingStore", "Unknown"]

PENDING, EARLY, FINISHED = 0, 1, 2  # observations, labels before them, ids that are done
PREDICTS, LEARNS, ASSUMES, LATE = range(4)  # kinds of steps; a late label is not learned
ASSUMED = -1.0  # in the place of the bytes of features, which are learned
UNSTAMPED = FOREVER - 1  # the stored clock of an entry while the clock is unknown

Name: TypeAlias = "tuple[int, str]"  # model and id
Unknown: TypeAlias = "tuple[int, str, int, int, float]"
"""An unmatched label: row of the event that expired it, id, model, time, value."""


class PendingStore:
    """Pending observations, early labels, and finished ids."""

    def __init__(  # noqa: PLR0913, PLR0917 - the limits
        self,
        lateness: int,
        wait: int,
        memory: int,
        jump: int,
        max_pending: int,
        max_early: int,
        max_finished: int,
        max_bytes: int,
        assumed: float | None = None,
    ) -> None:
        """Set the limits: spans of time, numbers of entries of a model, and bytes of all entries.

        The label `assumed` is that of observations whose own does not come; None drops them.
        """
        self._lateness, self._wait, self._memory, self._jump = lateness, wait, memory, jump
        self._most = (max_pending, max_early, max_finished)
        self._max_bytes, self._assumed = max_bytes, assumed
        self._pending: OrderedDict[Name, StoredEntry] = OrderedDict()
        self._early: OrderedDict[Name, StoredEntry] = OrderedDict()
        self._finished: OrderedDict[Name, StoredEntry] = OrderedDict()
        self._stores = (self._pending, self._early, self._finished)
        # The names of each store and model, in the order of the store, which is that of `stored`.
        self._queues: tuple[dict[int, OrderedDict[Name, None]], ...] = ({}, {}, {})
        self._clocks: list[Clock] = []
        self._bytes = 0
        self.counts = [0] * len(Count)
        self._assumed_waiting = 0  # pending observations whose label was assumed
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
    ) -> tuple[int, list[str], list[Unknown], int]:
        """Process a batch of events: observations (kind 0) and labels (kind 1).

        `values` are the values of labels, and the bytes of the features of observations. Return
        the number of steps, which `steps` writes, the ids of those that assume a label, the
        unmatched labels, and the number of observations that were dropped, which `dropped` writes.
        """
        self._unknown: list[Unknown] = []
        self._assumed_ids: list[str] = []
        self._dropped: list[tuple[int, int, int]] = []
        self._late: list[int] = []
        self._steps: list[tuple[tuple[int, int, int, int, int, int], int, float]] = []
        columns = (column.tolist() for column in (kinds, models, keys, times, values))
        for row, (id_, kind, model, key, time, value) in enumerate(zip(ids, *columns, strict=True)):
            self._row = row
            name = (model, id_)
            self._tick(name, time)
            if kind:
                self._settle(name, time, value)
            else:
                self._observe(name, key, time, value)
            self._fit()
        return len(self._steps), self._assumed_ids, self._unknown, len(self._dropped)

    def steps(self, columns: Integers, kinds: Bytes, values: Floats) -> None:
        """Write the steps of the last batch.

        A step has the columns row, slot, key, time of the observation, time of the label and clock
        of the model, its kind, and the value of the label.
        """
        for i, (step, kind, value) in enumerate(self._steps):
            columns[:, i], kinds[i], values[i] = step, kind, value

    def dropped(self, rows: Integers, slots: Integers, keys: Integers) -> None:
        """Write row, slot and key of the observations that the last batch dropped."""
        for i, one in enumerate(self._dropped):
            rows[i], slots[i], keys[i] = one

    def late_delays(self) -> list[int]:
        """Return how long after its observation each late label of the last batch is."""
        return self._late

    def recycle(self) -> None:
        """Allow the slots of removed predictions to be used again."""
        self._free += self._left
        self._left = []

    # Clocks

    @property
    def clock(self) -> int | None:
        """The latest clock of all models, or None."""
        return max((one.time for one in self._clocks if one.time != NO_CLOCK), default=None)

    def clocks(self) -> list[Row]:
        """Return the clocks, by number of the model."""
        return [clock.row() for clock in self._clocks]

    def set_clocks(self, clocks: Sequence[Row]) -> None:
        """Replace the clocks."""
        self._clocks = [Clock(*clock[:5], [*clock[5]]) for clock in clocks]

    def restart(self, model: int) -> None:
        """Reset the clock of a model; its entries count as stored when the new clock starts."""
        self._clocks[model] = Clock()
        self._stamp_all(model, UNSTAMPED)

    def _tick(self, name: Name, time: int) -> None:
        """Advance the clock of a model by an event, and count the event if it is ahead or late."""
        model = name[0]
        while model >= len(self._clocks):
            self._clocks.append(Clock())
        clock = self._clocks[model]
        tick = clock.tick(name[1], time, self._jump)
        if tick in {Tick.AHEAD, Tick.AGREED}:
            self.counts[Count.AHEAD_EVENTS] += 1
        if tick is Tick.AGREED:
            # The entries of the ids that agreed are stored at the clock that they set.
            for id_ in clock.settle(self._jump):
                self._stamp((model, id_), clock.time)
        if tick is Tick.BEGUN:
            self.counts[Count.AHEAD_EVENTS] += len(clock.candidates)
            self._stamp_all(model, clock.time)
        if tick in {Tick.MOVES, Tick.AGREED}:
            self._expire(model, clock)
        if time < clock.time - self._lateness:
            self.counts[Count.LATE_EVENTS] += 1

    def _stamp(self, name: Name, stored: int) -> None:
        """Set the stored clock of the entries of an id, and move them behind all others."""
        for store, queues in zip(self._stores, self._queues, strict=True):
            if name in store:
                store[name] = store[name]._replace(stored=stored)
                store.move_to_end(name)
                queues[name[0]].move_to_end(name)

    def _stamp_all(self, model: int, stored: int) -> None:
        for store, queues in zip(self._stores, self._queues, strict=True):
            for name in queues.get(model, ()):
                store[name] = store[name]._replace(stored=stored)

    # Entries

    def _expire(self, model: int, clock: Clock) -> None:
        now = clock.time - self._lateness
        while name := self._over(PENDING, model, self._wait, now):
            if self._assumed is not None and self._pending[name].value != ASSUMED:
                self._assume(name, self._assumed)
            else:
                self._drop_pending(name, Count.EXPIRED)
        while name := self._over(EARLY, model, self._wait, now):
            self._drop_early(name)
        while name := self._over(FINISHED, model, self._memory, now):
            self._take(FINISHED, name)

    def _over(self, store: int, model: int, span: int, now: int) -> Name | None:
        """Return the oldest entry of a model if its span is over."""
        name = next(iter(self._queues[store].get(model, ())), None)
        return name if name and self._stores[store][name].stored + span < now else None

    def _observe(self, name: Name, key: int, time: int, size: float) -> None:
        if name in self._pending or name in self._finished:
            self.counts[Count.DUPLICATE_OBSERVATIONS] += 1
            return
        slot = self._slot()
        self._add(PENDING, name, StoredEntry(slot, key, time, self._now(name), size))
        self.counts[Count.PREDICTIONS] += 1
        self._step(name, PREDICTS, 0, 0.0)
        if name in self._early:
            label = self._take(EARLY, name)
            self._pair(name, label.time, label.value)
        if oldest := self._surplus(PENDING, name[0]):
            self._drop_pending(oldest, Count.EVICTED)

    def _assume(self, name: Name, value: float) -> None:
        """Learn the assumed label of a pending observation, which then waits for a late one."""
        entry = self._pending[name]
        self.counts[Count.ASSUMED] += 1
        self._assumed_waiting += 1
        self._step(name, ASSUMES, entry.time + self._wait, value)
        self._assumed_ids.append(name[1])
        self._bytes -= int(entry.value)
        self._pending[name] = entry._replace(value=ASSUMED)
        self._stamp(name, self._now(name))

    def _settle(self, name: Name, time: int, value: float) -> None:
        """Pair a label with its observation, store it as early, or count a late or second one."""
        if name in self._pending:
            self._pair(name, time, value)
        elif name in self._finished:
            if self._finished[name].key:
                self.counts[Count.DUPLICATE_LABELS] += 1
            else:
                self._count_late(time - self._finished[name].time)
        elif name in self._early:
            self.counts[Count.DUPLICATE_LABELS] += 1
        else:
            self._add(EARLY, name, StoredEntry(0, 0, time, self._now(name), value))
            self.counts[Count.EARLY_LABELS] += 1
            if oldest := self._surplus(EARLY, name[0]):
                self._evict_early(oldest)

    def _pair(self, name: Name, label_time: int, value: float) -> None:
        """Learn the label of a pending observation, unless one was assumed."""
        late = self._pending[name].value == ASSUMED
        if late:
            self._count_late(label_time - self._pending[name].time)
        else:
            self.counts[Count.LABELS] += 1
        self._step(name, LATE if late else LEARNS, label_time, value)
        self._finish(name, labelled=True)

    def _step(self, name: Name, kind: int, label_time: int, value: float) -> None:
        """Append a step of a pending observation, with the clock of its model."""
        clock, (slot, key, time, *_) = self._clocks[name[0]], self._pending[name]
        now = clock.time if clock.known else NO_CLOCK
        self._steps.append(((self._row, slot, key, time, label_time, now), kind, value))

    def _drop_pending(self, name: Name, reason: Count) -> None:
        """Finish an observation without a label, unless that was assumed."""
        entry = self._pending[name]
        if entry.value != ASSUMED:
            self.counts[reason] += 1
            self._dropped.append((self._row, entry.slot, entry.key))
        self._finish(name, labelled=False)

    def _count_late(self, delay: int) -> None:
        self.counts[Count.LATE_LABELS] += 1
        self._late.append(delay)

    def _evict_early(self, name: Name) -> None:
        self.counts[Count.EVICTED_LABELS] += 1
        self._drop_early(name)

    def _drop_early(self, name: Name) -> None:
        label = self._take(EARLY, name)
        self.counts[Count.UNKNOWN_LABELS] += 1
        self._unknown.append((self._row, name[1], name[0], label.time, label.value))

    def _finish(self, name: Name, *, labelled: bool) -> None:
        entry = self._take(PENDING, name)
        self._assumed_waiting -= entry.value == ASSUMED
        self._left.append(entry.slot)
        finished = StoredEntry(0, int(labelled), entry.time, self._now(name), 0.0)
        self._add(FINISHED, name, finished)
        if oldest := self._surplus(FINISHED, name[0]):
            self._forget(oldest)

    def _forget(self, name: Name) -> None:
        self._take(FINISHED, name)
        self.counts[Count.FORGOTTEN] += 1

    def _surplus(self, store: int, model: int) -> Name | None:
        """Return the oldest entry of a model if the model has more than it may."""
        names = self._queues[store].get(model, ())
        return next(iter(names)) if len(names) > self._most[store] else None

    def _fit(self) -> None:
        """Evict the oldest entries of all until the bytes fit: finished ids first."""
        while self._bytes > self._max_bytes:
            if self._finished:
                self._forget(next(iter(self._finished)))
            elif self._early:
                self._evict_early(next(iter(self._early)))
            else:
                self._drop_pending(next(iter(self._pending)), Count.EVICTED)

    def _add(self, store: int, name: Name, entry: StoredEntry) -> None:
        self._stores[store][name] = entry
        self._queues[store].setdefault(name[0], OrderedDict())[name] = None
        self._bytes += entry.size(store, name[1])

    def _take(self, store: int, name: Name) -> StoredEntry:
        entry = self._stores[store].pop(name)
        del self._queues[store][name[0]][name]
        self._bytes -= entry.size(store, name[1])
        return entry

    def _now(self, name: Name) -> int:
        time = self._clocks[name[0]].time
        return UNSTAMPED if time == NO_CLOCK else time

    def _slot(self) -> int:
        if self._free:
            return self._free.pop()
        self._capacity += 1
        return self._capacity - 1

    # Saved state; arrays are filled in place

    def capacity(self) -> int:
        """Return the number of slots, with slot 0, which is never used."""
        return self._capacity

    def count(self, store: int) -> int:
        """Return the number of entries of a store."""
        return len(self._stores[store])

    def undecided(self) -> int:
        """Return the number of pending observations for which no label was assumed."""
        return len(self._pending) - self._assumed_waiting

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
        """Write as many entries of a store as the columns hold, oldest first.

        They start after the position `behind`; 0 is before the first entry. Return their ids, and
        the position of the last, an opaque number for the next call.
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
        """Load the columns of `entries` into an empty store; the slots are 1, 2, ..."""
        columns = (column.tolist() for column in (models, keys, times, stored, values))
        first = len(self._stores[store]) + 1
        for slot, (id_, model, *rest) in enumerate(zip(ids, *columns, strict=True), start=first):
            if (model, id_) in self._stores[store]:
                msg = "an id is there twice"
                raise ValueError(msg)
            self._add(store, (model, id_), StoredEntry(slot, *rest))
        if store == PENDING:
            self._assumed_waiting += int((values == ASSUMED).sum())
            self._capacity = len(self._pending) + 1
