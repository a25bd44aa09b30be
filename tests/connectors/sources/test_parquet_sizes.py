"""Sizes of rows, for columns of every type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from abers_connectors.sources.parquet_bounds import pieces, sizes


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None, 3]), [8, 8, 8]),
        (pa.array([True, None, False]), [1, 1, 1]),
        (pa.nulls(3), [1, 1, 1]),
        (pa.array(["ä", None, "abc"]), [2, 0, 3]),
        (pa.array(["ä", None, "abc"], pa.large_string()), [2, 0, 3]),
        (pa.array([b"1", None, b"123"], pa.binary_view()), [1, 0, 3]),
        (pa.array([b"12", None, b"34"], pa.binary(2)), [2, 2, 2]),
        (pa.array(["ab", None, "abc"]).dictionary_encode(), [2, 0, 3]),
        (pa.array([{"a": 1, "b": "xyz"}, None, {"a": 2, "b": ""}]), [12, 9, 9]),
        (pa.array([[1, 2], None, []]), [17, 1, 1]),
        (pa.array([["ab"], None, ["abc", "d"]], pa.large_list(pa.string())), [3, 1, 5]),
        (pa.array([[1, 2], [3, 4], None], pa.list_(pa.int16(), 2)), [5, 5, 5]),
        (pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())), [7, 1, 1]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_sizes_of_rows(column: pa.Array, expected: list[int]) -> None:
    """A string counts as its bytes, a number as its width, a nested value as its parts plus 1."""
    table = pa.RecordBatch.from_arrays([column], ["x"])
    assert sizes(table).tolist() == expected
    assert sizes(table.slice(1)).tolist() == expected[1:]
    assert sizes(table.slice(2, 0)).tolist() == []


def test_rows_are_added_up() -> None:
    """The size of a row is the sum over its columns."""
    table = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array(["a", "bc"])], ["x", "y"])
    assert sizes(table).tolist() == [9, 10]


def test_pieces_take_every_row_once() -> None:
    """Each row is in one piece, and the small rows of a piece have a limited size."""
    rng = np.random.default_rng(3)
    found = rng.integers(0, 9 << 20, 500)
    cut = [*pieces(found, 8 << 20)]
    assert [start for start, _ in cut] == [0, *[stop for _, stop in cut[:-1]]]
    assert cut[-1][1] == 500
    small = np.where(found > 8 << 20, 0, found)
    assert all(small[start:stop].sum() <= 16 << 20 for start, stop in cut)
