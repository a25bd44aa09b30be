"""Arrow arrays from numpy arrays and back, by their buffers.

The conversions of pyarrow import pandas wherever it is installed, which takes about a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.arrow_values import require_pyarrow

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["new_array", "numbers", "repeated_array", "text_ends", "valid_rows"]

_SEPARATOR = "\0"


def valid_rows(array: pa.Array) -> NDArray[np.bool_] | None:
    """Return which rows have a value; None if all have.

    Examples
    --------
    >>> import pyarrow as pa
    >>> valid_rows(pa.array([1, None])), valid_rows(pa.array([1]))
    (array([ True, False]), None)
    """
    if not array.null_count:
        return None
    bits = array.buffers()[0]
    return _bits(array.is_valid(), 1) if bits is None else _bits(array, 0)


def numbers(array: pa.Array, kind: type[np.generic] | None = None) -> NDArray[Any]:
    """Return integers, floats or booleans, zero in place of nulls.

    Parameters
    ----------
    array
        Of numbers, or of a type of the same width if the kind is given, such as of times.
    kind
        What numpy calls the values, by default what it calls those of the type.

    Examples
    --------
    >>> import pyarrow as pa
    >>> numbers(pa.array([None, 3], pa.int16())), numbers(pa.array([True]))
    (array([0, 3], dtype=int16), array([ True]))
    """
    if require_pyarrow().types.is_boolean(array.type):
        found: NDArray[Any] = _bits(array, 1)
    else:
        found = _buffer(array, 1, kind or array.type.to_pandas_dtype())
        found = found[array.offset : array.offset + len(array)]
    valid = valid_rows(array)
    return found if valid is None else np.where(valid, found, found.dtype.type(0))


def text_ends(array: pa.Array) -> NDArray[Any]:
    """Return where the strings or bytes of an array begin, and where the last one ends."""
    types = require_pyarrow().types
    wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
    ends = _buffer(array, 1, np.int64 if wide else np.int32)
    return ends[array.offset : array.offset + len(array) + 1]


def new_array(
    values: NDArray[Any], kind: pa.DataType, valid: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return an array of int64, float64, bool or string.

    Parameters
    ----------
    values
        One a row; None among objects is a null.
    kind
        The type of the array.
    valid
        Rows that are not null, if the values are numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> new_array(np.array(["a", None], object), pa.string()).to_pylist()
    ['a', None]
    """
    arrow = require_pyarrow()
    if not len(values):
        return arrow.nulls(0, kind)
    if arrow.types.is_string(kind):
        texts = values.tolist()
        try:
            joined = _SEPARATOR.join(texts)
        except TypeError:  # some are None
            valid = np.fromiter((one is not None for one in texts), bool, len(texts))
            texts = ["" if one is None else one for one in texts]
            joined = _SEPARATOR.join(texts)
        buffers = _text_buffers(texts, joined)
    else:
        if values.dtype == object:
            valid = np.not_equal(values, None).astype(bool)
            values = np.array([False if one is None else one for one in values.tolist()])
        buffers = [_number_buffer(values, kind)]
    mask = None if valid is None or valid.all() else _packed(valid)
    return arrow.Array.from_buffers(kind, len(values), [mask, *buffers])


def repeated_array(value: object, kind: pa.DataType, size: int) -> pa.Array:
    """Return an array of a value of int64, float64, bool or string, or of nulls."""
    arrow = require_pyarrow()
    if value is None:
        return arrow.nulls(size, kind)
    return arrow.repeat(new_array(np.array([value], object), kind)[0], size)


def _buffer(array: pa.Array, number: int, kind: type[np.generic]) -> NDArray[Any]:
    buffer = array.buffers()[number]
    return np.zeros(0, kind) if buffer is None else np.frombuffer(buffer, kind)


def _bits(array: pa.Array, number: int) -> NDArray[np.bool_]:
    """Return the bits of a buffer for the rows of an array."""
    end = array.offset + len(array)
    whole = _buffer(array, number, np.uint8)[: (end + 7) // 8]
    return np.unpackbits(whole, count=end, bitorder="little")[array.offset :].view(np.bool_)


def _packed(bits: NDArray[np.bool_]) -> Any:  # noqa: ANN401 - a buffer of pyarrow
    return require_pyarrow().py_buffer(np.packbits(bits, bitorder="little"))


def _number_buffer(values: NDArray[Any], kind: pa.DataType) -> Any:  # noqa: ANN401
    arrow = require_pyarrow()
    if arrow.types.is_boolean(kind):
        return _packed(values.astype(np.bool_, casting="safe", copy=False))
    dtype = kind.to_pandas_dtype()
    return arrow.py_buffer(np.ascontiguousarray(values.astype(dtype, casting="safe", copy=False)))


def _text_buffers(texts: Sequence[str], joined: str) -> list[Any]:
    """Return the offsets and the bytes of strings, which are joined by the separator."""
    arrow, data = require_pyarrow(), joined.encode()
    cuts = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
    if len(cuts) == len(texts) - 1:
        data = data.replace(_SEPARATOR.encode(), b"")
        ends = np.append(cuts - np.arange(len(cuts)), len(data))
    else:  # some have the separator in them
        parts = [text.encode() for text in texts]
        data, ends = b"".join(parts), np.cumsum([len(part) for part in parts], dtype=np.int64)
    if len(data) > np.iinfo(np.int32).max:
        msg = f"the strings of a column have {len(data)} bytes together; divide the rows"
        raise OverflowError(msg)
    offsets = np.zeros(len(texts) + 1, np.int32)
    offsets[1:] = ends
    return [arrow.py_buffer(offsets), arrow.py_buffer(data)]
