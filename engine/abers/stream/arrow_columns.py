"""Arrow arrays as numpy columns, without an object for a value that needs none.

pyarrow is an optional library, which is imported when the first array comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.stream.arrow_buffers import new_array, numbers, require_pyarrow, valid_rows
from abers.stream.column_types import objects

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from abers.stream.column_types import Column

__all__ = ["ArrowColumn", "is_text", "numpy_column", "plain_array"]

_TICKS = {"s": 1, "ms": 1, "us": 1_000, "ns": 1_000_000}  # of a unit in a millisecond
_MOST_SECONDS = 2**53  # further from 1970 than any event: more would overflow as milliseconds
_SAMPLE_ROWS = 64
_MIN_REPEATS = 8  # average count of a string that is worth a dictionary


class ArrowColumn(NamedTuple):
    """Values of a column."""

    values: Column  # strings as objects, int64, float64 or bool
    valid: NDArray[np.bool_] | None = None  # rows that have a value; None if all have


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is one of strings, in a dictionary or not."""
    types = require_pyarrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def plain_array(array: pa.Array) -> pa.Array:
    """Return times with a time zone in milliseconds, decimals as floats, dictionaries as values.

    Times within a millisecond count as its beginning. Any other array is returned as it is.
    """
    arrow = require_pyarrow()
    kind = array.type
    if arrow.types.is_dictionary(kind):
        return plain_array(array.dictionary_decode())
    if arrow.types.is_timestamp(kind) and kind.tz is not None:
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
    if types.is_integer(kind) and kind != arrow.uint64():
        dtype: type[np.generic] = np.int64
    elif types.is_floating(kind):
        dtype = np.float64
    elif types.is_boolean(kind):
        dtype = np.bool_
    else:
        return None
    return ArrowColumn(numbers(array).astype(dtype, copy=False), valid_rows(array))


def _milliseconds(array: pa.Array) -> pa.Array:
    arrow = require_pyarrow()
    ticks = numbers(array, np.int64)
    if array.type.unit == "s":
        ticks = np.clip(ticks, -_MOST_SECONDS, _MOST_SECONDS) * 1_000
    found = ticks // _TICKS[array.type.unit]  # towards the past before 1970, too
    return new_array(found, arrow.int64(), valid_rows(array))


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
