"""A labelled stream replayed with delayed labels.

A label is released before the first observation that comes late enough. A position does not store
the pending labels: a resumed stream reads them again, from the oldest observation with a pending
label.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from abers.exceptions import ParameterError
from abers_connectors.sources.base import Batch, Origin, resume_point
from abers_connectors.sources.ordered import part_of, unordered
from abers_connectors.sources.pending_labels import PendingByClock, PendingByCount, with_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from abers.stream import Events
    from abers_connectors.sources.base import BadRecord, Position, Source
    from abers_connectors.sources.pending_labels import PendingLabels

__all__ = ["DelayedLabels"]

_TAIL = 5000  # labels of a batch after the last observation
_START: Position = {"at": None, "known": None, "events": 0, "bad": 0, "out": 0}


class DelayedLabels:
    """Observations, and the label of each after a delay.

    A label is released after `count` further observations of its model, with the time of the last,
    so that it does not depend on other models; or `span` milliseconds of event time after its
    observation, with that time; or without either at its own time, which each record has. Labels
    that are pending at the end are released there. If the stream has grown when it is resumed, the
    others follow. An observation without a known label has none; if the stream is `whole`, which
    means that it is all there is, its wait ends where its label would be released.
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
