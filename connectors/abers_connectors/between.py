"""A part of a stream, by event time.

Governing rule: an event outside of the part is counted and otherwise as if it
had never been; positions are those of the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers_connectors.records import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from abers.stream import Events
    from abers_connectors.records import Origin, Position, Source

__all__ = ["Between"]


class Between:
    """The events from one time on and before another.

    Parameters
    ----------
    source
        The whole.
    since, until
        Times in milliseconds; None leaves that side open.
    """

    def __init__(self, source: Source, since: int | None = None, until: int | None = None) -> None:
        self.name = source.name
        self.dropped = 0
        """How many events were outside."""
        self._source, self._since, self._until = source, since, until

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Give the batches of the source after a position, less what is outside."""
        for batch in self._source.batches(position):
            kept = np.flatnonzero(self._holds(batch.events))
            self.dropped += len(batch.events) - len(kept)
            bad = [one._replace(row=int(np.searchsorted(kept, one.row))) for one in batch.bad]
            events, origin = batch.events.take(kept), _origin(batch, kept)
            yield Batch(events, bad, batch.position, batch.records, origin)

    def fraction(self) -> float | None:
        """Give that of the source."""
        return self._source.fraction()

    def _holds(self, events: Events) -> NDArray[np.bool_]:
        inside = np.ones(len(events), bool)
        if self._since is not None:
            inside &= events.times >= self._since
        if self._until is not None:
            inside &= events.times < self._until
        return inside


def _origin(batch: Batch, kept: NDArray[np.intp]) -> Callable[[int], Origin]:
    return lambda row: batch.origin(int(kept[row]))
