"""A labelled stream replayed with delayed labels.

Labels that are not released yet, by a clock or by a count of observations. An observation without a
known label counts like any other. No label of it is released; in a stream that is all there is, the
end of its wait is.

A label is released before the first observation that comes late enough. A position does not store
the pending labels: a resumed stream reads them again, from the oldest observation with a pending
label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import numpy as np

from abers.exceptions import ParameterError
from abers.stream import Events
from abers.stream.cells import column
from abers.stream.columns import observations_before
from abers_connectors.sources.base import Batch, Origin, resume_point
from abers_connectors.sources.ordered import part_of, unordered

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from abers.stream.cells import Column
    from abers_connectors.sources.base import BadRecord, Position, Source

    Integers = NDArray[np.int64]
    Mask = NDArray[np.bool_]

__all__ = ["DelayedLabels"]

_LONG_AGO = -(2**63)


class PendingLabels(ABC):
    """The labels of observations, which are released among later observations.

    Parameters
    ----------
    whole
        Whether the stream is all there is. Then an observation without a known label gets none: its
        wait ends where its label would be released.

    Attributes
    ----------
    clock
        What a resumed stream starts from, besides the observations with pending labels.
    """

    clock: int

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        self._out = Events.of([])  # their observations
        self._order = np.empty(0, np.int64)  # in which they are released, ascending
        self._numbers = np.empty(0, np.int64)  # of the observations, as they were added
        self._added = 0

    def __len__(self) -> int:
        """Return the number of pending labels."""
        return int(self._due(self._out).sum())

    def add(self, events: Events) -> Events:
        """Add observations; return them with the labels released among them."""
        n, before = len(events), len(self._out)
        if not n:
            return events
        pending = Events.joined([self._out, events])
        numbers = np.concatenate([self._numbers, self._added + np.arange(n)])
        self._added += n
        observed, order, times = self._released(pending, numbers, before)
        out = np.flatnonzero((observed < n) & self._due(pending))
        out = out[np.lexsort((order[out], observed[out]))]
        held = np.flatnonzero(observed >= n)
        held = held[np.argsort(order[held], kind="stable")]
        labels = _labels(pending.take(out), times[out])
        self._out, self._order, self._numbers = pending.take(held), order[held], numbers[held]
        rows = np.argsort(np.concatenate([np.arange(1, n + 1), observed[out]]), kind="stable")
        return Events.joined([replace(events, awaited=None, awaited_times=None), labels]).take(rows)

    def keep(self, count: int) -> None:
        """Drop all but the last labels: the others were released at an earlier end."""
        known = np.flatnonzero(self._due(self._out))
        last = slice(int(known[max(len(known) - count, 0)]) if count else len(self._out), None)
        self._out = self._out.take(last)
        self._order, self._numbers = self._order[last], self._numbers[last]

    def oldest(self, first: int = 0) -> int:
        """Return the number of the oldest observation among all labels but the first."""
        return min(self._numbers[self._due(self._out)][first:].tolist(), default=self._added)

    def rest(self) -> Events:
        """Return the pending labels that are released at the end of the stream.

        If more may follow, these are the first ones, as far as they come before the next
        observation.
        """
        if not len(self._out):
            return Events.of([])
        released = np.ones(len(self._out), bool) if self._whole else self._before_the_next()
        due = self._due(self._out)
        due &= np.logical_and.accumulate(released | ~due)
        if not due.any():
            return Events.of([])
        return _labels(self._out.take(np.flatnonzero(due)), self._last_times(self._out)[due])

    def _due(self, observations: Events) -> Mask:
        """Return which observations have a label, or the end of the wait for one, to release."""
        return np.ones(len(observations), bool) if self._whole else with_labels(observations)

    @abstractmethod
    def _released(
        self, pending: Events, numbers: Integers, before: int
    ) -> tuple[Integers, Integers, Column]:
        """Return where the labels of observations are released; so many came before.

        These are the number of new observations before each label, at least as many as there are
        if it stays pending; what orders the labels in one place; and their event times.
        """

    @abstractmethod
    def _before_the_next(self) -> Mask:
        """Return which pending labels come before the next observation of their model."""

    @abstractmethod
    def _last_times(self, observations: Events) -> Column:
        """Return the event times of labels that are released at the end."""


class PendingByClock(PendingLabels):
    """Labels released by the largest event time: at a span after it, or at their own times.

    Parameters
    ----------
    span
        Milliseconds of event time; None for the labels' own times: the wait of an observation
        without a label then ends at once.
    whole
        As of `PendingLabels`.
    """

    def __init__(self, span: int | None, *, whole: bool = False) -> None:
        super().__init__(whole=whole)
        self._span = span
        self.clock = _LONG_AGO

    def _released(
        self, pending: Events, numbers: Integers, before: int
    ) -> tuple[Integers, Integers, Column]:
        del numbers
        times = pending.times[before:]
        clocks = np.maximum(np.maximum.accumulate(times), self.clock)
        self.clock = int(clocks[-1])
        own: Any = pending.awaited_times
        new = np.asarray(own[before:], np.int64) if self._span is None else clocks + self._span
        due = np.concatenate([self._order, new])
        itself = np.concatenate([np.zeros(before, np.int64), np.arange(1, len(times) + 1)])
        observed = observations_before(clocks, due, itself)
        return observed, due, self._last_times(pending)

    def _before_the_next(self) -> Mask:
        before: Mask = self._order <= self.clock
        return before

    def _last_times(self, observations: Events) -> Column:
        times: Any = observations.awaited_times
        return times if self._span is None else observations.times + self._span


class PendingByCount(PendingLabels):
    """Labels released after so many further observations of their model.

    A label has the event time of the last of these, so it does not depend on other models.

    Parameters
    ----------
    count
        Number of observations.
    whole
        As of `PendingLabels`.
    """

    clock = 0

    def __init__(self, count: int, *, whole: bool = False) -> None:
        super().__init__(whole=whole)
        self._count = count

    def _released(
        self, pending: Events, numbers: Integers, before: int
    ) -> tuple[Integers, Integers, Column]:
        models = _numbered(pending.models)
        rows = np.argsort(models, kind="stable")  # by model, in the order of arrival
        # The observations of a model with pending labels are its last, so the next observations in
        # these rows are its next.
        release = np.arange(len(rows)) + self._count + 1
        known = np.minimum(release, len(rows) - 1)
        there = (release == known) & (models[rows[known]] == models[rows])
        observed = np.full(len(rows), len(rows))
        observed[rows] = np.where(there, rows[known] - before, len(rows))
        times = np.empty(len(rows), pending.times.dtype)
        times[rows] = pending.times[rows[known - 1]]
        return observed, numbers, times

    def _before_the_next(self) -> Mask:
        models = _numbered(self._out.models)
        rows = np.argsort(models, kind="stable")  # by model, in the order of arrival
        later = np.cumsum(np.bincount(models))[models[rows]] - np.arange(1, len(rows) + 1)
        before = np.empty(len(rows), bool)
        before[rows] = later >= self._count
        return before

    def _last_times(self, observations: Events) -> Column:
        models = _numbered(observations.models)
        last = np.zeros(len(models), np.int64)
        last[models] = np.arange(len(models))  # the last of a model counts
        return observations.times[last[models]]


def _numbered(models: Column) -> Integers:
    """Return a number for each model, equal for equal models."""
    known: dict[str, int] = {}
    return np.array([known.setdefault(one, len(known)) for one in models.tolist()], np.int64)


def with_labels(observations: Events) -> Mask:
    """Return which observations have a label that is known."""
    awaited = observations.awaited
    if awaited is None or awaited.dtype != object:
        return np.ones(len(observations), bool)
    return np.not_equal(awaited, None).astype(bool)


def _labels(observations: Events, times: Column) -> Events:
    """Return the labels of observations, and the end of the wait where none is known."""
    known = with_labels(observations)
    values = cast("Column", observations.awaited)  # of objects if some are not known
    if known.any() and values.dtype == object:
        found = column(values[known].tolist())
        values = np.zeros(len(known), found.dtype)
        values[known] = found
    return Events(
        np.ones(len(known), bool),
        observations.ids,
        times,
        observations.models,
        observations.segments,
        values=values if known.any() else None,
        ended=None if known.all() else ~known,
    )


_TAIL = 5000  # labels of a batch after the last observation
_START: Position = {"at": None, "known": None, "events": 0, "bad": 0, "out": 0}


class DelayedLabels:
    """Observations, and the label of each after a delay.

    A label is released after `count` further observations of its model, with the time of the last,
    so that it does not depend on other models; or `span` milliseconds of event time after its
    observation, with that time; or without either at its own time, which each record has.

    If the stream is `whole`, which means that it is all there is, pending labels are released at
    its end, and the wait of an observation without a known label ends where its label would be
    released. Otherwise they are released as they are before the next observation, and the other
    labels wait for those that follow when the stream is resumed.
    """

    def __init__(
        self,
        source: Source,
        *,
        count: int | None = None,
        span: int | None = None,
        whole: bool = False,
    ) -> None:
        if count is not None and span is not None:
            msg = f"count={count!r}, span={span!r}: give one of them, or none"
            raise ParameterError(msg)
        self.name = source.name
        self._source, self._count, self._span = source, count, span
        self._whole = whole
        self.waits = False  # whether the last end was before labels that wait for what follows

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches of observations and labels after a position."""
        pending = self._pending()
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
        labels, left = pending.rest(), len(pending)
        self.waits = left > len(labels)
        for first in range(0, len(labels), _TAIL):
            piece = labels[first : first + _TAIL]
            after = first + len(piece)
            end = marks.position(left - after, pending.oldest(after))
            yield Batch(piece, (), end, 0, self._origin_of_label(piece))

    def part(
        self, since: int | None, until: int | None, models: Collection[str] = ()
    ) -> DelayedLabels:
        """Return the same for the observations in a range of time, or of some models."""
        part = part_of(self._source, since, until, models)
        return DelayedLabels(part, count=self._count, span=self._span, whole=self._whole)

    def first(self) -> Batch | None:
        """Return the first observations as they are read, with their labels, or None."""
        return next(unordered(self._source).batches(), None)

    def fraction(self) -> float | None:
        """Return the share of the source that has been read."""
        return self._source.fraction()

    def _pending(self) -> PendingLabels:
        if self._count is None:
            return PendingByClock(self._span, whole=self._whole)
        return PendingByCount(self._count, whole=self._whole)

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
        unknown = int((~with_labels(batch.events[again:])).sum())
        return Batch(found, moved, position, len(rows) + len(bad), origin, unknown)

    def _origin_of_label(self, events: Events) -> Callable[[int], Origin]:
        """Return the origins of labels; the texts of their observations are no longer kept."""

        def origin(row: int) -> Origin:
            event = events[row]
            where = f"{self.name}, label of observation {event.id}"
            return Origin(where, msgspec.json.encode(event).decode())

        return origin


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
