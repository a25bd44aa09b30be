"""A source and a sink in memory.

Governing rule: they keep the same promises as those on files, so what runs on
one runs on the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from abers_connectors.records import Batch, Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers_connectors.records import Position

__all__ = ["MemorySink", "MemorySource"]

T = TypeVar("T")


class MemorySource(Generic[T]):
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
    >>> source = MemorySource(["a", "b", "c"], size=2)
    >>> [list(batch.events) for batch in source.batches()]
    [['a', 'b'], ['c']]
    >>> [list(batch.events) for batch in source.batches({"records": 1})]
    [['b', 'c']]
    """

    def __init__(self, events: Sequence[T], *, size: int = 5000, name: str = "memory") -> None:
        self.name = name
        self._events, self._size, self._done = events, size, 0

    def batches(self, position: Position | None = None) -> Iterator[Batch[T]]:
        """Give the batches after a position, a number of events to be skipped."""
        start = position["records"] if position else 0
        for first in range(start, len(self._events), self._size):
            events = self._events[first : first + self._size]
            self._done = first + len(events)
            yield Batch(events, (), {"records": self._done}, len(events), self._origins(first))

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
