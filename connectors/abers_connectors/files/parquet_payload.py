"""What the decompressed bytes of a Parquet page hold: lengths of texts, numbers of lengths.

Governing rule: a page is decompressed here only after its size was found to be allowed.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from abers_connectors.extras import extra
from abers_connectors.files.parquet_pages import DATA_V2, varint

if TYPE_CHECKING:
    from abers_connectors.files.parquet_pages import Page

__all__ = ["DELTA_LENGTH", "DELTA_STRINGS", "longest", "lying", "payload"]

DELTA_LENGTH, DELTA_STRINGS = 6, 7
"""Encodings of texts that hold their lengths apart from them."""

_PLAIN = 0
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_length = struct.Struct("<I")


def payload(file: BinaryIO, page: Page, codec: int) -> bytes | None:
    """Decompress a page, without the levels of a `DATA_V2` page.

    Parameters
    ----------
    file
        The file.
    page
        Where it is, and how large.
    codec
        What compressed it, as the format numbers it.

    Returns
    -------
    bytes or None
        None if only readers of the format know what compressed it.

    Raises
    ------
    ArrowException, OSError
        If it is damaged.
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
    """Give the length of the longest of some texts that each have their length before them.

    Examples
    --------
    >>> longest(bytes([1, 0, 0, 0, 65, 3, 0, 0, 0, 66, 67, 68]))
    3
    """
    most = at = 0
    unpack, last = _length.unpack_from, len(texts) - _length.size
    while at <= last:
        (size,) = unpack(texts, at)
        most = max(most, size)
        at += _length.size + size
    return most


def lying(data: bytes, page: Page, levels: int) -> bool:
    """Say whether a page of lengths apart announces more of them than the page has values.

    Readers make room for as many as it announces.

    Parameters
    ----------
    data
        The decompressed page.
    page
        What its header says.
    levels
        How many blocks of levels stand before the values.
    """
    at = 0
    try:
        for _ in range(0 if page.kind == DATA_V2 else levels):
            at += _length.size + int(_length.unpack_from(data, at)[0])
        for _ in range(2 if page.encoding == DELTA_STRINGS else 1):
            at = _behind_numbers(data, at, page.values)
    except (IndexError, ValueError, struct.error):
        return True
    return False


def _behind_numbers(data: bytes, at: int, most: int) -> int:
    """Find the end of a block of delta-encoded numbers, of which at most so many may be."""
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
