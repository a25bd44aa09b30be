"""Sources in the order of event time: sorted where they fit in memory, and a log of arrivals.

A source in the order of event time: sorted where it fits in memory, and refused where not. A source
is read ahead before its first batch is delivered, so that a file of usual size is sorted as a
whole. A longer file that is in order costs no more memory than this. A row out of order that comes
later, or in what can be read only once, is an error that says how to sort.

A log of arrivals: observations, and labels as rows of their own, in one input. A log keeps its
order, for late events are part of it. One that was written newest first has all labels before their
observations, so it is no log: it is sorted, or refused where it is too large.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from abers.exceptions import AbersError, RecordError
from abers.monitoring import event_time
from abers.stream import Events
from abers.stream.columns import time_order
from abers_connectors.sources.base import Batch, resume_point
from abers_connectors.sources.time_range import TimeRange, narrowed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from abers_connectors.sources.base import Origin, Position, Source
    from abers_connectors.sources.time_range import Part

__all__ = ["ArrivalLog", "Bounds", "OrderedSource", "part_of", "unordered"]

_BEFORE_ALL = -(2**63)
_ROW_BYTES = 400  # of a row that is kept, besides its text: about what its objects take
_PIECE = 16_384  # events of a batch that was sorted
_START: Position = {
    "at": None,
    "known": None,
    "clock": _BEFORE_ALL,
    "size": 0,
    "events": 0,
    "bad": 0,
}


Counted: TypeAlias = Literal["observations", "labels", "all"]
"""The rows of a source that count for the order."""


class Bounds(NamedTuple):
    """Bytes that are kept: before it is known whether the rows are in order, and to sort them.

    The first is what any replay may take, about 130,000 rows of usual length; the second what is
    there on any machine that has so large a file, about two million rows.
    """

    ahead: int = 1 << 26
    sorting: int = 1 << 30


class OrderedSource:
    """A source with rows in the order of event time; equal times keep their order.

    Parameters
    ----------
    source
        What is read.
    remedy
        Returns how to sort the input, from the text of a row that is out of order.
    lateness
        Milliseconds that a row may be behind an earlier row: then the order stays as it is.
    counted
        The rows that must be in order. Labels among observations may come when they come; of all
        rows that are sorted, observations are first at equal times, so that a label finds its own.
    bounds
        How much is kept.
    """

    def __init__(
        self,
        source: Source,
        remedy: Callable[[str], str],
        *,
        lateness: int = 0,
        counted: Counted = "observations",
        bounds: Bounds = Bounds(),  # noqa: B008 - immutable
    ) -> None:
        self.name, self.source = source.name, source
        self._options: Any = {"lateness": lateness, "counted": counted, "bounds": bounds}
        self._remedy, self._lateness, self._kind = remedy, lateness, counted
        self._bounds = bounds
        self._delivered = 1.0  # share of what is kept
        self._said = False

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position, in order; a RecordError if that is not possible."""
        start = _START | (position or {})
        known = start.get("ahead", start)["known"]
        reading = self.source.batches(resume_point(start["at"], known))
        held, clocks, late, complete = self._read_ahead(reading, start)
        if late is not None and self._is_before(held, start):
            msg = (
                f"{late} Later rows were processed before; remove state and outputs to start anew."
            )
            raise RecordError(msg)
        if late is not None and not complete:
            raise self._refused(late)
        if held and (late is not None or start["size"]):
            yield from self._sorted(held, start, late)
            return
        for number, (batch, clock) in enumerate(zip(held, clocks, strict=True), 1):
            self._delivered = number / len(held)
            yield _passed(batch, clock)
        clock = clocks[-1] if clocks else start["clock"]
        for batch in reading:
            clock, late = self._clock(batch, clock)
            if late is not None:
                raise self._refused(late)
            yield _passed(batch, clock)

    def part(
        self, since: int | None, until: int | None, models: Collection[str] = ()
    ) -> OrderedSource:
        """Return the same for the events in a range of time, or of some models."""
        return self._of(TimeRange(self.source, since, until, models))

    def within(self, part: Part) -> OrderedSource:
        """Return the same of a source that does not read what it knows to be outside a part."""
        return self._of(narrowed(self.source, part))

    def fraction(self) -> float | None:
        """Return the share of the source that has been delivered."""
        share = self.source.fraction()
        return None if share is None else share * self._delivered

    def _of(self, source: Source) -> OrderedSource:
        return OrderedSource(source, self._remedy, **self._options)

    def _read_ahead(
        self, reading: Iterator[Batch], start: Position
    ) -> tuple[list[Batch], list[int], _Late | None, bool]:
        """Read until it is known whether the rows are in order, or to the end if they are not.

        Returns the batches, the clock after each, the first row out of order, and whether the end
        was reached.
        """
        held, clocks, size = list[Batch](), list[int](), 0
        late: _Late | None = None
        clock = start["clock"]
        for batch in reading:
            clock, found = self._clock(batch, clock)
            late = late or found
            held.append(batch)
            clocks.append(clock)
            size += batch_bytes(batch)
            unsorted = late is not None or start["size"]
            if size >= (self._bounds.sorting if unsorted else self._bounds.ahead):
                return held, clocks, late, False
        return held, clocks, late, True

    def _clock(self, batch: Batch, clock: int) -> tuple[int, _Late | None]:
        """Return the largest time so far, and the first row that is too far behind it."""
        rows = self._counted(batch.events)
        if not len(rows):
            return clock, None
        times = batch.events.times[rows].astype(np.int64)
        largest = np.maximum(np.maximum.accumulate(times), clock)
        behind = np.flatnonzero(largest - times > self._lateness)
        if not behind.size:
            return int(largest[-1]), None
        first = int(behind[0])
        late = _Late(batch, int(rows[first]), int(times[first]), int(largest[first]))
        return int(largest[-1]), late

    def _counted(self, events: Events) -> Any:  # noqa: ANN401 - an array
        """Return the rows that count for the order."""
        if self._kind == "all":
            return np.arange(len(events))
        return np.flatnonzero(events.labels == (self._kind == "labels"))

    def _is_before(self, held: Sequence[Batch], start: Position) -> bool:
        """Return whether a row belongs before what an earlier run delivered."""
        joined = Events.joined([one.events for one in held])
        times = joined.times.astype(np.int64)
        counted = times[self._counted(joined)]
        if counted.size and counted.min() < start["clock"] - self._lateness:
            return True
        if not start["events"]:
            return False
        last = np.sort(times[: start["size"]])[start["events"] - 1]
        return bool((times[start["size"] :] < last).any())

    def _sorted(
        self, held: Sequence[Batch], start: Position, late: _Late | None
    ) -> Iterator[Batch]:
        """Yield all that is kept, by time, behind its bad records, which have none."""
        if late is not None and not self._said:
            self._said = True
            warnings.warn(f"{late} The rows of {self.name} are sorted by time.", stacklevel=2)
        joined = Events.joined([one.events for one in held])
        times = joined.times.astype(np.int64)
        first = ~joined.labels if self._kind == "all" else joined.labels
        order = time_order(times, first)
        firsts = [0, *accumulate(len(one.events) for one in held)]

        def origin(row: int) -> Origin:
            index = int(order[row])
            number = bisect_right(firsts, index, hi=len(held)) - 1
            return held[number].origin(index - firsts[number])

        bad = [one._replace(row=0) for batch in held for one in batch.bad]
        block = {**start, "known": held[-1].position, "size": len(joined)}
        block.pop("ahead", None)
        left, done = bad[start["bad"] :], start["events"]
        unlabelled = 0 if done else sum(one.unlabelled for one in held)
        while left or unlabelled or done < len(joined):
            stop = min(done + _PIECE, len(joined))
            at = {**block, "events": stop, "bad": len(bad)}
            if stop == len(joined):
                clock = max(start["clock"], int(joined.times[order[-1]]) if stop else _BEFORE_ALL)
                at = _position(held[-1].position, clock)
            events = joined.take(order[done:stop])
            self._delivered = stop / max(len(joined), 1)
            records = len(events) + len(left) + unlabelled
            yield Batch(events, left, at, records, _shifted(origin, done), unlabelled)
            left, unlabelled, done = [], 0, stop

    def _refused(self, late: _Late) -> RecordError:
        raw = late.batch.origin(late.row).raw
        return RecordError(f"{late} {self._remedy(raw)}")


class _Late(NamedTuple):
    """A row that is behind the largest time before it."""

    batch: Batch
    row: int
    time: int
    clock: int

    def __str__(self) -> str:
        """Return a sentence on where it is, and how far behind."""
        where = self.batch.origin(self.row).where
        return f"{where} is of {event_time(self.time)}, after a row of {event_time(self.clock)}."


def part_of(
    source: Source, since: int | None, until: int | None, models: Collection[str] = ()
) -> Source:
    """Return the events of a source in a range of time, or of some models, in its order."""
    if isinstance(source, OrderedSource):
        return source.part(since, until, models)
    return TimeRange(source, since, until, models)


def unordered(source: Source) -> Source:
    """Return a source as it is read, without its order."""
    return source.source if isinstance(source, OrderedSource) else source


def batch_bytes(batch: Batch) -> int:
    """Return about how much memory a batch takes, by the text of one of its rows."""
    size = len(batch.events)
    return size * (_ROW_BYTES + len(batch.origin(size // 2).raw)) if size else 0


def _position(at: Position | None, clock: int) -> Position:
    return {**_START, "at": at, "known": at, "clock": clock}


def _passed(batch: Batch, clock: int) -> Batch:
    """Return a batch that is in order, with the position after it."""
    return replace(batch, position=_position(batch.position, clock))


def _shifted(origin: Callable[[int], Origin], first: int) -> Callable[[int], Origin]:
    return lambda row: origin(first + row)


class ArrivalLog:
    """A source in the order of arrival, sorted by time if that order is newest first.

    It is newest first if the event times of its observations go down more often than up: what
    comes late makes a step down, and the next observation a step up.

    Parameters
    ----------
    source, remedy, lateness
        Those of `OrderedSource`.
    bounds
        Bytes that are kept: before the order is known, and to sort the rows.
    """

    def __init__(
        self, source: Source, remedy: Callable[[str], str], *, lateness: int, bounds: Bounds
    ) -> None:
        self.name, self.source = source.name, source
        self._remedy, self._lateness, self._bounds = remedy, lateness, bounds
        self._sorted = OrderedSource(
            source, remedy, lateness=lateness, counted="all", bounds=bounds
        )
        self._sorts, self._delivered = False, 1.0  # share of what is kept

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position; a RecordError if they cannot be sorted."""
        self._sorts = "arrivals" in (position or {})
        if position is None:
            reading = self.source.batches()
            held, error = self._beginning(reading)
            self._sorts = _is_newest_first(held, self._lateness)
            if not self._sorts:
                yield from self._passed(held, error, reading)
                return
            del held, reading  # the source is read again
        if self._sorts:
            for batch in self._sorted.batches((position or {}).get("arrivals")):
                yield replace(batch, position={"arrivals": batch.position})
        else:
            yield from self.source.batches(position)

    def first(self) -> Batch | None:
        """Return the first batch as it is read, or None."""
        return next(self.source.batches(), None)

    def within(self, part: Part) -> ArrivalLog:
        """Return the same of a source that does not read what it knows to be outside a part."""
        source = narrowed(self.source, part)
        return ArrivalLog(source, self._remedy, lateness=self._lateness, bounds=self._bounds)

    def fraction(self) -> float | None:
        """Return the share of the source that has been delivered."""
        share = (self._sorted if self._sorts else self.source).fraction()
        return None if share is None else share * self._delivered

    def _beginning(self, reading: Iterator[Batch]) -> tuple[list[Batch], Exception | None]:
        """Return the batches that are kept until the order is known, and what ended the reading."""
        held: list[Batch] = []
        size = 0
        try:
            while size < self._bounds.ahead and (batch := next(reading, None)) is not None:
                held.append(batch)
                size += batch_bytes(batch)
        except (AbersError, OSError) as error:
            return held, error
        return held, None

    def _passed(
        self, held: Sequence[Batch], error: Exception | None, reading: Iterator[Batch]
    ) -> Iterator[Batch]:
        """Yield all batches as they are, those before an error too."""
        for number, batch in enumerate(held, 1):
            self._delivered = number / len(held)
            yield batch
        if error is not None:
            raise error
        yield from reading


def _is_newest_first(held: Sequence[Batch], lateness: int) -> bool:
    """Return whether the times of observations go down more often than up."""
    times = [batch.events.times[~batch.events.labels].astype(np.int64) for batch in held]
    steps = np.diff(np.concatenate([np.empty(0, np.int64), *times]))
    return int((steps < -lateness).sum()) > int((steps > 0).sum())
