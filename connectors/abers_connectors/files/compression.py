"""Streams compressed with gzip or zstd.

A compressed output is a sequence of complete members (gzip) or frames (zstd), so the file can be
cut between any two of them. A compressed input that ends within a member is damaged.
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
_PIECE = 1 << 10  # bytes of zstd; 4 may expand to 128 KiB: at most 32 MiB together


class DamagedError(RecordError):
    """Compressed data that is truncated or damaged."""


class _Readable(Protocol):
    def read1(self, size: int, /) -> bytes: ...


def chunks(file: BinaryIO, compression: str | None) -> Iterator[bytes]:
    """Read a file in pieces of about `CHUNK` bytes, or as they come from a pipe.

    The compression is "gzip", "zstd", or None. Truncated or damaged data is a DamagedError, after
    all of it that is readable.
    """
    if compression is None:
        while chunk := file.read1(CHUNK):  # type: ignore[attr-defined]
            yield chunk
        return
    unpacked, failure = _decompressed(file, compression), None
    while failure is None:
        chunk, failure = _next_chunk(unpacked)
        if not chunk and failure is None:
            return
        # A few bytes may expand to millions of lines; they are not all made at once.
        step = CHUNK if len(chunk) > 2 * CHUNK else 2 * CHUNK
        yield from (chunk[start : start + step] for start in range(0, len(chunk), step))
    msg = f"the compressed data is cut off or damaged ({failure}); copy the file again"
    raise DamagedError(msg) from failure


def _decompressed(file: BinaryIO, compression: str) -> _Readable:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=file)
    return _ZstdStream(file)


class _ZstdStream:
    """Reads frame after frame, and refuses an incomplete last frame."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._zstd = file, extra("zstandard", "zstd")
        self._new = self._zstd.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._packed = b""

    def read1(self, _size: int, /) -> bytes:
        """Return some decompressed bytes, none at the end."""
        found = b""
        while not found:
            self._packed = self._packed or self._file.read(_PIECE)
            if not self._packed:
                if self._frame is None:
                    return b""
                msg = "the file ends within a frame"
                raise EOFError(msg)
            found = self._decompress()
        return found

    def _decompress(self) -> bytes:
        frame = self._frame or self._new()
        try:
            found: bytes = frame.decompress(self._packed)
        except self._zstd.ZstdError as error:
            raise EOFError(str(error)) from None
        self._packed = frame.unused_data if frame.eof else b""
        self._frame = None if frame.eof else frame
        return found


def _next_chunk(unpacked: _Readable) -> tuple[bytes, Exception | None]:
    """Return about a chunk, and the error that ends the stream, if any."""
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
    """Return a function that compresses bytes into a complete member or frame.

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
