"""A source in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from abers_connectors.mapping.rows import events_of
from abers_connectors.sources.base import Batch, Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers_connectors.mapping.rows import Row
    from abers_connectors.sources.base import Position


class MemorySource:
    """Events, or labelled observations, of a sequence in batches of some size."""

    def __init__(self, events: Sequence[Row], *, size: int = 5000, name: str = "memory") -> None:
        self.name = name
        self._events, self._size, self._done = events, size, 0

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position, which is a number of events to skip."""
        start = position["records"] if position else 0
        for first in range(start, len(self._events), self._size):
            events = self._events[first : first + self._size]
            self._done = first + len(events)
            yield Batch(
                events_of(events), (), {"records": self._done}, len(events), self._origins(first)
            )

    def fraction(self) -> float | None:
        """Return the share of the events that has been read."""
        return self._done / len(self._events) if self._events else None

    def _origins(self, first: int) -> Callable[[int], Origin]:
        def origin(row: int) -> Origin:
            raw = msgspec.json.encode(self._events[first + row]).decode()
            return Origin(f"{self.name} event {first + row + 1}", raw)

        return origin
