"""A stream whose labels are at hand, turned into one where they come later.

Governing rule: a label is released before the first observation that comes late
enough, in the order of the observations; those still out are not stored in a
position but read again, from the oldest observation whose label is out.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from abers.exceptions import ParameterError
from abers.stream import Events
from abers_connectors.between import Between
from abers_connectors.records import Batch, Origin, beyond

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from abers.stream.columns import Column
    from abers_connectors.records import Bad, Position, Source

__all__ = ["Delayed"]

_TAIL = 5000  # labels of a batch after the last observation
_LONG_AGO = -(2**63)
_START: Position = {"at": None, "known": None, "events": 0, "bad": 0, "out": 0}


class Delayed:
    """Observations, and each one's label so much later.

    Parameters
    ----------
    source
        The observations with their labels.
    count
        Release a label after so many further observations, with the time of the last one.
    span
        Release it once event time has passed by so many milliseconds since its observation,
        with the time of the observation and so much more. One of the two must be given.

    Notes
    -----
    Labels that are out at the end are released there; if the stream has grown when it is read on,
    the others follow.
    """

    def __init__(
        self, source: Source, *, count: int | None = None, span: int | None = None
    ) -> None:
        if (count is None) == (span is None):
            msg = f"count={count!r}, span={span!r}: give one of them"
            raise ParameterError(msg)
        self.name = source.name
        self._source, self._count, self._span = source, count, span

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Give the batches of observations and labels after a position."""
        waiting = _Waiting(self._count, self._span)
        start: Position = {**_START, "clock": waiting.clock, **(position or {})}
        waiting.clock = start["clock"]
        places = _Places(start["at"], waiting.clock)
        known = start.get("ahead", start)["known"]
        events, bad = start["events"], start["bad"]  # which are delivered already
        for batch in self._source.batches(beyond(start["at"], known)):
            again, bad_again = min(events, len(batch.events)), min(bad, len(batch.bad))
            events, bad = events - again, bad - bad_again
            waiting.passed(batch.events[:again])
            if again and not events:
                waiting.keep(start["out"])
            found = waiting.passed(batch.events[again:])
            places.add(batch, waiting.clock)
            if len(found) or len(batch.bad) > bad_again:
                yield self._batch(
                    found, batch, again, batch.bad[bad_again:], places.position(len(waiting))
                )
        labels = waiting.rest()
        for first in range(0, len(labels), _TAIL):
            piece = labels[first : first + _TAIL]
            end = places.position(len(labels) - first - len(piece))
            yield Batch(piece, (), end, 0, self._origin_of_label(piece))

    def part(self, since: int | None, until: int | None) -> Delayed:
        """Give the same of the observations from one time on and before another."""
        part = Between(self._source, since, until)
        return Delayed(part, count=self._count, span=self._span)

    def fraction(self) -> float | None:
        """Give that of the source."""
        return self._source.fraction()

    def _batch(
        self, found: Events, batch: Batch, again: int, bad: Sequence[Bad], position: Position
    ) -> Batch:
        """Make a batch; of the one from the source `again` observations were delivered before."""
        rows = np.flatnonzero(~found.labels)  # of the observations

        def origin(row: int) -> Origin:
            if found.labels[row]:
                return self._origin_of_label(found)(row)
            return batch.origin(again + int(np.searchsorted(rows, row)))

        after = [0, *(rows + 1).tolist()]
        placed = [one._replace(row=after[max(one.row - again, 0)]) for one in bad]
        return Batch(found, placed, position, len(rows) + len(bad), origin)

    def _origin_of_label(self, events: Events) -> Callable[[int], Origin]:
        """Tell where a label comes from; the text of its observation is no longer held."""

        def origin(row: int) -> Origin:
            event = events[row]
            where = f"{self.name}, label of observation {event.id}"
            return Origin(where, msgspec.json.encode(event).decode())

        return origin


class _Waiting:
    """The labels that are out, and the clock that brings them back.

    The clock is the largest event time so far, or the number of observations.
    """

    def __init__(self, count: int | None, span: int | None) -> None:
        self._counts = count is not None
        self._delay = count + 1 if count is not None else span or 0
        self._out = Events.of([])  # the observations, oldest first
        self._due = np.empty(0, np.int64)  # the clock at which each label comes; it never falls
        self._time = 0  # of the last observation
        self.clock = 0 if self._counts else _LONG_AGO

    def __len__(self) -> int:
        return len(self._out)

    def passed(self, events: Events) -> Events:
        """Take some observations, and give them with the labels released on the way."""
        if not len(events):
            return events
        clocks, before = self._clocks(events.times), len(self._out)
        waiting = Events.joined([self._out, events])
        due = np.concatenate([self._due, clocks + self._delay])
        # How many labels are out of the way before each observation: none of its own.
        released = np.minimum(
            np.searchsorted(due, clocks, "right"), before + np.arange(len(events))
        )
        count = int(released[-1])
        # Before which observation each of these comes, and how many came before that one.
        places = np.searchsorted(released, np.arange(count), "right")
        times = np.concatenate([[self._time], events.times])
        labels = self._labels(waiting.take(slice(count)), times[places])
        self._out, self._due = waiting.take(slice(count, None)), due[count:]
        self._time, self.clock = int(times[-1]), int(clocks[-1])
        order = np.empty(count + len(events), np.int64)
        order[np.arange(len(events)) + released] = np.arange(len(events))
        order[np.arange(count) + places] = np.arange(len(events), len(order))
        return Events.joined([replace(events, awaited=None), labels]).take(order)

    def keep(self, count: int) -> None:
        """Forget all but the newest labels: those before them were released at an earlier end."""
        first = max(len(self._out) - count, 0)
        self._out, self._due = self._out.take(slice(first, None)), self._due[first:]

    def rest(self) -> Events:
        """Give the labels that are still out."""
        return self._labels(self._out, np.full(len(self._out), self._time))

    def _clocks(self, times: Column) -> NDArray[np.int64]:
        if self._counts:
            return self.clock + 1 + np.arange(len(times))
        return np.maximum(np.maximum.accumulate(times), self.clock)

    def _labels(self, observations: Events, last: NDArray[np.int64]) -> Events:
        """Make labels, each at the time of the last observation before it, or so much later."""
        return Events(
            np.ones(len(observations), bool),
            observations.ids,
            last if self._counts else observations.times + self._delay,
            observations.models,
            observations.segments,
            values=observations.awaited,
        )


class _Place(NamedTuple):
    """What was read before a position of the source."""

    at: Position | None
    clock: int
    events: int
    bad: int


class _Places:
    """The positions of the source from which labels are out."""

    def __init__(self, at: Position | None, clock: int) -> None:
        self._places = deque([_Place(at, clock, 0, 0)])

    def add(self, batch: Batch, clock: int) -> None:
        """Note the position after a batch."""
        _, _, events, bad = self._places[-1]
        self._places.append(
            _Place(batch.position, clock, events + len(batch.events), bad + len(batch.bad))
        )

    def position(self, out: int) -> Position:
        """Say where to go on, from the last place before the oldest label that is out."""
        last = self._places[-1]
        while len(self._places) > 1 and self._places[1].events <= last.events - out:
            self._places.popleft()
        first = self._places[0]
        return {
            "at": first.at,
            "known": last.at,
            "clock": first.clock,
            "events": last.events - first.events,
            "bad": last.bad - first.bad,
            "out": out,
        }
