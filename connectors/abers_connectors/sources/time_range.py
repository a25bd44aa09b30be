"""The part of a stream in a range of event time.

Events outside the range are counted and dropped. Positions are those of the whole stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers_connectors.sources.base import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from abers.stream import Events
    from abers_connectors.sources.base import Origin, Position, Source

__all__ = ["TimeRange"]


class TimeRange:
    """The events of a source at or after one time and before another, in milliseconds."""

    def __init__(self, source: Source, since: int | None = None, until: int | None = None) -> None:
        self.name = source.name
        self.dropped = 0  # events outside the range
        self._source, self._since, self._until = source, since, until

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position, without the events outside the range."""
        for batch in self._source.batches(position):
            kept = np.flatnonzero(self._inside(batch.events))
            self.dropped += len(batch.events) - len(kept)
            bad = [one._replace(row=int(np.searchsorted(kept, one.row))) for one in batch.bad]
            events, origin = batch.events.take(kept), _origin(batch, kept)
            yield Batch(events, bad, batch.position, batch.records, origin)

    def fraction(self) -> float | None:
        """Return the share of the source that has been read."""
        return self._source.fraction()

    def _inside(self, events: Events) -> NDArray[np.bool_]:
        inside = np.ones(len(events), bool)
        if self._since is not None:
            inside &= events.times >= self._since
        if self._until is not None:
            inside &= events.times < self._until
        return inside


def _origin(batch: Batch, kept: NDArray[np.intp]) -> Callable[[int], Origin]:
    return lambda row: batch.origin(int(kept[row]))
