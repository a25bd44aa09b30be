"""The ledger of a stream in plain Python: the executable specification of the native one.

Governing rule: events come in order of arrival, and time is their own. Each
model has a clock, see `abers._clocks`. An entry carries the clock of its model at which it was
stored, and goes when more than its span has passed since; the oldest of all
models goes when there is no room. The class takes checked events; the checking
is done by `abers.stream.Processor`.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from abers._clocks import FOREVER, NO_CLOCK, Clock, Tick

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from abers._clocks import Row

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Numbers = NDArray[np.uint32]
    Bytes = NDArray[np.uint8]

__all__ = ["EARLY", "EXPIRED", "FINISHED", "PENDING", "UNKNOWN_LABELS", "Ledger", "Unknown"]

PENDING, EARLY, FINISHED = 0, 1, 2  # the stores
UNSTAMPED = FOREVER - 1  # when an entry came whose clock began anew
(
    EARLY_LABELS,
    DUPLICATE_OBSERVATIONS,
    DUPLICATE_LABELS,
    LATE_LABELS,
    LATE_EVENTS,
    AHEAD_EVENTS,
    EXPIRED,
    EVICTED,
    UNKNOWN_LABELS,
    FORGOTTEN,
) = range(10)  # the counts

Name: TypeAlias = "tuple[int, str]"  # model and id
Unknown: TypeAlias = "tuple[int, str, int, int, float]"
"""An unmatched label: row of the event that ended the wait, id, model, time, value."""


class _Entry(NamedTuple):
    slot: int  # of a prediction: no two that wait, or left since `recycle`, share one
    key: int
    time: int
    stored: int
    value: float  # of an early label its value, of an observation the bytes of its features


class Ledger:
    """What waits for a label, what waits for an observation, and what is done with."""

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
    ) -> None:
        """Let entries go by these spans of time, numbers, and bytes of ids and features."""
        self._lateness, self._wait, self._memory, self._jump = lateness, wait, memory, jump
        self._most = (max_pending, max_early, max_finished)
        self._max_bytes = max_bytes
        self._stores: tuple[OrderedDict[Name, _Entry], ...] = (
            OrderedDict(),
            OrderedDict(),
            OrderedDict(),
        )
        self._pending, self._early, self._finished = self._stores
        # The names of each store and model, in the order in which the store has them, which is
        # that of `stored`.
        self._lines: tuple[dict[int, OrderedDict[Name, None]], ...] = ({}, {}, {})
        self._clocks: list[Clock] = []
        self._bytes = 0
        self.counts = [0] * 10
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

        `values` are the values of labels, and the bytes of features of observations. Return the
        number of steps written, the unknown labels, and how many observations were dropped,
        which `dropped` writes out.

        A step has the columns row, slot, key, time of the observation, time of the label and
        clock of the model in `steps`, whether it learns in `learns`, and what in `learned`.
        """
        self._unknown: list[Unknown] = []
        self._dropped: list[tuple[int, int, int]] = []
        self._steps: list[tuple[tuple[int, int, int, int, int, int], bool, float]] = []
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
        for i, (step, learning, value) in enumerate(self._steps):
            steps[:, i], learns[i], learned[i] = step, learning, value
        return len(self._steps), self._unknown, len(self._dropped)

    def dropped(self, rows: Integers, slots: Integers, keys: Integers) -> None:
        """Write out row, slot and key of the observations that the last batch dropped."""
        for i, one in enumerate(self._dropped):
            rows[i], slots[i], keys[i] = one

    def recycle(self) -> None:
        """Let the slots that were left be used again."""
        self._free += self._left
        self._left = []

    # Clocks

    @property
    def clock(self) -> int | None:
        """The latest clock of all models; None if there is none."""
        return max((one.time for one in self._clocks if one.time != NO_CLOCK), default=None)

    def clocks(self) -> list[Row]:
        """List the clocks, by number of the model."""
        return [clock.row() for clock in self._clocks]

    def set_clocks(self, clocks: Sequence[Row]) -> None:
        """Have these clocks instead."""
        self._clocks = [Clock(*clock) for clock in clocks]

    def restart(self, model: int) -> None:
        """Begin anew with the clock of a model; what waits then waits as if it came by then."""
        self._clocks[model] = Clock()
        self._stamp_all(model, UNSTAMPED)

    def _tick(self, name: Name, time: int) -> None:
        model = name[0]
        while model >= len(self._clocks):
            self._clocks.append(Clock())
        clock = self._clocks[model]
        tick = clock.tick(name[1], time, self._jump)
        if tick in {Tick.AHEAD, Tick.AGREED}:
            self.counts[AHEAD_EVENTS] += 1
        if tick is Tick.AGREED:
            # The events that agreed came at the clock that they made.
            for id_ in clock.settle(self._jump):
                self._stamp((model, id_), clock.time)
        if tick is Tick.BEGUN:
            self.counts[AHEAD_EVENTS] += len(clock.candidates)
            self._stamp_all(model, clock.time)
        if tick in {Tick.MOVES, Tick.AGREED}:
            self._expire(model, clock)
        if time < clock.time - self._lateness:
            self.counts[LATE_EVENTS] += 1

    def _stamp(self, name: Name, stored: int) -> None:
        """Set when the entries of an id came: then, and after all others."""
        for store, lines in zip(self._stores, self._lines, strict=True):
            if name in store:
                store[name] = store[name]._replace(stored=stored)
                store.move_to_end(name)
                lines[name[0]].move_to_end(name)

    def _stamp_all(self, model: int, stored: int) -> None:
        for store, lines in zip(self._stores, self._lines, strict=True):
            for name in lines.get(model, ()):
                store[name] = store[name]._replace(stored=stored)

    # What waits, and what is done with

    def _expire(self, model: int, clock: Clock) -> None:
        now = clock.time - self._lateness
        while name := self._over(PENDING, model, self._wait, now):
            self._drop_pending(name, EXPIRED)
        while name := self._over(EARLY, model, self._wait, now):
            self._drop_early(name)
        while name := self._over(FINISHED, model, self._memory, now):
            self._take(FINISHED, name)

    def _over(self, store: int, model: int, span: int, now: int) -> Name | None:
        """Give the oldest entry of a model if its span is over."""
        name = next(iter(self._lines[store].get(model, ())), None)
        return name if name and self._stores[store][name].stored + span < now else None

    def _observe(self, name: Name, key: int, time: int, size: float) -> None:
        if name in self._pending or name in self._finished:
            self.counts[DUPLICATE_OBSERVATIONS] += 1
            return
        slot = self._slot()
        self._add(PENDING, name, _Entry(slot, key, time, self._now(name), size))
        self._step(name, slot, key, time, 0, learns=False, value=0.0)
        if name in self._early:
            label = self._take(EARLY, name)
            self._pair(name, label.time, label.value)
        if len(self._pending) > self._most[PENDING]:
            self._drop_pending(next(iter(self._pending)), EVICTED)

    def _settle(self, name: Name, time: int, value: float) -> None:
        if name in self._pending:
            self._pair(name, time, value)
        elif name in self._finished:
            labelled = self._finished[name].key
            self.counts[DUPLICATE_LABELS if labelled else LATE_LABELS] += 1
        elif name in self._early:
            self.counts[DUPLICATE_LABELS] += 1
        else:
            self._add(EARLY, name, _Entry(0, 0, time, self._now(name), value))
            self.counts[EARLY_LABELS] += 1
            if len(self._early) > self._most[EARLY]:
                self._drop_early(next(iter(self._early)))

    def _pair(self, name: Name, label_time: int, value: float) -> None:
        """Learn a label whose observation waits for it."""
        entry = self._pending[name]
        self._step(name, entry.slot, entry.key, entry.time, label_time, learns=True, value=value)
        self._finish(name, labelled=True)

    def _step(  # noqa: PLR0913 - a column each
        self,
        name: Name,
        slot: int,
        key: int,
        time: int,
        label_time: int,
        *,
        learns: bool,
        value: float,
    ) -> None:
        clock = self._clocks[name[0]]
        now = clock.time if clock.known else NO_CLOCK
        self._steps.append(((self._row, slot, key, time, label_time, now), learns, value))

    def _drop_pending(self, name: Name, reason: int) -> None:
        entry = self._pending[name]
        self.counts[reason] += 1
        self._dropped.append((self._row, entry.slot, entry.key))
        self._finish(name, labelled=False)

    def _drop_early(self, name: Name) -> None:
        label = self._take(EARLY, name)
        self.counts[UNKNOWN_LABELS] += 1
        self._unknown.append((self._row, name[1], name[0], label.time, label.value))

    def _finish(self, name: Name, *, labelled: bool) -> None:
        entry = self._take(PENDING, name)
        self._left.append(entry.slot)
        self._add(FINISHED, name, _Entry(0, int(labelled), 0, self._now(name), 0.0))
        if len(self._finished) > self._most[FINISHED]:
            self._forget()

    def _forget(self) -> None:
        self._take(FINISHED, next(iter(self._finished)))
        self.counts[FORGOTTEN] += 1

    def _fit(self) -> None:
        """Make room for the bytes of what waits: finished ids go first, observations last."""
        while self._bytes > self._max_bytes:
            if self._finished:
                self._forget()
            elif self._early:
                self._drop_early(next(iter(self._early)))
            else:
                self._drop_pending(next(iter(self._pending)), EVICTED)

    def _add(self, store: int, name: Name, entry: _Entry) -> None:
        self._stores[store][name] = entry
        self._lines[store].setdefault(name[0], OrderedDict())[name] = None
        self._bytes += _size(store, name, entry)

    def _take(self, store: int, name: Name) -> _Entry:
        entry = self._stores[store].pop(name)
        del self._lines[store][name[0]][name]
        self._bytes -= _size(store, name, entry)
        return entry

    def _now(self, name: Name) -> int:
        time = self._clocks[name[0]].time
        return UNSTAMPED if time == NO_CLOCK else time

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
            self._add(store, (model, id_), _Entry(slot, *rest))
        if store == PENDING:
            self._capacity = len(self._pending) + 1


def _size(store: int, name: Name, entry: _Entry) -> int:
    """Count the bytes of the id of an entry, and of its features."""
    return len(name[1].encode()) + (int(entry.value) if store == PENDING else 0)
