"""How much memory a Parquet file takes, found out before it is read.

Governing rule: what is held of a row group is one page and one dictionary of each column, and the
values of some rows. Both stay within an allowance, which grows with the bytes that the file itself
has for them: so a small file never takes much, and a large one is read in larger pages. Where few
rows may be large, fewer are read at once.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from abers.exceptions import RecordError
from abers_connectors.extras import extra
from abers_connectors.files.parquet_pages import DICTIONARY, chunks, pages
from abers_connectors.files.parquet_payload import (
    DELTA_LENGTH,
    DELTA_STRINGS,
    longest,
    lying,
    payload,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers_connectors.files.parquet_pages import Chunk, Page

__all__ = ["BATCH", "opened", "row_groups", "rows_at_once"]

BATCH = 16_384  # rows: fewer would cost a third more for each
_FEWER = 4  # times fewer rows, until they fit
_ALLOWED = 128 << 20  # bytes of memory
_LARGER = 4  # times larger than in the file may pages be beside
_FOOTER = 2 << 20  # bytes, each of which may take 250 of memory
_LISTED = 20_000  # columns, or row groups
_BUFFER = 1 << 16  # bytes that are read ahead of a column
_NUMBER = 16  # bytes of a number in a list, with its levels
_CODES = (2, 8)  # encodings that refer to the dictionary
_TEXTS, _FIXED = "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"
_FEW = 1 << 20  # bytes that need no closer look


def opened(path: str) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Open a Parquet file, whose footer is of a size that can be read, as a stream of pages.

    Parameters
    ----------
    path
        Of the file.

    Returns
    -------
    pyarrow.parquet.ParquetFile
        A context manager.

    Raises
    ------
    RecordError
        If the footer is too large.
    ArrowException, OSError
        If it is no Parquet file.
    """
    parquet = extra("pyarrow.parquet", "Parquet")
    _footer(path)
    return parquet.ParquetFile(
        path,
        pre_buffer=False,  # which would read all row groups at once
        buffer_size=_BUFFER,
        thrift_string_size_limit=_FOOTER,
        thrift_container_size_limit=_LISTED,
    )


def _footer(path: str) -> bytes:
    """Read the footer, if it is not too large; nothing of what is no Parquet file."""
    with open(path, "rb") as file:  # noqa: PTH123 - as pyarrow does, with the path as it is
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        footer = int.from_bytes(file.read(4), "little")
        if footer > size - 8:
            return b""
        if footer > _FOOTER:
            msg = (
                f"the footer has {footer} bytes, more than {_FOOTER}; "
                "write the file anew with larger row groups, or fewer columns"
            )
            raise RecordError(msg)
        file.seek(size - 8 - footer)
        return file.read(footer)


def row_groups(path: str) -> list[list[Chunk]]:
    """Say where the columns of each row group are.

    pyarrow says it too, but ends the process where the footer contradicts itself.

    Raises
    ------
    RecordError
        If the footer is damaged.
    """
    return chunks(_footer(path))


class _Column(NamedTuple):
    """What is known of a column of a row group; sizes are of decompressed bytes."""

    name: str
    codec: int
    data: list[Page]
    dictionary: Page | None
    texts: bool
    width: int
    levels: int
    """How many kinds of levels the values have."""
    repeated: bool
    """Whether a row may have many values."""
    text: int
    """No text of the dictionary is longer."""

    def held(self) -> int:
        """Bytes that are held for as long as a page is read."""
        most = max((page.size + page.packed + self._lengths(page) for page in self.data), default=0)
        if self.dictionary is not None:
            copies = 2 if self.texts else 1
            most += copies * self.dictionary.size + _NUMBER * self.dictionary.values
        if self.repeated:
            most += sum(page.values for page in self.data) * (_NUMBER + self.width)
        return most

    def packed(self) -> int:
        """Bytes of them in the file."""
        dictionary = 0 if self.dictionary is None else self.dictionary.packed
        return dictionary + max((page.packed for page in self.data), default=0)

    def largest(self, rows: int) -> int:
        """Bytes that so many rows in sequence can have at most."""
        if not self.texts:
            return 0 if self.repeated else rows * self.width
        sizes = [self._texts(page, rows) for page in self.data]
        if self.repeated:
            return sum(sizes)
        return rows * _NUMBER + _largest([page.values for page in self.data], sizes, rows)

    def _texts(self, page: Page, rows: int) -> int:
        """Bytes that the texts of so many rows in a page can have at most."""
        some = page.values if self.repeated else min(rows, page.values)
        if page.encoding in _CODES:
            return some * self.text
        if page.encoding == DELTA_STRINGS:  # of which each may repeat all that was before it
            return some * page.size
        return page.size

    def _lengths(self, page: Page) -> int:
        return 8 * page.values if page.encoding in {DELTA_LENGTH, DELTA_STRINGS} else 0


def _largest(values: list[int], sizes: list[int], rows: int) -> int:
    """Add up the pages that some rows in sequence can touch, where that is most."""
    if not values:
        return 0
    ends: NDArray[np.int64] = np.cumsum(values, dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(sizes, dtype=np.float64)])
    behind = np.searchsorted(ends - values, ends + rows - 1)
    return int((before[behind] - before[:-1]).max())


def rows_at_once(
    path: str,
    file: Any,  # noqa: ANN401
    group: Sequence[Chunk],
    wanted: Sequence[str],
) -> int:
    """Say how many rows of a row group may be read at once.

    Parameters
    ----------
    path, file
        Its name, and what `opened` gave.
    group
        A row group, as `row_groups` gave it.
    wanted
        The columns that are read.

    Returns
    -------
    int
        At most `BATCH`.

    Raises
    ------
    RecordError
        If reading would take too much memory, however few rows are read.
    ArrowException, OSError
        If the file is damaged.
    """
    with open(path, "rb") as raw:  # noqa: PTH123
        end = raw.seek(0, os.SEEK_END)
        columns = [
            _column(raw, file.schema.column(index), group[index], end)
            for index in _indices(file, wanted, len(group))
        ]
        allowed = _ALLOWED + _LARGER * min(end, sum(column.packed() for column in columns))
        _require(columns, [column.held() for column in columns], allowed)
        columns = [_looked_into(raw, column) for column in columns]
    rows = BATCH
    while rows > 1 and sum(column.largest(rows) for column in columns) > allowed:
        rows //= _FEWER
    _require(columns, [column.largest(rows) for column in columns], allowed)
    return rows


def _require(columns: list[_Column], sizes: list[int], allowed: int) -> None:
    """Refuse a row group that takes more than is allowed."""
    if sum(sizes) > allowed:
        msg = (
            f"a row group would take {sum(sizes) >> 20} MiB of memory, more than the "
            f"{allowed >> 20} that are allowed, most of it for the column "
            f"{columns[sizes.index(max(sizes))].name}; if its values are as they should be, write "
            "the file anew with smaller row groups and pages"
        )
        raise RecordError(msg)


def _indices(file: Any, wanted: Sequence[str], count: int) -> list[int]:  # noqa: ANN401
    """Find the columns of the format that belong to some of the table, as pyarrow does."""
    schema = file.schema
    if len(schema) != count:
        msg = f"a row group has {count} columns, and the file {len(schema)}"
        raise RecordError(msg)
    return [
        index
        for index in range(len(schema))
        if any(f"{schema.column(index).path}.".startswith(f"{name}.") for name in wanted)
    ]


def _column(raw: BinaryIO, kind: Any, chunk: Chunk, end: int) -> _Column:  # noqa: ANN401
    found = list(pages(raw, chunk, end))
    dictionary = next((page for page in found if page.kind == DICTIONARY), None)
    return _Column(
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


def _looked_into(raw: BinaryIO, column: _Column) -> _Column:
    """Look at the lengths of texts, where what the headers say is not enough."""
    for page in column.data:
        if page.encoding in {DELTA_LENGTH, DELTA_STRINGS}:
            texts = payload(raw, page, column.codec)
            if texts is None or lying(texts, page, column.levels):
                msg = f"a page of the column {column.name} has more values than its header says"
                raise RecordError(msg)
    if column.dictionary is None or not column.texts or column.largest(BATCH) <= _FEW:
        return column
    texts = payload(raw, column.dictionary, column.codec)
    return column if texts is None else column._replace(text=longest(texts))
