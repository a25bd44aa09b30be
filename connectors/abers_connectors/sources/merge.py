"""Several inputs merged into one stream by event time.

The order of events is: largest event time of their input so far, labels before observations, input,
position in the input. Events before the smallest clock of the inputs that are not at their end are
complete, so they are delivered; what is delivered of an input is always its beginning.

Many inputs merged by event time; few are open at once. The least event time of each input is known
before it is opened. An input is opened when the merge reaches that time, and closed at its end, so
memory depends on how many overlap in time.

Labels that name no model, each for every model that has an observation of its id. The observations
are read once more, before the first label, for their ids and models alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.exceptions import RecordError
from abers.stream import Events
from abers.stream.cells import objects
from abers.stream.columns import time_order
from abers_connectors.sources.base import Batch, resume_point
from abers_connectors.sources.ordered import unordered
from abers_connectors.sources.time_range import narrowed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from abers_connectors.sources.base import BadRecord, Origin, Position, Source
    from abers_connectors.sources.time_range import Part

    Times = npt.NDArray[np.int64]

__all__ = ["MAX_OPEN", "MergedSource", "TimedSource", "labels_by_id", "lazily_merged", "merged"]

_BEFORE_ALL = -(2**63)
AFTER_ALL = 2**63 - 1
_START: Position = {"at": None, "known": None, "clock": _BEFORE_ALL, "events": 0, "bad": 0}


class MergedSource:
    """Inputs merged by event time.

    An event that is behind an earlier event of its input comes right behind it. A batch or two of
    each input is in memory, and more only where an input has very many events of the same
    time: their order is known after the last of them.

    If the first input is `growing`, nothing beyond its clock is delivered at its end: it waits for
    the events that follow there when the stream is resumed.
    """

    def __init__(self, sources: Sequence[Source], *, growing: bool = False) -> None:
        self.name = " and ".join(source.name for source in sources)
        self.sources, self._growing = sources, growing
        self.waits = False  # whether the last end was before events that wait for what follows

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the merged batches after a position."""
        starts = (position or {}).get("inputs") or [None] * len(self.sources)
        inputs = [
            MergeInput(source, start) for source, start in zip(self.sources, starts, strict=True)
        ]
        first = inputs[0]
        while any(one.goes_on for one in inputs):
            min((one for one in inputs if one.goes_on), key=lambda one: one.clock).load()
            end = first.clock + 1 if self._growing and not first.goes_on else AFTER_ALL
            horizon = min((one.clock for one in inputs if one.goes_on), default=AFTER_ALL)
            horizon = min(horizon, end)
            taken = [one.take(horizon) for one in inputs]
            if any(one.size or one.bad or one.unlabelled for one in taken):
                yield merged(taken, {"inputs": [one.position() for one in inputs]})
            if horizon == end:
                self.waits = any(one.goes_on or one.holds for one in inputs)
                return

    def first(self) -> Batch | None:
        """Return the first batch of the first input, as it is read, or None."""
        return next(unordered(self.sources[0]).batches(), None)

    def within(self, part: Part) -> MergedSource:
        """Return the same of inputs that do not read what they know to be outside a part."""
        return self.of([narrowed(one, part) for one in self.sources])

    def of(self, sources: Sequence[Source]) -> MergedSource:
        """Return the same of other inputs."""
        return MergedSource(sources, growing=self._growing)

    def fraction(self) -> float | None:
        """Return the mean of the shares of the inputs; None if one is unknown."""
        shares = [source.fraction() for source in self.sources]
        known = [share for share in shares if share is not None]
        return sum(known) / len(shares) if len(known) == len(shares) else None


@dataclass(slots=True)
class _PendingBatch:
    """A batch, and how many of its events and bad records are delivered."""

    batch: Batch
    times: Times
    at: Position | None
    clock: int
    events: int
    bad: int


@dataclass(slots=True)
class _Delivery:
    """Events and bad records that one input delivers; a row of `bad` counts these events."""

    events: list[Events] = field(default_factory=list)
    size: int = 0
    times: list[Times] = field(default_factory=list)
    bad: list[BadRecord] = field(default_factory=list)
    pieces: list[tuple[int, int, Batch]] = field(default_factory=list)
    unlabelled: int = 0  # records of labels without one, which count when their batch is delivered

    def add(self, held: _PendingBatch, stop: int) -> None:
        """Add the events of a batch up to a row, and the bad records among them."""
        self.pieces.append((self.size, held.events, held.batch))
        shift = self.size - held.events
        bad = [one for one in held.batch.bad[held.bad :] if one.row <= stop]
        self.bad += [one._replace(row=one.row + shift) for one in bad]
        self.events.append(held.batch.events[held.events : stop])
        self.size += stop - held.events
        self.times.append(held.times[held.events : stop])
        held.events, held.bad = stop, held.bad + len(bad)

    def origin(self, row: int) -> Origin:
        """Return the origin of an event."""
        piece = bisect_right(self.pieces, row, key=lambda piece: piece[0]) - 1
        first, start, batch = self.pieces[piece]
        return batch.origin(row - first + start)


class MergeInput:
    """An input, and what was read of it but is not delivered."""

    def __init__(self, source: Source, start: dict[str, Any] | None = None) -> None:
        start = _START | (start or {})
        self._source = source
        self._at, self.clock = start["at"], start["clock"]
        self._events, self._bad = start["events"], start["bad"]  # which are delivered already
        self._batches = source.batches(resume_point(self._at, start["known"]))
        self._held: deque[_PendingBatch] = deque()
        self.goes_on = True

    @property
    def holds(self) -> bool:
        """Whether something of it is not delivered."""
        return bool(self._held)

    def load(self) -> None:
        """Read one more batch."""
        batch = next(self._batches, None)
        if batch is None:
            self.goes_on = False
            return
        times, clock = self._times(batch), self.clock
        events, bad = min(self._events, len(times)), min(self._bad, len(batch.bad))
        self._held.append(_PendingBatch(batch, times, self._at, clock, events, bad))
        self._events, self._bad = self._events - events, self._bad - bad
        self._at, self.clock = batch.position, int(times[-1]) if len(times) else clock

    def take(self, horizon: int) -> _Delivery:
        """Deliver the events before a time, and the bad records that come before the next."""
        taken = _Delivery()
        while self._held:
            held = self._held[0]
            # What an earlier run delivered stays delivered, though less may be complete now.
            stop = max(held.events, int(np.searchsorted(held.times, horizon)))
            taken.add(held, stop)
            if stop < len(held.times):
                break
            taken.unlabelled += self._held.popleft().batch.unlabelled
        return taken

    def position(self) -> dict[str, Any]:
        """Return where to continue: after a position of the source, and so many events more."""
        if not self._held:
            at, known, clock, events, bad = self._at, None, self.clock, self._events, self._bad
        else:
            first = self._held[0]
            at, known, clock = first.at, first.batch.position, first.clock
            events, bad = first.events, first.bad
        return {"at": at, "known": known, "clock": clock, "events": events, "bad": bad}

    def _times(self, batch: Batch) -> Times:
        """Return the largest time so far at each event."""
        times = batch.events.times.astype(np.int64, copy=False)
        largest: Times = np.maximum(np.maximum.accumulate(times), self.clock)
        return largest


def merged(inputs: Sequence[_Delivery], position: Position) -> Batch:
    """Merge deliveries into one batch by time, with labels first at equal times."""
    events = Events.joined([part for one in inputs for part in one.events])
    times = np.concatenate([part for one in inputs for part in one.times])
    order = time_order(times, events.labels)  # then by input, and by position in it
    firsts = [0, *accumulate(one.size for one in inputs)]
    rank = np.argsort(order)

    def merged_row(number: int, row: int) -> int:
        """Return the number of merged events before a bad record."""
        return int(rank[firsts[number] + row - 1]) + 1 if row else 0

    def origin(row: int) -> Origin:
        index = int(order[row])
        number = bisect_right(firsts, index) - 1
        return inputs[number].origin(index - firsts[number])

    bad = [
        one._replace(row=merged_row(n, one.row))
        for n, taken in enumerate(inputs)
        for one in taken.bad
    ]
    bad.sort(key=lambda one: one.row)
    unlabelled = sum(one.unlabelled for one in inputs)
    records = len(events) + len(bad) + unlabelled
    return Batch(events.take(order), bad, position, records, origin, unlabelled)


MAX_OPEN = 256
"""Inputs open at once, each with a page of every column and a batch of events."""


class TimedSource(NamedTuple):
    """A source, and a time that none of its events is before."""

    first: int
    source: Source


def lazily_merged(inputs: Sequence[TimedSource], name: str, remedy: str) -> Iterator[Batch]:
    """Yield the merged batches of inputs, with the position of none.

    Raises
    ------
    RecordError
        If too many inputs overlap in time. The message ends with the remedy.
    """
    waiting = deque(sorted(inputs, key=lambda one: one.first))
    active: list[MergeInput] = []
    while waiting or active:
        horizon = _load(active)
        while waiting and waiting[0].first <= horizon:
            if len(active) == MAX_OPEN:
                msg = f"{name}: more than {MAX_OPEN} files overlap in time, at "
                msg += f"{waiting[0].source.name}; {remedy}"
                raise RecordError(msg)
            active.append(MergeInput(waiting.popleft().source))
            active[-1].load()
            horizon = min((one.clock for one in active if one.goes_on), default=AFTER_ALL)
        taken = [one.take(horizon) for one in active]
        if any(one.size or one.bad or one.unlabelled for one in taken):
            yield merged(taken, {})
        active = [one for one in active if one.goes_on or one.holds]


def _load(active: Sequence[MergeInput]) -> int:
    """Read on in the input that is furthest behind; return the time before which all is read."""
    going = [one for one in active if one.goes_on]
    if going:
        min(going, key=lambda one: one.clock).load()
    return min((one.clock for one in going if one.goes_on), default=AFTER_ALL)


def labels_by_id(both: MergedSource) -> MergedSource:
    """Return observations and labels, the labels for the models of the observations."""
    observations, labels = both.sources
    return both.of([observations, LabelsById(labels, unordered(observations))])


class LabelsById:
    """The labels of a source, with the models of observations; all else stays as it is.

    A label of an id that no observation has keeps its own model, and meets none.
    """

    def __init__(self, labels: Source, observations: Source) -> None:
        self.name = labels.name
        self._labels, self._observations = labels, observations
        self._models: Mapping[str, Sequence[str]] | None = None

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position of the labels."""
        if self._models is None:
            self._models = _models(self._observations)
        for batch in self._labels.batches(position):
            yield _of_models(batch, self._models)

    def fraction(self) -> float | None:
        """Return the share of the labels that has been read."""
        return self._labels.fraction()


def _models(observations: Source) -> dict[str, tuple[str, ...]]:
    """Return the models of each id, in the order of their first observations."""
    found: dict[str, tuple[str, ...]] = {}
    for batch in observations.batches():
        events = batch.events
        for id_, model in zip(events.ids.tolist(), events.models.tolist(), strict=True):
            before = found.get(id_, ())
            if model not in before:
                found[id_] = (*before, model)
    return found


def _of_models(batch: Batch, models: Mapping[str, Sequence[str]]) -> Batch:
    """Return a batch with a row for each model of a label."""
    events = batch.events
    pairs = zip(events.ids.tolist(), events.models.tolist(), strict=True)
    of = [models.get(id_, (model,)) for id_, model in pairs]
    rows = np.repeat(np.arange(len(of)), [*map(len, of)])
    found = replace(events.take(rows), models=objects([one for names in of for one in names]))
    bad = [one._replace(row=int(np.searchsorted(rows, one.row))) for one in batch.bad]

    def origin(row: int) -> Origin:
        return batch.origin(int(rows[row]))

    return replace(batch, events=found, bad=bad, origin=origin)
