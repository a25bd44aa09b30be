"""Rows as JSON Lines, CSV or Parquet.

Rows as Parquet: one file, or a directory of numbered files. A Parquet file is complete or missing.
So a resumable sink writes a file for each commit, and its position is their number.
"""

from __future__ import annotations

import csv
import io
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.exceptions import ParameterError, StateError
from abers.stream.outputs import REPEATED, ArrowRows, columns_of
from abers_connectors.extras import extra
from abers_connectors.files import PARTS, file_format, is_stream, packer
from abers_connectors.sinks.base import Sink
from abers_connectors.sinks.destination import (
    AppendedFile,
    OutputStream,
    WholeFile,
    last_block,
    named_errors,
    require_directory,
    sync_directory,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from abers_connectors.files import FileFormat
    from abers_connectors.sinks.base import SinkOptions
    from abers_connectors.sinks.destination import Destination
    from abers_connectors.sources.base import Position

__all__ = ["Encoder", "ParquetFileSink", "TextSink", "open_parquet", "open_text", "row_encoder"]

_MEMBER = 1 << 20  # bytes before compression, enough to compress well


def open_text(path: str, row_type: type[msgspec.Struct], options: SinkOptions) -> TextSink:
    """Open a file or a stream; see `registry.open_sink`."""
    found = file_format(path, options.format)
    destination: Destination
    if is_stream(path):
        destination = OutputStream(path)
    elif options.resumable:
        destination = AppendedFile(path, options.position, derived=options.derived)
    else:
        destination = WholeFile(path, derived=options.derived)
    return TextSink(destination, row_encoder(row_type, found), packer(found.compression))


class Encoder(NamedTuple):
    """Converts rows to bytes, which follow the header of a file."""

    header: bytes
    encode: Callable[[Sequence[msgspec.Struct]], bytes]


class TextSink(Sink):
    """Rows as lines.

    `pack` compresses bytes into a complete member, so that the file can be cut between members.
    """

    def __init__(
        self, destination: Destination, encoder: Encoder, pack: Callable[[bytes], bytes]
    ) -> None:
        self._destination, self._encoder, self._pack = destination, encoder, pack
        self._buffer = bytearray(b"" if destination.size else encoder.header)

    def write(self, rows: Sequence[msgspec.Struct]) -> None:
        """Write rows."""
        self._buffer += self._encoder.encode(rows)
        if len(self._buffer) >= _MEMBER:
            self._flush()

    def commit(self) -> Position:
        """Make all rows durable, and return where they end."""
        if self._buffer:
            self._flush()
        return self._destination.commit()

    def close(self) -> None:
        """Commit, and close the destination."""
        if self._buffer or not self._destination.size:  # a compressed file has a member at least
            self._flush()
        self._destination.close()

    def discard(self) -> None:
        """Close without a commit."""
        self._destination.discard()

    def _flush(self) -> None:
        self._destination.write(self._pack(bytes(self._buffer)))
        self._buffer.clear()


def row_encoder(row_type: type[msgspec.Struct], file: FileFormat) -> Encoder:
    """Return the encoder of rows to JSON Lines, or to CSV below a header."""
    if file.format != "csv":
        encode_lines = msgspec.json.Encoder().encode_lines
        return Encoder(b"", lambda rows: encode_lines([*rows]))
    columns = columns_of(row_type)

    def encode(rows: Sequence[msgspec.Struct]) -> bytes:
        values = [column.values(rows).tolist() for column in columns]
        return _csv_lines(zip(*values, strict=True), file.separator)

    return Encoder(_csv_lines([[column.name for column in columns]], file.separator), encode)


def _csv_lines(rows: Iterable[Sequence[Any]], separator: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


_GROUP = 100_000  # rows of a row group
_SOUGHT = ("time", *REPEATED)  # columns with a minimum and maximum by which readers skip row groups


def open_parquet(path: str, row_type: type[msgspec.Struct], options: SinkOptions) -> Sink:
    """Open a file, or a directory of files; see `registry.open_sink`."""
    file_format(path, options.format)
    if is_stream(path):
        msg = f"output {path} is a pipe or a device, which cannot hold Parquet; write JSON Lines"
        raise ParameterError(msg)
    if options.resumable:
        return ParquetDirectorySink(path, row_type, options.position)
    return ParquetFileSink(path, row_type, derived=options.derived)


class ParquetFileSink(Sink):
    """A file that appears under its name when it is complete; nested values are JSON."""

    def __init__(self, path: str, row_type: type[msgspec.Struct], *, derived: bool = False) -> None:
        self._arrow = extra("pyarrow", "Parquet")
        self._arrow_rows = ArrowRows(row_type)
        self._schema = self._arrow_rows.schema
        self._file, self._name = WholeFile(path, derived=derived), path
        self._writer = extra("pyarrow.parquet", "Parquet").ParquetWriter(
            self._file.file,
            self._schema,
            # Trying dictionaries on numbers and ids costs most.
            use_dictionary=[name for name in self._schema.names if name in REPEATED],
            write_statistics=[name for name in self._schema.names if name in _SOUGHT],
        )
        self._pending: list[Any] = []  # record batches of the next row group
        self._rows = 0

    def write(self, rows: Sequence[msgspec.Struct]) -> None:
        """Write rows."""
        self._pending.append(self._arrow_rows.batch(rows))
        self._rows += len(rows)
        if self._rows >= _GROUP:
            self._write_group()

    def commit(self) -> Position:
        """Do nothing: the file appears at the end."""
        return {}

    def close(self) -> None:
        """Complete the file under its name."""
        if self._pending:
            self._write_group()
        with named_errors(self._name):
            self._writer.close()
        self._file.close()

    def discard(self) -> None:
        """Remove what was written."""
        with suppress(OSError):  # the writer finishes the file in any case
            self._writer.close()
        self._file.discard()

    def _write_group(self) -> None:
        table = self._arrow.Table.from_batches(self._pending, self._schema)
        with named_errors(self._name):
            self._writer.write_table(table, row_group_size=_GROUP)
        self._pending, self._rows = [], 0


class ParquetDirectorySink(Sink):
    """A directory of Parquet files, one for each commit that had rows.

    The directory is created if it is missing. Files after the position of the last commit are
    removed; without a position, all are. A StateError is raised if there are fewer files than the
    position says, or the last differs.
    """

    def __init__(
        self, path: str, row_type: type[msgspec.Struct], position: Position | None
    ) -> None:
        self._path, self._row_type = Path(path), row_type
        self._parts = position["parts"] if position else 0
        self._part: ParquetFileSink | None = None
        if self._path.is_file():
            msg = f"output {path} is a file, and a run that can be resumed writes a directory of "
            msg += "Parquet files; name another, or a .jsonl file"
            raise ParameterError(msg)
        require_directory(path, self._path.parent)
        self._path.mkdir(exist_ok=True)
        found = sorted(self._path.glob(PARTS))
        if others := {*self._path.glob("*.parquet")} - {*found}:
            msg = f"output {path} has {min(others).name}, which no run wrote; move it elsewhere: "
            msg += "all files of a directory are read as one table"
            raise StateError(msg)
        if [part.name for part in found[: self._parts]] != [*map(_name, range(self._parts))]:
            msg = f"output {path} lacks some of the {self._parts} files that were committed; "
            msg += "put them back, or remove state and outputs to start anew"
            raise StateError(msg)
        self._last = self._footer()
        if position and self._last != position["last"]:
            msg = f"output {path}: {_name(self._parts - 1)} is not what was written before; "
            msg += "put the file back, or remove state and outputs to start anew"
            raise StateError(msg)
        for part in found[self._parts :]:
            part.unlink()
        sync_directory(self._path)

    def write(self, rows: Sequence[msgspec.Struct]) -> None:
        """Write rows."""
        if self._part is None and rows:
            self._part = ParquetFileSink(
                str(self._path / _name(self._parts)), self._row_type, derived=True
            )
        if self._part is not None:
            self._part.write(rows)

    def commit(self) -> Position:
        """Complete a file of all rows since the last commit, and return the number of files."""
        if self._part is not None:
            self._part.close()
            self._part = None
            self._parts += 1
            self._last = self._footer()
        return {"parts": self._parts, "last": self._last}

    def _footer(self) -> str:
        """Return the hash of the end of the last file, which locates all its values."""
        if not self._parts:
            return ""
        part = self._path / _name(self._parts - 1)
        return last_block(part, part.stat().st_size)

    def close(self) -> None:
        """Commit and close the sink."""
        self.commit()

    def discard(self) -> None:
        """Remove the incomplete file."""
        if self._part is not None:
            self._part.discard()
            self._part = None


def _name(part: int) -> str:
    return f"part-{part:08d}.parquet"
