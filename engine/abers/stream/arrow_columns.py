"""Arrow arrays as numpy columns, without an object for a value that needs none.

pyarrow is an optional library, which is imported when the first array comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from abers.exceptions import MissingExtraError
from abers.stream.column_types import objects

if TYPE_CHECKING:
    from types import ModuleType

    import pyarrow as pa
    from numpy.typing import NDArray

    from abers.arrays import Integers
    from abers.stream.column_types import Column

__all__ = ["ArrowColumn", "is_text", "numpy_column", "plain_array", "require_pyarrow"]

_TICKS = {"s": 1, "ms": 1, "us": 1_000, "ns": 1_000_000}  # of a unit in a millisecond
_MOST_SECONDS = 2**53  # further from 1970 than any event: more would overflow as milliseconds
_SAMPLE_ROWS = 64
_MIN_REPEATS = 8  # average count of a string that is worth a dictionary


class ArrowColumn(NamedTuple):
    """Values of a column."""

    values: Column  # strings as objects, int64, float64 or bool
    valid: NDArray[np.bool_] | None = None  # rows that have a value; None if all have


def require_pyarrow(module: str = "pyarrow") -> ModuleType:
    """Import pyarrow or one of its modules; a MissingExtraError says how to install it."""
    from importlib import import_module  # noqa: PLC0415 - beside its only use

    try:
        return import_module(module)
    except ImportError as error:
        msg = "Arrow needs pyarrow, which is not installed; run: pip install 'abers[files]'"
        raise MissingExtraError(msg) from error


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
    if arrow.types.is_decimal(kind):
        return array.cast(arrow.float64())
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
    kind, nothing = array.type, cast("Any", 0)  # in place of a null
    if types.is_integer(kind) and kind != arrow.uint64():
        kind = arrow.int64()
    elif types.is_floating(kind):
        kind = arrow.float64()
    elif types.is_boolean(kind):
        nothing = False
    elif is_text(kind):
        nothing = ""
    elif types.is_null(kind):
        return ArrowColumn(np.full(len(array), None), np.zeros(len(array), bool))
    else:
        return None
    try:
        return ArrowColumn(_values(array, kind, nothing), _valid(array))
    except arrow.ArrowException:  # a string that is not UTF-8
        return None


def _milliseconds(array: pa.Array) -> pa.Array:
    arrow = require_pyarrow()
    ticks = array.cast(arrow.int64()).fill_null(0).to_numpy()
    if array.type.unit == "s":
        ticks = np.clip(ticks, -_MOST_SECONDS, _MOST_SECONDS) * 1_000
    valid = _valid(array)
    found = ticks // _TICKS[array.type.unit]  # towards the past before 1970, too
    return arrow.array(found, mask=None if valid is None else ~valid)


def _valid(array: pa.Array) -> NDArray[np.bool_] | None:
    if not array.null_count:
        return None
    return cast("NDArray[np.bool_]", array.is_valid().to_numpy(zero_copy_only=False))


def _values(array: Any, kind: pa.DataType, nothing: object) -> Column:  # noqa: ANN401
    """Return the values, with something in place of nulls; a frequent string is one object."""
    if not is_text(kind):
        return cast("Column", array.cast(kind).fill_null(nothing).to_numpy(zero_copy_only=False))
    arrow = require_pyarrow()
    if not arrow.types.is_dictionary(kind):
        sample = array.slice(0, _SAMPLE_ROWS)
        if len(sample.unique()) * _MIN_REPEATS > len(sample):
            return cast("Column", array.fill_null(nothing).to_numpy(zero_copy_only=False))
        array = array.dictionary_encode()
    words = objects([*array.dictionary.to_numpy(zero_copy_only=False), nothing])
    codes: Integers = array.indices.cast(arrow.int64()).fill_null(len(words) - 1).to_numpy()
    return words[codes]
