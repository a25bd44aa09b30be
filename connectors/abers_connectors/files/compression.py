"""gzip and zstd, read in pieces and written in pieces.

Governing rule: what is written is a row of complete members (gzip) or frames
(zstd), so a file may be cut between any two of them; what is read may be such a
row, and one that ends within a member is damaged, never just short.
"""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from abers.exceptions import RecordError
from abers_connectors.extras import extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CHUNK", "DamagedError", "chunks", "packer"]

CHUNK = 1 << 19  # about 5,000 records of 100 bytes
_LEVEL = 6
_PIECE = 1 << 10  # of zstd, where 4 bytes may stand for 128 KiB: 32 MiB at most come of it


class DamagedError(RecordError):
    """Compressed data is cut off or damaged."""


class _Readable(Protocol):
    def read1(self, size: int, /) -> bytes: ...


def chunks(file: BinaryIO, compression: str | None) -> Iterator[bytes]:
    """Read a file in pieces, as they come from a pipe, or of about `CHUNK` bytes.

    Parameters
    ----------
    file
        A buffered file.
    compression
        "gzip", "zstd", or None.

    Yields
    ------
    bytes
        Never empty.

    Raises
    ------
    DamagedError
        If compressed data is cut off or damaged, after all that could be read of it.
    """
    if compression is None:
        while chunk := file.read1(CHUNK):  # type: ignore[attr-defined]
            yield chunk
        return
    unpacked, failure = _unpacked(file, compression), None
    while failure is None:
        chunk, failure = _gathered(unpacked)
        if not chunk and failure is None:
            return
        # What few bytes stand for may be millions of lines: not all of them are made at once.
        step = CHUNK if len(chunk) > 2 * CHUNK else 2 * CHUNK
        yield from (chunk[start : start + step] for start in range(0, len(chunk), step))
    msg = f"the compressed data is cut off or damaged ({failure})"
    raise DamagedError(msg) from failure


def _unpacked(file: BinaryIO, compression: str) -> _Readable:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=file)
    return _Zstd(file)


class _Zstd:
    """Reads frame after frame, and knows whether the last one is complete."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._zstd = file, extra("zstandard", "zstd")
        self._new = self._zstd.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._packed = b""

    def read1(self, _size: int, /) -> bytes:
        """Give what comes of some more bytes; nothing at the end."""
        found = b""
        while not found:
            self._packed = self._packed or self._file.read(_PIECE)
            if not self._packed:
                if self._frame is None:
                    return b""
                msg = "the file ends within a frame"
                raise EOFError(msg)
            found = self._unpacked()
        return found

    def _unpacked(self) -> bytes:
        frame = self._frame or self._new()
        try:
            found: bytes = frame.decompress(self._packed)
        except self._zstd.ZstdError as error:
            raise EOFError(str(error)) from None
        self._packed = frame.unused_data if frame.eof else b""
        self._frame = None if frame.eof else frame
        return found


def _gathered(unpacked: _Readable) -> tuple[bytes, Exception | None]:
    """Read about a chunk, and what kept us from reading on."""
    parts: list[bytes] = []
    size = 0
    try:
        while size < CHUNK and (part := unpacked.read1(CHUNK)):
            parts.append(part)
            size += len(part)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        return b"".join(parts), error
    return b"".join(parts), None


def packer(compression: str | None) -> Callable[[bytes], bytes]:
    """Give what makes a complete member or frame of some bytes.

    Examples
    --------
    >>> pack = packer("gzip")
    >>> gzip.decompress(pack(b"one ") + pack(b"two"))
    b'one two'
    """
    if compression is None:
        return lambda data: data
    if compression == "gzip":
        return lambda data: gzip.compress(data, _LEVEL, mtime=0)
    compress: Callable[[bytes], bytes] = extra("zstandard", "zstd").ZstdCompressor().compress
    return compress
