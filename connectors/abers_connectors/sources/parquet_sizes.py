"""Sizes of the rows of a record batch.

The size of a row is that of its values in Arrow, of a string its length. It is computed without
making a Python object of any value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.stream.arrow_buffers import numbers, text_ends, valid_rows
from abers_connectors.extras import extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["PIECE", "pieces", "sized_pieces", "sizes"]

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
