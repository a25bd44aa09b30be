"""How many bytes the rows of a record batch have.

Governing rule: the size of a row is that of its values as Arrow holds them, a text by its length;
it is found without making a Python object of any value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers_connectors.extras import extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["pieces", "sizes"]

_PIECE = 16 << 20  # bytes that may become Python objects at once


def sizes(table: pa.RecordBatch) -> NDArray[np.int64]:
    """Give the bytes of each row."""
    found = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        found += _sizes(column)
    return found


def pieces(found: NDArray[np.int64], limit: int) -> Iterator[tuple[int, int]]:
    """Divide rows of some sizes into runs of which none has many bytes.

    Parameters
    ----------
    found
        The size of each row.
    limit
        A row that is larger counts as nothing.

    Yields
    ------
    tuple
        The first row of a run, and the one behind it.

    Examples
    --------
    >>> [*pieces(np.array([1 << 23] * 5), 1 << 23)]
    [(0, 2), (2, 4), (4, 5)]
    """
    ends = np.cumsum(np.where(found > limit, 0, found))
    start = 0
    while start < len(found):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _PIECE, "right")))
        yield start, stop
        start = stop


def _sizes(column: Any) -> NDArray[np.int64]:  # noqa: ANN401 - pyarrow has no types
    arrow = extra("pyarrow", "Parquet")
    types, kind = arrow.types, column.type
    if types.is_dictionary(kind):
        known = np.append(_sizes(column.dictionary), 0)  # nulls are at the end
        places = column.indices.cast(arrow.int64()).fill_null(len(known) - 1)
        return np.asarray(known[places.to_numpy(zero_copy_only=False)], np.int64)
    if types.is_struct(kind):
        parts = [_sizes(part) for part in column.flatten()]
        return np.asarray(np.sum([np.ones(len(column), np.int64), *parts], axis=0), np.int64)
    if types.is_fixed_size_list(kind):
        first = column.offset * kind.list_size
        return _added(column.values, first + kind.list_size * np.arange(len(column) + 1))
    if types.is_nested(kind):
        return _added(column.values, column.offsets.to_numpy())
    try:
        width = max(1, kind.bit_width // 8)
    except ValueError:  # none, of texts and of what has no type
        if types.is_null(kind):
            width = 1
        else:
            if types.is_string_view(kind) or types.is_binary_view(kind):
                column = column.cast(arrow.large_binary())
            lengths = extra("pyarrow.compute", "Parquet").binary_length(column)
            return np.asarray(lengths.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    return np.full(len(column), width, np.int64)


def _added(values: Any, places: NDArray[Any]) -> NDArray[np.int64]:  # noqa: ANN401
    """Add up the sizes of values between each two places."""
    ends = np.append(0, np.cumsum(_sizes(values)))
    return np.asarray(np.diff(ends[places]) + 1, np.int64)
