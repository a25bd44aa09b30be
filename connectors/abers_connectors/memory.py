"""A source and a sink in memory.

Governing rule: they keep the same promises as those on files, so what runs on
one runs on the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from abers_connectors.records import Batch, Origin, gathered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers_connectors.records import Position, Row

__all__ = ["MemorySink", "MemorySource"]


class MemorySource:
    """Events from a sequence.

    Parameters
    ----------
    events
        The events, or labelled observations.
    size
        How many make a batch.
    name
        What messages call it.

    Examples
    --------
    >>> from abers.stream import Observation
    >>> source = MemorySource([Observation(one, 5, score=0.5) for one in "abc"], size=2)
    >>> [batch.events.ids.tolist() for batch in source.batches()]
    [['a', 'b'], ['c']]
    >>> [batch.events.ids.tolist() for batch in source.batches({"records": 1})]
    [['b', 'c']]
    """

    def __init__(self, events: Sequence[Row], *, size: int = 5000, name: str = "memory") -> None:
        self.name = name
        self._events, self._size, self._done = events, size, 0

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Give the batches after a position, a number of events to be skipped."""
        start = position["records"] if position else 0
        for first in range(start, len(self._events), self._size):
            events = self._events[first : first + self._size]
            self._done = first + len(events)
            yield Batch(
                gathered(events), (), {"records": self._done}, len(events), self._origins(first)
            )

    def fraction(self) -> float | None:
        """Give the share of the events that have been read."""
        return self._done / len(self._events) if self._events else None

    def _origins(self, first: int) -> Callable[[int], Origin]:
        def origin(row: int) -> Origin:
            raw = msgspec.json.encode(self._events[first + row]).decode()
            return Origin(f"{self.name} event {first + row + 1}", raw)

        return origin


class MemorySink:
    """Rows into a list.

    Parameters
    ----------
    position
        Where to go on: `rows` is cut there.
    rows
        The rows of an earlier sink.

    Examples
    --------
    >>> sink = MemorySink()
    >>> sink.write(["a", "b"])
    >>> position = sink.commit()
    >>> sink.write(["c"])
    >>> MemorySink(position, sink.rows).rows
    ['a', 'b']
    """

    def __init__(
        self, position: Position | None = None, rows: Sequence[msgspec.Struct] = ()
    ) -> None:
        self.rows = list(rows[: position["rows"]]) if position else []

    def write(self, rows: Sequence[msgspec.Struct]) -> None:
        """Take some rows."""
        self.rows += rows

    def commit(self) -> Position:
        """Say how many rows there are."""
        return {"rows": len(self.rows)}

    def close(self) -> None:
        """Do nothing."""

    def discard(self) -> None:
        """Do nothing: who goes on from a position gets what was there then."""
