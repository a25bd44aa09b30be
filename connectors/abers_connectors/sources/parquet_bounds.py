"""Bounds on the memory that reading a Parquet file takes, found before it is read.

Sizes of the rows of a record batch. The size of a row is that of its values in Arrow, of a string
its length. It is computed without making a Python object of any value.

In memory are one page and one dictionary of each column of a row group, and some rows. They stay
within a limit that grows with their size in the file, so a small file never takes much, and many
small files that are open at once do not either. Fewer rows are read at once where they may be
large.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from abers.exceptions import RecordError
from abers.stream.arrow_columns import numbers, text_ends, valid_rows
from abers_connectors.extras import extra
from abers_connectors.sources.parquet_pages import (
    DELTA_LENGTH,
    DELTA_STRINGS,
    DICTIONARY,
    has_excess_lengths,
    longest,
    pages,
    payload,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from abers_connectors.sources.parquet_pages import Chunk, Page

__all__ = ["BATCH", "Memory", "MemoryShare", "pieces", "rows_at_once", "sized_pieces", "sizes"]

PIECE = 16 << 20
"""Bytes that become Python objects at once."""


def sizes(table: pa.RecordBatch) -> NDArray[np.int64]:
    """Return the size of each row in bytes."""
    found = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        found += _column_sizes(column)
    return found


def pieces(found: NDArray[np.int64], limit: int) -> Iterator[tuple[int, int]]:
    """Yield start and stop of slices of limited size; rows above the limit do not count.

    >>> [*pieces(np.array([1 << 23] * 5), 1 << 23)]
    [(0, 2), (2, 4), (4, 5)]
    """
    ends = np.cumsum(np.where(found > limit, 0, found))
    start = 0
    while start < len(found):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + PIECE, "right")))
        yield start, stop
        start = stop


def sized_pieces(
    table: pa.RecordBatch, limit: int
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
    """Yield the rows of a record batch in the slices of `pieces`, with their sizes."""
    found = sizes(table)
    for start, stop in pieces(found, limit):
        yield table.slice(start, stop - start), found[start:stop]


def _column_sizes(column: Any) -> NDArray[np.int64]:  # noqa: ANN401 - pyarrow has no types
    """Return the size of each value of a column."""
    arrow = extra("pyarrow", "Parquet")
    types, kind = arrow.types, column.type
    if types.is_dictionary(kind):
        known = np.append(_column_sizes(column.dictionary), 0)  # nulls are at the end
        indices, valid = numbers(column.indices).astype(np.int64), valid_rows(column)
        found = known[indices if valid is None else np.where(valid, indices, -1)]
        return np.asarray(found, np.int64)
    if types.is_struct(kind):
        parts = [_column_sizes(part) for part in column.flatten()]
        return np.asarray(np.sum([np.ones(len(column), np.int64), *parts], axis=0), np.int64)
    if types.is_fixed_size_list(kind):
        first = column.offset * kind.list_size
        return _added(column.values, first + kind.list_size * np.arange(len(column) + 1))
    if types.is_nested(kind):
        return _added(column.values, numbers(column.offsets))
    try:
        width = max(1, kind.bit_width // 8)
    except ValueError:  # strings and nulls have none
        if types.is_null(kind):
            width = 1
        else:
            if types.is_string_view(kind) or types.is_binary_view(kind):
                column = column.cast(arrow.large_binary())
            lengths, valid = np.diff(text_ends(column)).astype(np.int64), valid_rows(column)
            return lengths if valid is None else np.where(valid, lengths, 0)
    return np.full(len(column), width, np.int64)


def _added(values: Any, offsets: NDArray[Any]) -> NDArray[np.int64]:  # noqa: ANN401
    """Return the sums of the sizes of values between successive offsets."""
    ends = np.append(0, np.cumsum(_column_sizes(values)))
    return np.asarray(np.diff(ends[offsets]) + 1, np.int64)


BATCH = 16_384  # rows: fewer would cost a third more for each
_FEWER = 4  # divides the number of rows until they fit
_SHARED = 256 << 20  # bytes of memory for all files that are open at once
_OWN = 8 << 20  # further bytes for each of them: pages and rows are usually smaller
_EXPANSION = 4  # further bytes of memory for each byte of the pages in the file
_NUMBER = 16  # bytes of a number in a list, with its levels
_CODES = (2, 8)  # encodings that refer to the dictionary
_TEXTS, _FIXED = "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"
_MAX_LOOSE_BYTES = 1 << 20  # of strings that need no exact bound


class Memory:
    """Memory for the files that are open at once: some for each, and more for all together."""

    def __init__(self) -> None:
        self.left = _SHARED

    @contextmanager
    def share(self, metadata: int) -> Iterator[MemoryShare]:
        """Let one more file take memory, first of all these bytes for its metadata."""
        share = MemoryShare(self, metadata)
        try:
            share.take(0, 0)
            yield share
        finally:
            self.left += share.beyond


class MemoryShare:
    """What one file takes of the memory of all."""

    def __init__(self, memory: Memory, metadata: int) -> None:
        self._memory, self._metadata = memory, metadata
        self.beyond = 0  # bytes taken of those for all together

    def allowed(self, packed: int) -> int:
        """Return the bytes for pages that have so many bytes in the file."""
        own = _OWN + _EXPANSION * packed - self._metadata
        return own + self._memory.left + self.beyond

    def take(self, size: int, packed: int) -> None:
        """Take memory for pages instead of what was taken before, or raise a RecordError."""
        excess = size - self.allowed(packed)
        if excess > 0:
            msg = (
                f"a file and those open with it would take {excess >> 20} MiB of memory more "
                "than is allowed"
            )
            raise RecordError(msg)
        self._memory.left += self.beyond
        self.beyond = max(0, self._metadata + size - _OWN - _EXPANSION * packed)
        self._memory.left -= self.beyond


class _ColumnPages(NamedTuple):
    """The pages of a column in a row group; sizes are of decompressed bytes."""

    name: str
    codec: int
    data: list[Page]
    dictionary: Page | None
    texts: bool  # whether the values are strings
    width: int  # of a value that is not a string
    levels: int  # number of kinds of levels that the values have
    repeated: bool  # whether a row may have many values
    text: int  # upper bound on the length of the strings of the dictionary

    def held(self) -> int:
        """Return the bytes in memory while a page is read."""
        most = max((page.size + page.packed + self._lengths(page) for page in self.data), default=0)
        if self.dictionary is not None:
            copies = 2 if self.texts else 1
            most += copies * self.dictionary.size + _NUMBER * self.dictionary.values
        if self.repeated:
            most += sum(page.values for page in self.data) * (_NUMBER + self.width)
        return most

    def packed(self) -> int:
        """Return the bytes of a page and the dictionary in the file."""
        dictionary = 0 if self.dictionary is None else self.dictionary.packed
        return dictionary + max((page.packed for page in self.data), default=0)

    def largest(self, rows: int) -> int:
        """Return an upper bound on the bytes of so many consecutive rows."""
        if not self.texts:
            return 0 if self.repeated else rows * self.width
        sizes = [self._texts(page, rows) for page in self.data]
        if self.repeated:
            return sum(sizes)
        return rows * _NUMBER + _largest([page.values for page in self.data], sizes, rows)

    def _texts(self, page: Page, rows: int) -> int:
        """Return an upper bound on the bytes of the strings of so many rows in a page."""
        some = page.values if self.repeated else min(rows, page.values)
        if page.encoding in _CODES:
            return some * self.text
        if page.encoding == DELTA_STRINGS:  # each string may repeat all before it
            return some * page.size
        return page.size

    def _lengths(self, page: Page) -> int:
        return 8 * page.values if page.encoding in {DELTA_LENGTH, DELTA_STRINGS} else 0


def _largest(values: list[int], sizes: list[int], rows: int) -> int:
    """Return the largest sum of the sizes of the pages that consecutive rows can span."""
    if not values:
        return 0
    ends: NDArray[np.int64] = np.cumsum(values, dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(sizes, dtype=np.float64)])
    behind = np.searchsorted(ends - values, ends + rows - 1)
    return int((before[behind] - before[:-1]).max())


def rows_at_once(
    raw: BinaryIO,
    schema: Any,  # noqa: ANN401
    group: Sequence[Chunk],
    wanted: Sequence[str],
    memory: MemoryShare,
) -> int:
    """Return the number of rows of a row group that may be read at once, at most `BATCH`.

    A RecordError says that reading takes too much memory, however few rows are read.

    Parameters
    ----------
    raw, schema
        The file, and its columns as the format has them.
    group
        The columns of the row group.
    wanted
        Names of the columns that are read.
    memory
        Gives what the rows and their pages take.
    """
    end = raw.seek(0, os.SEEK_END)
    columns = [
        _read_column_pages(raw, schema.column(index), group[index], end)
        for index in _indices(schema, wanted, len(group))
    ]
    packed = min(end, sum(column.packed() for column in columns))
    allowed = memory.allowed(packed)
    held = [column.held() for column in columns]
    _require(columns, held, allowed)
    columns = [_bounded(raw, column) for column in columns]
    rows = BATCH
    # Half of what is left: a file that is opened later finds some, too.
    while rows > 1 and _size(columns, rows) > (allowed - sum(held)) // 2:
        rows //= _FEWER
    sizes = [column.largest(rows) + pages for column, pages in zip(columns, held, strict=True)]
    _require(columns, sizes, allowed)
    memory.take(min(sum(held) + _size(columns, rows), allowed), packed)
    return rows


def _size(columns: list[_ColumnPages], rows: int) -> int:
    """Return an upper bound on the bytes of so many rows, and of the objects made of them."""
    size = sum(column.largest(rows) for column in columns)
    return size + min(size, PIECE)


def _require(columns: list[_ColumnPages], sizes: list[int], allowed: int) -> None:
    """Raise a RecordError for a row group that takes too much memory."""
    if sum(sizes) > allowed:
        msg = (
            f"a row group would take {sum(sizes) >> 20} MiB of memory, more than the "
            f"{allowed >> 20} that are allowed, most of it for the column "
            f"{columns[sizes.index(max(sizes))].name}; if its values are as they should be, write "
            "the file again with smaller row groups and pages"
        )
        raise RecordError(msg)


def _indices(schema: Any, wanted: Sequence[str], count: int) -> list[int]:  # noqa: ANN401
    """Return the columns of the file that belong to columns of the table, as pyarrow does."""
    if len(schema) != count:
        msg = f"a row group has {count} columns, and the file {len(schema)}; write it again"
        raise RecordError(msg)
    return [
        index
        for index in range(len(schema))
        if any(f"{schema.column(index).path}.".startswith(f"{name}.") for name in wanted)
    ]


def _read_column_pages(raw: BinaryIO, kind: Any, chunk: Chunk, end: int) -> _ColumnPages:  # noqa: ANN401
    """Read the page headers of a column."""
    found = list(pages(raw, chunk, end))
    dictionary = next((page for page in found if page.kind == DICTIONARY), None)
    return _ColumnPages(
        name=kind.path,
        codec=chunk.codec,
        data=[page for page in found if page.kind != DICTIONARY],
        dictionary=dictionary,
        texts=kind.physical_type == _TEXTS,
        width=max(_NUMBER, 2 * kind.length if kind.physical_type == _FIXED else 0),
        levels=bool(kind.max_definition_level) + bool(kind.max_repetition_level),
        repeated=kind.max_repetition_level > 0,
        text=0 if dictionary is None else dictionary.size,
    )


def _bounded(raw: BinaryIO, column: _ColumnPages) -> _ColumnPages:
    """Return a column with an exact bound on its strings, where the headers do not suffice."""
    for page in column.data:
        if page.encoding in {DELTA_LENGTH, DELTA_STRINGS}:
            texts = payload(raw, page, column.codec)
            if texts is None or has_excess_lengths(texts, page, column.levels):
                msg = f"a page of the column {column.name} has more values than its header says; "
                msg += "write the file again"
                raise RecordError(msg)
    if column.dictionary is None or not column.texts or column.largest(BATCH) <= _MAX_LOOSE_BYTES:
        return column
    texts = payload(raw, column.dictionary, column.codec)
    return column if texts is None else column._replace(text=longest(texts))
