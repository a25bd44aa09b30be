"""The contract of a sink.

A sink takes rows of one type. `commit` makes the rows written so far durable and returns their
position; a sink that is opened at that position drops what was written after it. At the end of a
`with` block a sink is closed, or discarded if an error was raised there. `close` and `discard` may
be called twice. See `sinks.registry` for the names of sinks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from abers_connectors.files.formats import is_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import msgspec

    from abers_connectors.sources.base import Position

__all__ = ["LazySink", "Sink", "SinkOptions"]


class Sink(ABC):
    """A destination of predictions, outcomes or dead letters."""

    @abstractmethod
    def write(self, rows: Sequence[msgspec.Struct]) -> None:
        """Write rows of the type that the sink was opened for."""

    @abstractmethod
    def commit(self) -> Position | None:
        """Make all rows durable and return their position; None if there is nothing yet."""

    @abstractmethod
    def close(self) -> None:
        """Commit and close the sink."""

    @abstractmethod
    def discard(self) -> None:
        """Close the sink; remove what was not committed, as far as possible."""

    def __enter__(self) -> Self:
        """Return the sink."""
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Close the sink, or discard it after an error."""
        if error is None:
            self.close()
        else:
            self.discard()


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """How rows are written.

    Parameters
    ----------
    format
        "csv", "jsonl" or "parquet", if the name of a file does not say it; "-" is JSON Lines by
        default.
    resumable
        Whether the output can be continued. If not, a file appears when the sink is closed. If
        so, it grows, and in place of one Parquet file there is a directory with a file for each
        commit. Standard output, pipes and devices are written directly in both cases, and cannot
        be cut.
    position
        Where to continue a resumable output: what came later is removed. Without a position an
        old file is replaced.
    derived
        Whether the name is derived from another, so that a link there is not followed.
    """

    format: str | None = None
    resumable: bool = False
    position: Position | None = None
    derived: bool = False


class LazySink(Sink):
    """A file that is opened with the first row, so that none is empty.

    A file of the same name from an earlier run is removed if there is no row.
    """

    def __init__(self, opener: Callable[[], Sink], path: str) -> None:
        self._opener, self._path = opener, path
        self._sink: Sink | None = None

    def write(self, rows: Sequence[msgspec.Struct]) -> None:
        """Write rows."""
        if self._sink is None:
            self._sink = self._opener()
        self._sink.write(rows)

    def commit(self) -> Position | None:
        """Commit the rows; return None without rows."""
        return None if self._sink is None else self._sink.commit()

    def close(self) -> None:
        """Close the file, or remove that of an earlier run."""
        if self._sink is not None:
            self._sink.close()
        elif not is_stream(self._path):
            Path(self._path).unlink(missing_ok=True)

    def discard(self) -> None:
        """Discard the file, if there is one."""
        if self._sink is not None:
            self._sink.discard()
