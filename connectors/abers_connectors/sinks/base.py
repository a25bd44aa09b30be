"""The contract of a sink, a sink in memory, and the registry of sinks.

A sink takes rows of one type. `commit` makes the rows written so far
durable and returns their position; a sink that is opened at that position drops what was written
after it. At the end of a `with` block a sink is closed, or discarded if an error was raised there.
`close` and `discard` may be called twice.

A sink is named by a path with a suffix (".jsonl", ".csv",
".parquet", the first two also with ".gz" or ".zst"), by "-" for standard output, or by a URL with a
registered scheme. A new sink is a module and one line in `SINKS`; a user's package calls
`SINKS.register`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

from abers_connectors.files import Openers, default_format, is_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import msgspec

    from abers_connectors.sources.base import Position

    SinkOpener: TypeAlias = "Callable[[str, type[msgspec.Struct], SinkOptions], Sink]"

__all__ = ["SINKS", "LazySink", "MemorySink", "Sink", "SinkOptions", "open_sink"]


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


SINKS: Openers[SinkOpener] = Openers(
    {
        "csv": "abers_connectors.sinks.rows:open_text",
        "jsonl": "abers_connectors.sinks.rows:open_text",
        "parquet": "abers_connectors.sinks.rows:open_parquet",
    }
)


def open_sink(
    name: str,
    row_type: type[msgspec.Struct],
    options: SinkOptions = SinkOptions(),
) -> Sink:
    """Open the sink of a name (a path, "-", or a URL) for rows of a type.

    A ParameterError is raised if the name is unknown, names Parquet as a stream, or the directory
    is missing; a StateError, if the output has less than the position says.
    """
    if options.format is None:
        options = replace(options, format=default_format(name))
    return SINKS.find(name, options.format)(name, row_type, options)
