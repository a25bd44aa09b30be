"""The wire format of a schema registry: a zero byte, the id of the schema in four bytes, a body.

Between id and body, a Protobuf record has the indexes of its message type within the file.
"""

from __future__ import annotations

from abers.stream.cells import BadRecordError

__all__ = ["HEAD", "head", "message_indexes", "schema_id"]

HEAD = 5
"""Bytes before the body."""

_MAX_DEPTH = 100  # of nested message types, as many as Protobuf's own parsers go down
_MAX_VARINT_BYTES = 5


def head(number: int) -> bytes:
    r"""Return the head of records of a schema.

    >>> head(7)
    b'\x00\x00\x00\x00\x07'
    """
    return b"\0" + number.to_bytes(4)


def schema_id(raw: bytes) -> int:
    r"""Return the schema id of a record, or raise a BadRecordError if it has none.

    >>> schema_id(b"\x00\x00\x00\x00\x07body")
    7
    """
    if len(raw) < HEAD or raw[0]:
        begins = f"begins with {raw[:HEAD].hex(' ')}" if raw else "is empty"
        detail = (
            f"the record {begins}, not with a zero byte and the id of its schema in four bytes; "
            'write it with a serializer of the schema registry, or set input.format = "json"'
        )
        raise BadRecordError("bad-wire-format", detail)
    return int.from_bytes(raw[1:HEAD])


def message_indexes(raw: bytes) -> tuple[tuple[int, ...], int]:
    r"""Return the indexes of the message type of a Protobuf record, and where its body begins.

    The indexes are those of the type in the file, and of each nested type within its parent. The
    first type of a file, the usual one, is written as a single zero.

    >>> message_indexes(b"\x00\x00\x00\x00\x07" + b"\x00" + b"body")
    ((0,), 6)
    >>> message_indexes(b"\x00\x00\x00\x00\x07" + b"\x04\x02\x00" + b"body")
    ((1, 0), 8)
    """
    count, at = _varint(raw, HEAD)
    if not 0 <= count <= _MAX_DEPTH:
        raise _BAD_INDEXES
    found = []
    for _ in range(count):
        index, at = _varint(raw, at)
        if index < 0:
            raise _BAD_INDEXES
        found.append(index)
    return tuple(found) or (0,), at


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """Read a signed number in zigzag form; return it, and where the next begins."""
    found = 0
    for shift, byte in enumerate(raw[at : at + _MAX_VARINT_BYTES]):
        found |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
            return (found >> 1) ^ -(found & 1), at + shift + 1
    raise _BAD_INDEXES


_BAD_INDEXES = BadRecordError(
    "bad-wire-format",
    "after the schema id come no indexes of a message type; write the record with the registry's "
    "serializer of Protobuf",
)
