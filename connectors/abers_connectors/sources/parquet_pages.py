"""The pages of a Parquet file, from its footer and page headers, and their strings.

Sizes are those of the page headers, by which readers allocate memory; the totals in the footer may
differ. Headers are in Thrift's compact protocol, and a field counts only with the type that the
format gives it, as in every reader.

Lengths of strings in the decompressed pages of a Parquet file. A page is decompressed here only
after its size is known to be within the limit.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from abers.exceptions import RecordError
from abers_connectors.extras import extra

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "DELTA_LENGTH",
    "DELTA_STRINGS",
    "DICTIONARY",
    "Chunk",
    "Page",
    "RowGroup",
    "Statistics",
    "has_excess_lengths",
    "longest",
    "pages",
    "payload",
    "row_groups",
]

DATA, DICTIONARY, DATA_V2 = 0, 2, 3
_TRUE, _FALSE, _BYTE, _I32, _I64, _DOUBLE, _BINARY = 1, 2, 3, 5, 6, 7, 8
_LISTS, _MAP, _STRUCT = (9, 10), 11, 12
_MAX_LEVELS = 16  # of nested values
_PEEK, _LARGEST_HEADER = 1 << 8, 1 << 20  # bytes of a header: usually, and at most
_BITS = 64


class Page(NamedTuple):
    """The header of a page."""

    kind: int  # `DATA`, `DICTIONARY`, `DATA_V2`, or another number, which readers skip
    offset: int  # start of its bytes in the file, after the header
    packed: int  # size in the file
    size: int  # decompressed
    values: int  # nulls included
    encoding: int  # number in the format
    levels: int = 0  # bytes before the values of a `DATA_V2` page, which are never compressed
    plain: bool = False  # whether the values of a `DATA_V2` page are not compressed either


class Statistics(NamedTuple):
    """What a writer says of the values of a column in a row group, as bytes of the format."""

    least: bytes
    most: bytes
    nulls: int | None
    signed: bool  # whether the order is that of signed bytes, which is that of numbers only


class Chunk(NamedTuple):
    """The pages of a column in a row group, according to the footer."""

    path: str  # of the column, with dots
    codec: int  # number of the compression in the format
    values: int  # pages after so many values are not read
    start: int
    length: int
    statistics: Statistics | None


class RowGroup(NamedTuple):
    """A row group, according to the footer."""

    columns: list[Chunk]
    rows: int


def row_groups(footer: bytes) -> list[RowGroup]:
    """Return the row groups of a file; raise a RecordError if the footer is damaged.

    pyarrow ends the process where a footer contradicts itself.
    """
    try:
        whole, _ = _read_struct(footer, 0, _MAX_LEVELS)
        return [_read_group(group) for group in _structs(whole, 4)]
    except (IndexError, KeyError, ValueError):
        msg = "the footer is damaged; write the file again"
        raise RecordError(msg) from None


def _structs(fields: dict[tuple[int, int], Any], number: int) -> list[Any]:
    kind, found = fields[number, _LISTS[0]]
    if found and kind != _STRUCT:  # readers would take the values for structs
        raise ValueError
    return list(found)


def _read_group(fields: dict[tuple[int, int], Any]) -> RowGroup:
    group = RowGroup(
        [_read_chunk(column[3, _STRUCT]) for column in _structs(fields, 1)], fields[3, _I64]
    )
    if group.rows < 0:
        raise ValueError
    return group


def _read_chunk(metadata: dict[tuple[int, int], Any]) -> Chunk:
    start, dictionary = metadata[9, _I64], metadata.get((11, _I64), 0)
    start = dictionary if 0 < dictionary < start else start
    kind, names = metadata[3, _LISTS[0]]
    numbers = metadata[4, _I32], metadata[5, _I64], start, metadata[7, _I64]
    if min(numbers) < 0 or (names and kind != _BINARY):
        raise ValueError
    statistics = _read_statistics(metadata.get((12, _STRUCT), {}))
    return Chunk(b".".join(names).decode(), *numbers, statistics)


def _read_statistics(fields: dict[tuple[int, int], Any]) -> Statistics | None:
    nulls = fields.get((3, _I64))
    for least, most in ((6, 5), (2, 1)):  # the second are those of old writers
        if (least, _BINARY) in fields and (most, _BINARY) in fields:
            return Statistics(fields[least, _BINARY], fields[most, _BINARY], nulls, least == 2)  # noqa: PLR2004
    return None


def pages(file: BinaryIO, chunk: Chunk, end: int) -> Iterator[Page]:
    """Yield the pages of a column of a file of `end` bytes; a damaged page is a RecordError."""
    offset, seen = chunk.start, 0
    while offset < min(chunk.start + chunk.length, end) and seen < chunk.values:
        page = _read_page(file, offset)
        if page.offset + page.packed > end:
            msg = f"the page at byte {offset} ends after the end of the file; write it again"
            raise RecordError(msg)
        yield page
        offset = page.offset + page.packed
        seen += page.values if page.kind in {DATA, DATA_V2} else 0


def _read_page(file: BinaryIO, offset: int) -> Page:
    """Read a page header, with more bytes until it is complete."""
    size = _PEEK
    while True:
        file.seek(offset)
        raw = file.read(size)
        try:
            header, length = _read_struct(raw, 0, _MAX_LEVELS)
            return _page_of_header(header, offset + length)
        except (IndexError, KeyError, ValueError) as error:
            size *= 4
            if len(raw) == size // 4 and size <= _LARGEST_HEADER and isinstance(error, IndexError):
                continue
            msg = f"the page header at byte {offset} is damaged; write the file again"
            raise RecordError(msg) from None


def _page_of_header(header: dict[tuple[int, int], Any], offset: int) -> Page:
    """Return the page of a parsed header, or raise a ValueError."""
    kind, size, packed = (header[number, _I32] for number in (1, 2, 3))
    details: dict[tuple[int, int], Any] = {}
    if kind in (fields := {DATA: 5, DICTIONARY: 7, DATA_V2: 8}):
        details = header[fields[kind], _STRUCT]
    page = Page(
        kind,
        offset,
        packed,
        size,
        details[1, _I32] if details else 0,
        details[4 if kind == DATA_V2 else 2, _I32] if details else 0,
        details[5, _I32] + details[6, _I32] if kind == DATA_V2 else 0,
        (7, _FALSE) in details and kind == DATA_V2,
    )
    if min(page) < 0 or page.levels > min(packed, size):
        raise ValueError
    return page


def _read_struct(raw: bytes, at: int, deep: int) -> tuple[dict[tuple[int, int], Any], int]:
    """Return the fields of a struct, by number and type, and its end.

    Raise an IndexError if it does not end within the bytes.
    """
    found: dict[tuple[int, int], Any] = {}
    number = 0
    while head := raw[at]:
        at += 1
        kind = head & 0xF
        if head >> 4:
            number += head >> 4
        else:
            number, at = _zigzag(raw, at, 32)
            if number >> 15:  # negative, or truncated by readers
                raise ValueError
        found[number, kind], at = _value(raw, at, kind, deep)
    return found, at + 1


def _value(raw: bytes, at: int, kind: int, deep: int) -> tuple[Any, int]:
    """Return a value, None for types that no header needs, and the offset after it."""
    if not deep:
        raise ValueError
    if kind in {_TRUE, _FALSE}:
        return kind == _TRUE, at
    if _BYTE < kind < _DOUBLE:
        return _zigzag(raw, at, 32 if kind == _I32 else _BITS)
    if kind in {_BYTE, _DOUBLE}:
        return None, at + (1 if kind == _BYTE else 8)
    if kind == _BINARY:
        size, at = varint(raw, at)
        if at + size > len(raw):
            raise IndexError
        return raw[at : at + size], at + size
    if kind == _STRUCT:
        return _read_struct(raw, at, deep - 1)
    if kind in _LISTS:
        return _list(raw, at, deep)
    raise ValueError  # a map, which no header has


def _list(raw: bytes, at: int, deep: int) -> tuple[tuple[int, list[Any]], int]:
    """Return a list, as the type of its values and the values, and its end."""
    head = raw[at]
    kind = head & 0xF
    size, at = (head >> 4, at + 1) if head >> 4 < 0xF else varint(raw, at + 1)  # noqa: PLR2004
    found = []
    for _ in range(size):
        if at >= len(raw):  # a value has at least one byte, so the loop ends
            raise IndexError
        value, at = (None, at + 1) if kind in {_TRUE, _FALSE} else _value(raw, at, kind, deep - 1)
        found.append(value)
    return (kind, found), at


def varint(raw: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned number of seven bits a byte, and its end."""
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004
            return value, at
        shift += 7
        if shift >= _BITS + 6:
            raise ValueError


def _zigzag(raw: bytes, at: int, bits: int) -> tuple[int, int]:
    """Return a signed number, truncated as readers do to so many bits, and its end."""
    value, at = varint(raw, at)
    value &= (1 << bits) - 1
    return (value >> 1) ^ -(value & 1), at


DELTA_LENGTH, DELTA_STRINGS = 6, 7
"""Encodings of strings with separate lengths."""

_PLAIN = 0
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_length = struct.Struct("<I")


def payload(file: BinaryIO, page: Page, codec: int) -> bytes | None:
    """Return a decompressed page, without the levels of a `DATA_V2` page.

    The codec is its number in the format; the result is None if pyarrow lacks the codec. A
    damaged page is an ArrowException or an OSError.
    """
    file.seek(page.offset + page.levels)
    raw = file.read(page.packed - page.levels)
    size = page.size - page.levels
    if codec == _PLAIN or page.plain:
        return raw
    if codec not in _CODECS:
        return None
    unpacked: bytes = (
        extra("pyarrow", "Parquet")
        .Codec(_CODECS[codec])
        .decompress(raw, decompressed_size=size, asbytes=True)
    )
    return unpacked


def longest(texts: bytes) -> int:
    """Return the length of the longest string; each has its length before it.

    >>> longest(bytes([1, 0, 0, 0, 65, 3, 0, 0, 0, 66, 67, 68]))
    3
    """
    most = at = 0
    unpack, head = _length.unpack_from, _length.size
    last = len(texts) - head
    while at <= last:
        (size,) = unpack(texts, at)
        if size > most:  # noqa: PLR1730 - a call takes longer than all the rest
            most = size
        at += head + size
    return most


def has_excess_lengths(data: bytes, page: Page, levels: int) -> bool:
    """Return whether a page with separate lengths declares more lengths than it has values.

    Readers allocate memory for as many as it declares. Before the values are some blocks of levels.
    """
    at = 0
    try:
        for _ in range(0 if page.kind == DATA_V2 else levels):
            at += _length.size + int(_length.unpack_from(data, at)[0])
        for _ in range(2 if page.encoding == DELTA_STRINGS else 1):
            at = _end_of_numbers(data, at, page.values)
    except (IndexError, ValueError, struct.error):
        return True
    return False


def _end_of_numbers(data: bytes, at: int, most: int) -> int:
    """Return the end of a block of at most so many delta-encoded numbers."""
    (block, at), parts = varint(data, at), 0
    parts, at = varint(data, at)
    count, at = varint(data, at)
    _, at = varint(data, at)
    if count > most or not 0 < parts <= block:
        raise ValueError
    each, left = block // parts, count - 1
    while left > 0:
        _, at = varint(data, at)
        widths = data[at : at + parts]
        at += parts
        for width in widths[: -(-left // each)]:
            at += width * each // 8
        left -= each * parts
    return at
