"""A sink in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers_connectors.sinks.base import Sink

if TYPE_CHECKING:
    from collections.abc import Sequence

    import msgspec

    from abers_connectors.sources.base import Position

__all__ = ["MemorySink"]


class MemorySink(Sink):
    """Rows in a list; those of an earlier sink are cut at the position to continue from.

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
        """Add rows."""
        self.rows += rows

    def commit(self) -> Position:
        """Return the number of rows."""
        return {"rows": len(self.rows)}

    def close(self) -> None:
        """Do nothing."""

    def discard(self) -> None:
        """Do nothing: a sink that continues from a position drops the rows after it."""
