"""MessagePack in pieces, so that an encoded value is never in memory as a whole.

The pieces, joined, are the bytes that msgspec encodes the whole value to.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.exceptions import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from abers.serialization import Piece

__all__ = ["ARRAY", "BINARY", "MAP", "TEXT", "encode", "encode_array", "encode_struct", "header"]


class _Kind(NamedTuple):
    """How MessagePack begins a value of a kind: with its size, in the fewest bytes."""

    short: int  # with a size below `below` in the same byte
    below: int
    codes: tuple[int | None, int, int]  # before a size of 1, 2 and 4 bytes


BINARY = _Kind(0, 0, (0xC4, 0xC5, 0xC6))
TEXT = _Kind(0xA0, 32, (0xD9, 0xDA, 0xDB))
ARRAY = _Kind(0x90, 16, (None, 0xDC, 0xDD))
MAP = _Kind(0x80, 16, (None, 0xDE, 0xDF))

_SCALARS = frozenset({bool, int, float, str, type(None)})

_encode_to_bytes = msgspec.msgpack.Encoder().encode


def header(kind: _Kind, size: int) -> bytes:
    """Return the first bytes of a value of so many bytes or items."""
    if size < kind.below:
        return bytes([kind.short | size])
    for code, letter, bits in zip(kind.codes, "BHI", (8, 16, 32), strict=True):
        if code is not None and size < 1 << bits:
            return struct.pack(f">B{letter}", code, size)
    msg = f"a part of the state has {size:,} bytes or items, more than a snapshot can hold"
    raise StateError(msg)


def encode(value: Any) -> Iterator[Piece]:  # noqa: ANN401 - anything msgspec encodes
    """Encode a value; bytes in lists are pieces of their own."""
    if isinstance(value, bytes | memoryview):
        yield header(BINARY, len(value))
        yield value
    elif type(value) in {list, tuple} and not _SCALARS.issuperset(map(type, value)):
        yield from encode_array(len(value), value)
    else:
        yield _encode_to_bytes(value)


def encode_array(count: int, values: Iterable[Any]) -> Iterator[Piece]:
    """Encode so many values as an array, each only when it is its turn."""
    yield header(ARRAY, count)
    for value in values:
        yield from encode(value)


def encode_struct(fields: Mapping[str, Iterable[Piece]]) -> Iterator[Piece]:
    """Encode a structure, its fields in pieces."""
    yield header(MAP, len(fields))
    for name, value in fields.items():
        yield _encode_to_bytes(name)
        yield from value
