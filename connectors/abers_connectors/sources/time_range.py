"""The part of a stream in a range of event time, or of some models.

Events outside the part are counted and dropped. A source that knows what lies outside does not read
it. Positions are those of the whole stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from abers_connectors.sources.base import Batch
from abers_connectors.sources.row_groups import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from numpy.typing import NDArray

    from abers.stream import Events
    from abers_connectors.sources.base import Origin, Position, Source

__all__ = ["TimeRange", "narrowed"]


@runtime_checkable
class _Narrowable(Protocol):
    """A source that need not read what lies outside a part."""

    def within(self, part: Part) -> Source: ...


def narrowed(source: Source, part: Part) -> Source:
    """Return a source that does not read what it knows to be outside a part, if it can."""
    return source.within(part) if isinstance(source, _Narrowable) else source


class TimeRange:
    """The events of a source at or after one time and before another, in milliseconds.

    With models, only those of these models.
    """

    def __init__(
        self,
        source: Source,
        since: int | None = None,
        until: int | None = None,
        models: Collection[str] = (),
    ) -> None:
        self.name = source.name
        self.dropped = 0  # events outside the part that were read
        self._source = narrowed(source, Part(since, until, models))
        self._since, self._until, self._models = since, until, frozenset(models)

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position, without the events outside the part."""
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
        if self._models:
            wanted = (name in self._models for name in events.models.tolist())
            inside &= np.fromiter(wanted, bool, len(events))
        return inside


def _origin(batch: Batch, kept: NDArray[np.intp]) -> Callable[[int], Origin]:
    return lambda row: batch.origin(int(kept[row]))
