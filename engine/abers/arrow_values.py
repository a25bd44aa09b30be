"""Values that come through the C interface of Arrow, as arrays of numpy.

pyarrow reads them, and is imported when the first ones come. Its own conversions, and that of numpy
through them, would import pandas wherever it is installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.exceptions import MissingExtraError

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

__all__ = ["array_of_arrow", "is_arrow", "require_pyarrow"]


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
