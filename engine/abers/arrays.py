"""Types of arrays, their encoding as bytes, and arrays that come through the interface of Arrow.

pyarrow reads them, and is imported when the first ones come. Its own conversions, and that of numpy
through them, would import pandas wherever it is installed.

A column is encoded as a letter for its type, a count, and the raw values, little-endian. Weights
are integers in units of 2**-30, or of 1 if all are multiples of that, in the narrowest type.
"""

from __future__ import annotations

import struct
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abers.exceptions import MissingExtraError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "EXPIRE",
    "LEARN",
    "LIFETIME",
    "LIMIT",
    "LIMIT_DECAYING",
    "ONE",
    "PREDICT",
    "REMOVE",
    "Bytes",
    "Floats",
    "Integers",
    "array_of_arrow",
    "is_arrow",
    "is_whole",
    "narrow",
    "packed",
    "parsed",
    "raw",
    "require_pyarrow",
    "total",
    "unmasked",
    "widened",
]


def require_pyarrow(module: str = "pyarrow") -> ModuleType:
    """Import pyarrow or one of its modules; a MissingExtraError says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        msg = "Arrow needs pyarrow, which is not installed; run: pip install 'abers[files]'"
        raise MissingExtraError(msg) from error


def is_arrow(values: object) -> bool:
    """Return whether Arrow has to convert values: those of pyarrow, or that numpy cannot read."""
    kind = type(values)
    offers = hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "__arrow_c_array__")
    return offers and (kind.__module__.startswith("pyarrow") or not hasattr(kind, "__array__"))


def array_of_arrow(values: Any) -> NDArray[Any]:  # noqa: ANN401 - of any library
    """Return a column as an array of shape (n,), or a table with a column for each of its own.

    A null is NaN among numbers, NaT among dates, and otherwise None. Times with a time zone are in
    UTC. Decimals, texts and what numpy lacks are objects.

    Examples
    --------
    >>> import pyarrow as pa
    >>> array_of_arrow(pa.chunked_array([[1, None], [3]]))
    array([ 1., nan,  3.])
    """
    try:
        arrow = import_module("pyarrow")
    except ImportError as error:
        msg = (
            f"{type(values).__name__} comes through Arrow, which needs pyarrow; run: pip install "
            "'abers[files]', or convert it with numpy.asarray"
        )
        raise MissingExtraError(msg) from error
    if isinstance(values, arrow.Array):
        return _array(arrow, arrow.chunked_array([values]))
    if hasattr(values, "__arrow_c_stream__"):
        return _array(arrow, arrow.chunked_array(values))
    return _array(arrow, arrow.chunked_array([arrow.array(values)]))


def _array(arrow: Any, column: Any) -> NDArray[Any]:  # noqa: ANN401 - pyarrow, a chunked array
    kind, types = column.type, arrow.types
    if types.is_struct(kind):
        return np.column_stack([_array(arrow, one) for one in column.flatten()])
    chunks = column.chunks
    if types.is_dictionary(kind):
        chunks, kind = [one.dictionary_decode() for one in chunks], kind.value_type
    if types.is_timestamp(kind) or types.is_date(kind):
        return _dates(arrow, chunks, kind)
    if types.is_integer(kind) or types.is_floating(kind):
        parts = [np.empty(0)] if not chunks else [_numbers(one) for one in chunks]
        return np.concatenate(parts)
    listed = [value for one in chunks for value in one.to_pylist()]
    if types.is_boolean(kind) and None not in listed:
        return np.array(listed, bool)
    found = np.empty(len(listed), object)
    found[:] = listed
    return found


def _numbers(chunk: Any) -> NDArray[Any]:  # noqa: ANN401 - an array of Arrow
    if chunk.null_count:
        return np.array([np.nan if one is None else one for one in chunk.to_pylist()])
    return np.from_dlpack(chunk)


def _dates(arrow: Any, chunks: Any, kind: Any) -> NDArray[Any]:  # noqa: ANN401 - as above
    days = kind == arrow.date32()
    width = arrow.int32() if days else arrow.int64()
    unit = "D" if days else getattr(kind, "unit", "ms")
    numbers = [one for chunk in chunks for one in chunk.view(width).to_pylist()]
    missing = np.iinfo(np.int64).min  # NaT
    ticks = np.array([missing if one is None else one for one in numbers], np.int64)
    return ticks.view(f"datetime64[{unit}]")


Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

PREDICT, LEARN, REMOVE, EXPIRE = 0, 1, 2, 3  # the steps of a run
ONE = 1 << 30  # the weight 1
LIFETIME = 30  # half-lives after which an observation is dropped
LIMIT = (1 << 63) - 1  # the greatest total weight: sums are signed 64-bit integers
LIMIT_DECAYING = 1 << 58  # the same with `half_life`, for scales up to 2**RESCALE

_COLUMN = struct.Struct("<cQ")
_TYPES = {b"d": "<f8", b"B": "<u1", b"H": "<u2", b"I": "<u4", b"Q": "<u8"}


def raw(column: NDArray[Any]) -> memoryview:
    """Return the values of an array as little-endian bytes, without a copy if possible."""
    little = column.astype(column.dtype.newbyteorder("<"), order="C", copy=False)
    return little.reshape(-1).view(np.uint8).data


def unmasked(values: ArrayLike) -> ArrayLike:  # noqa: PLR0911 - one a kind of values
    """Replace the masked values of a masked array, or of a list of them, by NaN; so nulls of Arrow.

    numpy would use the values behind the mask; NaN is refused wherever a value is required. Columns
    and tables of Arrow that numpy cannot read alone become arrays; see `arrow_values`.

    Examples
    --------
    >>> unmasked(np.ma.array([1, 2], mask=[False, True]))
    array([ 1., nan])
    >>> unmasked([1, 2])
    [1, 2]
    """
    if type(values) is np.ndarray:
        return values
    if is_arrow(values):
        return array_of_arrow(values)
    masked = sys.modules.get("numpy.ma")  # without this import no masked array exists
    if masked is None:
        return values
    if isinstance(values, list | tuple) and values and isinstance(values[0], np.ndarray):
        return cast("ArrayLike", [unmasked(row) for row in values])
    if not isinstance(values, masked.MaskedArray):
        return values
    if not masked.is_masked(values):
        return cast("ArrayLike", values.data)
    kind = np.float64 if values.dtype.kind in "fiub" else object
    return np.where(values.mask, np.nan, values.data.astype(kind))


def packed(column: NDArray[Any]) -> tuple[bytes, memoryview]:
    """Encode a column, in two parts."""
    letter = column.dtype.char.replace("L", "Q").encode()
    return _COLUMN.pack(letter, len(column)), raw(column.astype(_TYPES[letter], copy=False))


def parsed(payload: bytes | memoryview, at: int) -> list[tuple[str, NDArray[Any]]]:
    """Decode columns, each with its letter, from an offset to the end of a payload."""
    columns = []
    while at < len(payload):
        letter, count = _COLUMN.unpack_from(payload, at)
        at += _COLUMN.size
        column = np.frombuffer(payload, _TYPES[letter], count, at)
        columns.append((letter.decode(), column))
        at += column.nbytes
    return columns


def is_whole(weights: Integers) -> bool:
    """Return whether all weights are multiples of 1."""
    return not (weights & (ONE - 1)).any()


def narrow(weights: Integers, *, unit: bool) -> NDArray[Any]:
    """Return weights in the narrowest type, in units of 1 if `unit`."""
    values = weights >> 30 if unit else weights
    return values.astype(np.min_scalar_type(np.max(values, initial=0)))


def widened(column: NDArray[Any], limit: int, *, unit: bool) -> Integers | None:
    """Undo `narrow`: return weights in units of 2**-30, or None if one is above the limit."""
    scale = ONE if unit else 1
    if int(column.max(initial=0)) > limit // scale:
        return None
    units = column.astype(np.int64)
    units *= scale
    return units


def total(weights: Integers) -> int:
    """Return the exact sum of weights, which may exceed 64 bits if they are untrusted."""
    if int(np.max(weights, initial=0)) < (1 << 63) // (len(weights) + 1):
        return int(weights.sum())
    return (int((weights >> 32).sum()) << 32) + int((weights & 0xFFFFFFFF).sum())
