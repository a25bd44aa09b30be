"""Lengths of strings in the decompressed pages of a Parquet file.

A page is decompressed here only after its size is known to be within the limit.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from abers_connectors.extras import extra
from abers_connectors.sources.parquet_pages import DATA_V2, varint

if TYPE_CHECKING:
    from abers_connectors.sources.parquet_pages import Page

__all__ = ["DELTA_LENGTH", "DELTA_STRINGS", "has_excess_lengths", "longest", "payload"]

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
