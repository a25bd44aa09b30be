"""The file of a journal: frames of events that reached the disk together, appended and read.

A file begins with the magic and the number of the frames before it. A frame has a head, with
checksums of the body and of itself, and the body: a journal entry and the position of the caller.

Each frame is on disk before the next is written. So only the last frame can be incomplete, and what
is wrong before an intact frame is damage. A disk writes whole sectors, so the last frame was cut by
a loss of power if it is too short, or a sector of it was never written; anything else is damage.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from abers.exceptions import ParameterError, StateError
from abers.serialization import REMEDY
from abers.stream.journal import JournalEntry  # noqa: TC001 - msgspec reads it
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "START",
    "Frames",
    "JournalFile",
    "JournalFrame",
    "file_head",
    "frame",
    "require_encodable",
    "require_head",
]

_MAGIC = b"abersDJ\x01"  # the last byte is the version
_FILE_HEAD = struct.Struct("<8sQI")  # magic, number of the frames before, checksum of both
_HEAD = struct.Struct("<4sIII")  # mark, bytes of the body, its checksum, checksum of these three
_CHECKED, _FILE_CHECKED = _HEAD.size - 4, _FILE_HEAD.size - 4
_MARK = b"\xabFr\x01"
_SECTOR = 512  # bytes, which a disk writes together
START = _FILE_HEAD.size
"""Where the first frame of a file begins."""


class JournalFrame(msgspec.Struct, array_like=True, frozen=True):
    """The body of a frame."""

    entry: JournalEntry
    position: Any


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(JournalFrame).decode


def frame(entry: JournalEntry, position: Any) -> bytes:  # noqa: ANN401 - of the caller
    """Return the bytes of a frame."""
    body = _encode(JournalFrame(entry, position))
    head = _HEAD.pack(_MARK, len(body), zlib.crc32(body), 0)[:_CHECKED]
    return head + zlib.crc32(head).to_bytes(4, "little") + body


def require_encodable(position: Any) -> None:  # noqa: ANN401 - of the caller
    """Raise a ParameterError if a position cannot be saved."""
    try:
        _encode(position)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        msg = f"position {shown(position)} cannot be saved ({error}); give what JSON can hold"
        raise ParameterError(msg) from None


def file_head(number: int) -> bytes:
    """Return how a file begins that has the frames from a number on."""
    head = _FILE_HEAD.pack(_MAGIC, number, 0)[:_FILE_CHECKED]
    return head + zlib.crc32(head).to_bytes(4, "little")


def require_head(data: bytes, number: int, name: str) -> None:
    """Raise a StateError unless bytes begin as a file with the frames from a number on."""
    if data[:START] == file_head(number):
        return
    if (
        data[: len(_MAGIC) - 1] == _MAGIC[:-1]
        and data[len(_MAGIC) - 1 : len(_MAGIC)] != _MAGIC[-1:]
    ):
        msg = (
            f"{name} is a journal of format {data[len(_MAGIC) - 1]}, and this abers reads format "
            f"{_MAGIC[-1]}; go on with the version of abers that wrote it"
        )
        raise StateError(msg)
    msg = f"{name} does not begin as a journal from frame {number:,} on; {REMEDY}"
    raise StateError(msg)


class Frames:
    """The frames of a part of a file, one after the other.

    Parameters
    ----------
    data
        Bytes of the file, from the beginning of a frame on.
    offset
        Where in the file they begin.
    name
        Path of the file, for errors.

    Attributes
    ----------
    end
        Where in the file the last frame that was read ends.
    """

    def __init__(self, data: bytes, offset: int, name: str) -> None:
        self._data, self._offset, self._name = data, offset, name
        self.end = offset

    def __iter__(self) -> Iterator[JournalFrame]:
        """Yield the frames as far as they are intact."""
        while (body := _body(self._data, self.end - self._offset)) is not None:
            self.end += _HEAD.size + len(body)
            try:
                yield _decode(body)
            except (msgspec.MsgspecError, ValueError) as error:
                what = f"{self._name}: the frame before byte {self.end:,} is garbled ({error})"
                msg = f"{what}; {REMEDY}"
                raise StateError(msg) from None

    def require_torn(self) -> None:
        """Raise a StateError if what is behind the frames is more than a frame that was cut."""
        at = self.end - self._offset
        if _has_frame(self._data, at) or not _is_cut(self._data[at:], self.end):
            self._refuse()

    def require_whole(self) -> None:
        """Raise a StateError if anything is behind the frames."""
        if self.end < self._offset + len(self._data):
            self._refuse()

    def _refuse(self) -> NoReturn:
        msg = f"{self._name} is damaged at byte {self.end:,}; {REMEDY}"
        raise StateError(msg)


def _length(data: bytes, at: int) -> int | None:
    """Return the length of the body of a frame; None if it has no intact head."""
    head = data[at : at + _HEAD.size]
    if len(head) < _HEAD.size or head[:4] != _MARK:
        return None
    _, length, _, checksum = _HEAD.unpack(head)
    return length if zlib.crc32(head[:_CHECKED]) == checksum else None


def _body(data: bytes, at: int) -> bytes | None:
    """Return the body of a frame; None if it is not intact."""
    length = _length(data, at)
    if length is None:
        return None
    start = at + _HEAD.size
    body = data[start : start + length]
    intact = len(body) == length and zlib.crc32(body) == _HEAD.unpack_from(data, at)[2]
    return body if intact else None


def _has_frame(data: bytes, at: int) -> bool:
    """Return whether there is an intact frame anywhere behind a place."""
    while (at := data.find(_MARK, at + 1)) >= 0:
        if _body(data, at) is not None:
            return True
    return False


def _is_cut(rest: bytes, offset: int) -> bool:
    """Return whether bytes at an offset of a file can be a frame that was written in part."""
    length = _length(rest, 0)
    if len(rest) < (_HEAD.size if length is None else _HEAD.size + length):
        return True
    first = _SECTOR - offset % _SECTOR
    sectors = [rest[:first], *(rest[i : i + _SECTOR] for i in range(first, len(rest), _SECTOR))]
    return any(not one.strip(b"\0") for one in sectors)


_sync = getattr(os, "fdatasync", os.fsync)  # which some systems lack; it writes the size, too


class JournalFile:
    """Appends bytes, and returns when they are on disk.

    Parameters
    ----------
    descriptor
        Of the file, which is closed with this object.
    size
        Bytes of the file that are kept; what is behind them is cut off.

    Attributes
    ----------
    size
        Number of bytes.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor, self.size = descriptor, size
        os.ftruncate(descriptor, size)
        _sync(descriptor)  # a process that was killed may have left frames that are not on disk

    def append(self, data: bytes) -> None:
        """Append bytes; if an OSError is raised, nobody knows which of them are on disk."""
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._descriptor, rest, self.size)
            self.size += written
            rest = rest[written:]
        _sync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
