"""A source in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from abers.stream import Event, Events, Observation
from abers.stream.cells import column
from abers_connectors.sources.base import Batch, Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers_connectors.sources.base import Position


class Labelled(NamedTuple):
    """An observation of a historical stream with its label."""

    observation: Observation
    value: Any  # the label, None if it is not known yet
    time: int | None = None  # of the label; None if a delay decides


def events_of(rows: Sequence[Event | Labelled]) -> Events:
    """Return rows as columns; the labels of labelled observations become `awaited`."""
    if not rows or not isinstance(rows[0], Labelled):
        return Events.of(cast("Sequence[Event]", rows))
    observations, values, times = zip(*cast("Sequence[Labelled]", rows), strict=True)
    known = None if times[0] is None else column(times)
    return replace(Events.of(observations), awaited=column(values), awaited_times=known)


class MemorySource:
    """Events, or labelled observations, of a sequence in batches of some size."""

    def __init__(
        self, events: Sequence[Event | Labelled], *, size: int = 5000, name: str = "memory"
    ) -> None:
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
