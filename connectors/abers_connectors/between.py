"""A part of a stream, by event time.

Governing rule: an event outside of the part is counted and otherwise as if it
had never been; positions are those of the whole.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from abers_connectors.records import Batch, Labelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers.stream.events import Event
    from abers_connectors.records import Origin, Position, Source

__all__ = ["Between"]

T = TypeVar("T", bound="Event | Labelled")


class Between(Generic[T]):
    """The events, or labelled observations, from one time on and before another.

    Parameters
    ----------
    source
        The whole.
    since, until
        Times in milliseconds; None leaves that side open.
    """

    def __init__(
        self, source: Source[T], since: int | None = None, until: int | None = None
    ) -> None:
        self.name = source.name
        self.dropped = 0
        """How many events were outside."""
        self._source, self._since, self._until = source, since, until

    def batches(self, position: Position | None = None) -> Iterator[Batch[T]]:
        """Give the batches of the source after a position, less what is outside."""
        for batch in self._source.batches(position):
            kept = [row for row, event in enumerate(batch.events) if self._holds(event)]
            self.dropped += len(batch.events) - len(kept)
            bad = [one._replace(row=bisect_left(kept, one.row)) for one in batch.bad]
            events = [batch.events[row] for row in kept]
            origin = _origin(batch, kept)
            yield Batch(events, bad, batch.position, batch.records, origin)

    def fraction(self) -> float | None:
        """Give that of the source."""
        return self._source.fraction()

    def _holds(self, event: T) -> bool:
        time = event.observation.time if isinstance(event, Labelled) else event.time
        return (self._since is None or time >= self._since) and (
            self._until is None or time < self._until
        )


def _origin(batch: Batch[Any], kept: Sequence[int]) -> Callable[[int], Origin]:
    return lambda row: batch.origin(kept[row])
