"""A labelled stream replayed with delayed labels.

A label is released before the first observation that comes late enough. A position does not store
the pending labels: a resumed stream reads them again, from the oldest observation whose label is
pending.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from abers.exceptions import ParameterError
from abers.stream import Events
from abers.stream.event_order import observations_before
from abers_connectors.sources.base import Batch, Origin, resume_point
from abers_connectors.sources.time_range import TimeRange

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from abers.stream.columns import Column
    from abers_connectors.sources.base import BadRecord, Position, Source

__all__ = ["DelayedLabels"]

_TAIL = 5000  # labels of a batch after the last observation
_LONG_AGO = -(2**63)
_START: Position = {"at": None, "known": None, "events": 0, "bad": 0, "out": 0}


class DelayedLabels:
    """Observations, and the label of each after a delay.

    A label is released after `count` further observations, with the time of the last one; or `span`
    milliseconds of event time after its observation, with that time; or without either at its own
    time, which each record has. Labels that are pending at the end are released there. If the
    stream has grown when it is resumed, the others follow.
    """

    def __init__(
        self, source: Source, *, count: int | None = None, span: int | None = None
    ) -> None:
        if count is not None and span is not None:
            msg = f"count={count!r}, span={span!r}: give one of them, or none"
            raise ParameterError(msg)
        self.name = source.name
        self._source, self._count, self._span = source, count, span

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches of observations and labels after a position."""
        pending = _PendingLabels(self._count, self._span)
        start: Position = {**_START, "clock": pending.clock, **(position or {})}
        pending.clock = start["clock"]
        marks = _SourceMarks(start["at"], pending.clock)
        known = start.get("ahead", start)["known"]
        events, bad = start["events"], start["bad"]  # delivered before
        for batch in self._source.batches(resume_point(start["at"], known)):
            again, bad_again = min(events, len(batch.events)), min(bad, len(batch.bad))
            events, bad = events - again, bad - bad_again
            pending.add(batch.events[:again])
            if again and not events:
                pending.keep(start["out"])
            found = pending.add(batch.events[again:])
            marks.add(batch, pending.clock)
            if len(found) or len(batch.bad) > bad_again:
                end = marks.position(len(pending), pending.oldest())
                yield self._batch(found, batch, again, batch.bad[bad_again:], end)
        labels = pending.rest()
        for first in range(0, len(labels), _TAIL):
            piece = labels[first : first + _TAIL]
            after = first + len(piece)
            end = marks.position(len(labels) - after, pending.oldest(after))
            yield Batch(piece, (), end, 0, self._origin_of_label(piece))

    def part(
        self, since: int | None, until: int | None, models: Collection[str] = ()
    ) -> DelayedLabels:
        """Return the same for the observations in a range of time, or of some models."""
        part = TimeRange(self._source, since, until, models)
        return DelayedLabels(part, count=self._count, span=self._span)

    def fraction(self) -> float | None:
        """Return the share of the source that has been read."""
        return self._source.fraction()

    def _batch(
        self, found: Events, batch: Batch, again: int, bad: Sequence[BadRecord], position: Position
    ) -> Batch:
        """Return a batch; `again` observations of the source's batch were delivered before."""
        rows = np.flatnonzero(~found.labels)  # the observations

        def origin(row: int) -> Origin:
            if found.labels[row]:
                return self._origin_of_label(found)(row)
            return batch.origin(again + int(np.searchsorted(rows, row)))

        after = [0, *(rows + 1).tolist()]
        moved = [one._replace(row=after[max(one.row - again, 0)]) for one in bad]
        return Batch(found, moved, position, len(rows) + len(bad), origin)

    def _origin_of_label(self, events: Events) -> Callable[[int], Origin]:
        """Return the origins of labels; the texts of their observations are no longer held."""

        def origin(row: int) -> Origin:
            event = events[row]
            where = f"{self.name}, label of observation {event.id}"
            return Origin(where, msgspec.json.encode(event).decode())

        return origin


class _PendingLabels:
    """The pending labels, and their clock: the largest event time, or a count of observations.

    A label is due at a clock: that of its observation and the delay, or its own time. They are
    held by when they are due, and of the same clock in the order of the observations.
    """

    def __init__(self, count: int | None, span: int | None) -> None:
        self._counts = count is not None
        self._delay = count + 1 if count is not None else span
        self._out = Events.of([])  # their observations
        self._due = np.empty(0, np.int64)  # clock at which each is released, ascending
        self._numbers = np.empty(0, np.int64)  # of the observations, as they were added
        self._added = 0
        self._time = 0  # of the last observation
        self.clock = 0 if self._counts else _LONG_AGO

    def __len__(self) -> int:
        return len(self._out)

    def add(self, events: Events) -> Events:
        """Add observations; return them with the labels released among them."""
        n, before = len(events), len(self._out)
        if not n:
            return events
        clocks = self._clocks(events.times)
        pending = Events.joined([self._out, events])
        due = np.concatenate([self._due, self._due_of(events, clocks)])
        numbers = np.concatenate([self._numbers, self._added + np.arange(n)])
        own = np.concatenate([np.zeros(before, np.int64), np.arange(1, n + 1)])
        observed = observations_before(clocks, due, own)
        out = np.flatnonzero(observed < n)
        out = out[np.lexsort((due[out], observed[out]))]
        held = np.flatnonzero(observed >= n)
        held = held[np.argsort(due[held], kind="stable")]
        times = np.concatenate([[self._time], events.times])
        labels = self._labels(pending.take(out), times[observed[out]])
        self._out, self._due, self._numbers = pending.take(held), due[held], numbers[held]
        self._time, self.clock, self._added = int(times[-1]), int(clocks[-1]), self._added + n
        order = np.argsort(np.concatenate([np.arange(1, n + 1), observed[out]]), kind="stable")
        return Events.joined([_unlabelled(events), labels]).take(order)

    def keep(self, count: int) -> None:
        """Drop all but the last labels: the others were released at an earlier end."""
        last = slice(max(len(self._out) - count, 0), None)
        self._out = self._out.take(last)
        self._due, self._numbers = self._due[last], self._numbers[last]

    def oldest(self, first: int = 0) -> int:
        """Return the number of the oldest observation among all labels but the first ones."""
        return min(self._numbers[first:].tolist(), default=self._added)

    def rest(self) -> Events:
        """Return the pending labels."""
        return self._labels(self._out, np.full(len(self._out), self._time))

    def _clocks(self, times: Column) -> NDArray[np.int64]:
        if self._counts:
            return self.clock + 1 + np.arange(len(times))
        return np.maximum(np.maximum.accumulate(times), self.clock)

    def _due_of(self, events: Events, clocks: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._delay is not None:
            return clocks + self._delay
        own: Any = events.awaited_times
        return np.asarray(own, np.int64)

    def _labels(self, observations: Events, last: NDArray[np.int64]) -> Events:
        """Return labels, each at the time of the last observation before it, or at its own."""
        times: Any = last if self._counts else observations.awaited_times
        if not self._counts and self._delay is not None:
            times = observations.times + self._delay
        return Events(
            np.ones(len(observations), bool),
            observations.ids,
            times,
            observations.models,
            observations.segments,
            values=observations.awaited,
        )


def _unlabelled(events: Events) -> Events:
    return replace(events, awaited=None, awaited_times=None)


class _SourceMark(NamedTuple):
    """Clock and counts at a position of the source."""

    at: Position | None
    clock: int
    events: int
    bad: int


class _SourceMarks:
    """The positions of the source from which labels are pending."""

    def __init__(self, at: Position | None, clock: int) -> None:
        self._marks = deque([_SourceMark(at, clock, 0, 0)])

    def add(self, batch: Batch, clock: int) -> None:
        """Add the position after a batch."""
        _, _, events, bad = self._marks[-1]
        self._marks.append(
            _SourceMark(batch.position, clock, events + len(batch.events), bad + len(batch.bad))
        )

    def position(self, out: int, oldest: int) -> Position:
        """Return where to continue: the last mark before the oldest of `out` pending labels."""
        last = self._marks[-1]
        while len(self._marks) > 1 and self._marks[1].events <= oldest:
            self._marks.popleft()
        first = self._marks[0]
        return {
            "at": first.at,
            "known": last.at,
            "clock": first.clock,
            "events": last.events - first.events,
            "bad": last.bad - first.bad,
            "out": out,
        }
