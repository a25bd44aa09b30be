"""Arrow arrays as numpy columns, without an object for a value that needs none.

pyarrow is an optional library, which is imported when the first array comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.arrow_values import require_pyarrow
from abers.stream.arrow_buffers import new_array, numbers, valid_rows
from abers.stream.cells import BadRecordError, Cells
from abers.stream.column_types import objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from abers.stream.column_types import Column

__all__ = [
    "ArrowColumn",
    "is_moment",
    "is_text",
    "numpy_column",
    "plain_array",
    "raw_columns",
    "value_type",
]

_TICKS = {"s": 1, "ms": 1, "us": 1_000, "ns": 1_000_000}  # of a unit in a millisecond
_MOST_SECONDS = 2**53  # further from 1970 than any event: more would overflow as milliseconds
_INVALID = "a value of the row is not a valid string or time; write the file with valid values"
_SAMPLE_ROWS = 64
_MIN_REPEATS = 8  # average count of a string that is worth a dictionary


class ArrowColumn(NamedTuple):
    """Values of a column."""

    values: Column  # strings as objects, int64, float64, bool or datetime64[ms]
    valid: NDArray[np.bool_] | None = None  # rows that have a value; None if all have


def value_type(array: pa.Array) -> pa.DataType:
    """Return the type of the values of an array, which may be in a dictionary."""
    kind = array.type
    return kind.value_type if require_pyarrow().types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is one of strings, in a dictionary or not."""
    types = require_pyarrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_moment(kind: pa.DataType) -> bool:
    """Return whether a type is one of times with a time zone."""
    return bool(require_pyarrow().types.is_timestamp(kind) and kind.tz is not None)


def plain_array(array: pa.Array) -> pa.Array:
    """Return times with a time zone in milliseconds, decimals as floats, dictionaries as values.

    Times within a millisecond count as its beginning. Any other array is returned as it is.
    """
    arrow = require_pyarrow()
    kind = array.type
    if arrow.types.is_dictionary(kind):
        return plain_array(array.dictionary_decode())
    if is_moment(kind):
        return _milliseconds(array)
    if arrow.types.is_decimal(kind):  # a cast to float64 is not always the nearest one
        return array.cast(arrow.string()).cast(arrow.float64())
    if arrow.types.is_string_view(kind):
        return array.cast(arrow.large_string())
    return array


def numpy_column(array: pa.Array) -> ArrowColumn | None:
    """Return a column as a numpy array; None if numpy lacks its type, or a string is not UTF-8.

    Parameters
    ----------
    array
        Integers but those of 64 bits without a sign, floats, booleans, strings, times with a time
        zone, decimals, dictionaries of these, or nulls alone.

    Examples
    --------
    >>> import pyarrow as pa
    >>> numpy_column(pa.array([0.5, None], pa.float32()))
    ArrowColumn(values=array([0.5, 0. ]), valid=array([ True, False]))
    """
    arrow = require_pyarrow()
    types = arrow.types
    if not (types.is_dictionary(array.type) and is_text(array.type)) or array.dictionary.null_count:
        array = plain_array(array)
    kind = array.type
    if types.is_null(kind):
        return ArrowColumn(np.full(len(array), None), np.zeros(len(array), bool))
    if is_text(kind):
        try:
            return ArrowColumn(_texts(array), valid_rows(array))
        except UnicodeDecodeError:
            return None
    if is_moment(kind):
        return ArrowColumn(numbers(array, np.int64).view("datetime64[ms]"), valid_rows(array))
    if types.is_integer(kind) and kind != arrow.uint64():
        dtype: type[np.generic] = np.int64
    elif types.is_floating(kind):
        dtype = np.float64
    elif types.is_boolean(kind):
        dtype = np.bool_
    else:
        return None
    return ArrowColumn(numbers(array).astype(dtype, copy=False), valid_rows(array))


def raw_columns(
    table: pa.RecordBatch | pa.Table,
) -> tuple[dict[str, Cells], dict[int, BadRecordError]]:
    """Return the cells of all columns, and why rows are broken: Python cannot represent a value.

    A column of nulls is left out, as if there were no column.

    Examples
    --------
    >>> import pyarrow as pa
    >>> found, broken = raw_columns(pa.table({"score": [0.5, None], "note": [None, None]}))
    >>> found["score"].values, found["score"].valid, [*found], broken
    (array([0.5, 0. ]), array([ True, False]), ['score'], {})
    """
    found: dict[str, Cells] = {}
    broken: set[int] = set()
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if column.null_count < len(column):
            found[name], wrong = _cells(getattr(column, "chunks", [column]))
            broken.update(wrong)
    return found, {row: BadRecordError("not-utf8", _INVALID) for row in sorted(broken)}


def _cells(chunks: Sequence[pa.Array]) -> tuple[Cells, list[int]]:
    """Return the cells of chunks, and the rows in which there is no value that Python has."""
    parts: list[Cells] = []
    broken: list[int] = []
    start = 0
    for chunk in chunks:
        found = numpy_column(chunk)
        if found is None:
            listed, wrong = _objects(chunk)
            parts.append(Cells(objects(listed)))
            broken += [start + row for row in wrong]
        else:
            parts.append(Cells(*found, str if found.values.dtype == object else None))
        start += len(chunk)
    return _joined(parts), broken


def _objects(array: pa.Array) -> tuple[list[Any], list[int]]:
    try:
        return array.to_pylist(), []
    except (ValueError, OverflowError):  # such as invalid UTF-8, or a year after 9999
        if len(array) == 1:
            return [None], [0]
    parts = [_objects(array.slice(row, 1)) for row in range(len(array))]
    return [cell for (cell,), _ in parts], [row for row, (_, wrong) in enumerate(parts) if wrong]


def _joined(parts: Sequence[Cells]) -> Cells:
    if len(parts) == 1:
        return parts[0]
    values = np.concatenate([one.values for one in parts])
    kind = str if all(one.kind is str for one in parts) else None
    if all(one.valid is None for one in parts):
        return Cells(values, None, kind)
    masks = [np.ones(len(one.values), bool) if one.valid is None else one.valid for one in parts]
    return Cells(values, np.concatenate(masks), kind)


def _milliseconds(array: pa.Array) -> pa.Array:
    arrow = require_pyarrow()
    ticks = numbers(array, np.int64)
    if array.type.unit == "s":
        ticks = np.clip(ticks, -_MOST_SECONDS, _MOST_SECONDS) * 1_000
    found = ticks // _TICKS[array.type.unit]  # towards the past before 1970, too
    return new_array(found, arrow.int64(), valid_rows(array)).view(arrow.timestamp("ms", "UTC"))


def _texts(array: pa.Array) -> Column:
    """Return strings as objects, "" in place of nulls; a frequent one is one object."""
    arrow = require_pyarrow()
    if not arrow.types.is_dictionary(array.type):
        sample = array.slice(0, _SAMPLE_ROWS)
        if len({*sample.to_pylist()}) * _MIN_REPEATS > len(sample):
            found = objects(array.to_pylist())
            if (valid := valid_rows(array)) is not None:
                found[~valid] = ""
            return found
        array = array.dictionary_encode()
    words = objects([*array.dictionary.to_pylist(), ""])
    codes, valid = numbers(array.indices).astype(np.int64), valid_rows(array)
    return words[codes if valid is None else np.where(valid, codes, len(words) - 1)]
