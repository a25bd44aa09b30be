"""MessagePack in pieces: what a value is encoded to, without all of it in memory at once.

Governing rule: the pieces, one behind the other, are the bytes that msgspec makes of the whole
value, so whoever reads them cannot tell.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.exceptions import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from abers._sealed import Piece

__all__ = ["ARRAY", "BINARY", "MAP", "TEXT", "fields", "header", "pieces", "several"]


class _Kind(NamedTuple):
    """How MessagePack begins a value of a kind: by its size, in as few bytes as can be."""

    short: int  # with a size below `below` in the same byte
    below: int
    codes: tuple[int | None, int, int]  # before a size of 1, 2 and 4 bytes


BINARY = _Kind(0, 0, (0xC4, 0xC5, 0xC6))
TEXT = _Kind(0xA0, 32, (0xD9, 0xDA, 0xDB))
ARRAY = _Kind(0x90, 16, (None, 0xDC, 0xDD))
MAP = _Kind(0x80, 16, (None, 0xDE, 0xDF))

_encode = msgspec.msgpack.Encoder().encode


def header(kind: _Kind, size: int) -> bytes:
    """Begin a value of so many bytes or items."""
    if size < kind.below:
        return bytes([kind.short | size])
    for code, letter, bits in zip(kind.codes, "BHI", (8, 16, 32), strict=True):
        if code is not None and size < 1 << bits:
            return struct.pack(f">B{letter}", code, size)
    msg = f"a part of the state has {size:,} bytes or items, more than a snapshot can hold"
    raise StateError(msg)


def pieces(value: Any) -> Iterator[Piece]:  # noqa: ANN401 - whatever msgspec encodes
    """Encode a value; the bytes that it holds in lists are pieces of their own."""
    if isinstance(value, bytes | memoryview):
        yield header(BINARY, len(value))
        yield value
    elif type(value) in {list, tuple}:
        yield from several(len(value), value)
    else:
        yield _encode(value)


def several(count: int, values: Iterable[Any]) -> Iterator[Piece]:
    """Encode so many values as an array, each made when it is its turn."""
    yield header(ARRAY, count)
    for value in values:
        yield from pieces(value)


def fields(values: Mapping[str, Iterable[Piece]]) -> Iterator[Piece]:
    """Encode a structure, given each of its fields in pieces."""
    yield header(MAP, len(values))
    for name, value in values.items():
        yield _encode(name)
        yield from value
