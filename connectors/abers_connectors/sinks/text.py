"""Rows as JSON Lines or CSV, in a file or a stream."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.stream.row_columns import columns_of
from abers_connectors.files.compression import packer
from abers_connectors.files.formats import file_format, is_stream
from abers_connectors.sinks.base import Sink
from abers_connectors.sinks.destination import AppendedFile, OutputStream, WholeFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from abers_connectors.files.formats import FileFormat
    from abers_connectors.sinks.base import SinkOptions
    from abers_connectors.sinks.destination import Destination
    from abers_connectors.sources.base import Position

__all__ = ["Encoder", "TextSink", "open_text", "row_encoder"]

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
