"""Opening a file as a sink, whatever its format.

Governing rule: the name tells how rows are written; whether the file is made
whole at the end, or grows and can be resumed, is told by who opens it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers_connectors.files.base import FileSink
from abers_connectors.files.compression import packer
from abers_connectors.files.naming import STANDARD, kind_of
from abers_connectors.files.parquet_rows import ParquetParts, WholeParquet
from abers_connectors.files.places import Appended, Stream, Whole, is_stream
from abers_connectors.files.rows import encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import msgspec

    from abers_connectors.files.places import Place
    from abers_connectors.files.rows import Encoder
    from abers_connectors.records import Position

__all__ = ["FileSink", "TextSink", "open_sink"]

_MEMBER = 1 << 20  # bytes before compression: large enough to compress well


def open_sink(  # noqa: PLR0913 - what is known of an output
    path: str,
    kind: type[msgspec.Struct],
    *,
    format: str | None = None,  # noqa: A002 - what the configuration calls it
    resumable: bool = False,
    position: Position | None = None,
    derived: bool = False,
) -> FileSink:
    """Open a file, or standard output, as a sink.

    Parameters
    ----------
    path
        The file, or "-" for standard output; its suffix tells format and compression.
    kind
        The type of the rows.
    format
        "csv", "jsonl" or "parquet", if the suffix does not tell; JSON Lines for "-".
    resumable
        False: the file appears when the sink is closed. True: it grows, `commit` gives
        positions, and in place of one Parquet file there is a directory of them, one for
        each commit. Standard output, pipes and devices are written directly either way,
        and nothing can be taken back there.
    position
        Of a resumable file, where to go on: what came after is removed. Without one an old
        file is replaced.
    derived
        Whether the path is made of another one, so that no link there is followed.

    Returns
    -------
    FileSink
        Also a context manager, which closes the sink, or discards it if something fails.

    Raises
    ------
    ParameterError
        If the format is unknown, Parquet as a stream, or there is no such directory.
    StateError
        If the file has less than the position says.
    MissingExtraError
        If the format needs a library that is not installed.
    """
    found = kind_of(path, format or ("jsonl" if path == STANDARD else None))
    if found.format == "parquet":
        if is_stream(path):
            msg = f"output {path} is a pipe or a device, and Parquet is no stream; write JSON Lines"
            raise ParameterError(msg)
        if resumable:
            return ParquetParts(path, kind, position)
        return WholeParquet(path, kind, derived=derived)
    pack = packer(found.compression)
    if is_stream(path):
        place: Place = Stream(path)
    else:
        place = (
            Appended(path, position, derived=derived) if resumable else Whole(path, derived=derived)
        )
    return TextSink(place, encoder(kind, found.format), pack)


class TextSink(FileSink):
    """Rows as lines in a file.

    Parameters
    ----------
    place
        Where the bytes go.
    rows
        Makes bytes of rows.
    pack
        Makes a complete member of a compressed file of bytes, so that the file can be cut
        between any two of them.
    """

    def __init__(self, place: Place, rows: Encoder, pack: Callable[[bytes], bytes]) -> None:
        self._place, self._rows, self._pack = place, rows, pack
        self._buffer = bytearray(b"" if place.size else rows.header)

    def write(self, rows: Sequence[msgspec.Struct]) -> None:
        """Take some rows."""
        self._buffer += self._rows.encode(rows)
        if len(self._buffer) >= _MEMBER:
            self._pass_on()

    def commit(self) -> Position:
        """Make all rows durable, and say where they end."""
        if self._buffer:
            self._pass_on()
        return self._place.commit()

    def close(self) -> None:
        """Commit, and take no more."""
        if self._buffer or not self._place.size:  # a compressed file has one member at least
            self._pass_on()
        self._place.close()

    def discard(self) -> None:
        """Close without a commit."""
        self._place.discard()

    def _pass_on(self) -> None:
        self._place.write(self._pack(bytes(self._buffer)))
        self._buffer.clear()
