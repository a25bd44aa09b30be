"""A log of arrivals: observations, and labels as rows of their own, in one input.

A log keeps its order, for late events are part of it. One that was written newest first has all
labels before their observations, so it is no log: it is sorted, or refused where it is too large.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abers.exceptions import AbersError
from abers_connectors.sources.ordered import OrderedSource, batch_bytes
from abers_connectors.sources.time_range import narrowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers_connectors.sources.base import Batch, Position, Source
    from abers_connectors.sources.ordered import Bounds
    from abers_connectors.sources.row_groups import Part

__all__ = ["ArrivalLog"]


class ArrivalLog:
    """A source in the order of arrival, sorted by time if that order is newest first.

    It is newest first if the event times of its observations go down more often than up: what
    comes late makes a step down, and the next observation a step up.

    Parameters
    ----------
    source
        What is read.
    remedy
        Returns how to sort the input, from the text of a row that is out of order.
    lateness
        Milliseconds that a row may be behind an earlier row.
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
