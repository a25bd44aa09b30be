"""Types of arrays, their encoding as bytes, and the constants of a run.

A column is encoded as a letter for its type, a count, and the raw values, little-endian. Weights
are integers in units of 2**-30, or of 1 if all are multiples of that, in the narrowest type.
"""

from __future__ import annotations

import struct
import sys
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abers.arrow_values import array_of_arrow, is_arrow

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
    "is_whole",
    "narrow",
    "packed",
    "parsed",
    "raw",
    "total",
    "unmasked",
    "widened",
]

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
