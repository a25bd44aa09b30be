"""Columns of numbers or objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Column", "column", "kind_of", "numbers", "objects", "repeated"]

Column: TypeAlias = NDArray[Any]
"""Of float64, int64 or bool, or of objects."""

_PLAIN: Mapping[type, type[np.generic]] = {float: np.float64, int: np.int64, bool: np.bool_}


def objects(values: Sequence[Any]) -> Column:
    """Return a column of any objects."""
    return np.fromiter(values, object, len(values))


def column(values: Sequence[Any]) -> Column:
    """Return a column of numbers if all values are of one plain type, otherwise of objects.

    Parameters
    ----------
    values
        One a row.

    Returns
    -------
    numpy.ndarray
        Of float64, int64, bool or object; its `tolist` returns the values.

    Examples
    --------
    >>> column([1, 2]).dtype, column([1, 2.5]).dtype, column([True]).dtype
    (dtype('int64'), dtype('O'), dtype('bool'))
    """
    found = numbers(values, kind_of(values))
    return objects(values) if found is None else found


def kind_of(values: Sequence[Any]) -> type | None:
    """Return the type of all values; None if they have several, or there are no values."""
    if not values:
        return None
    first = type(values[0])  # counting it takes less than a set of the types
    return first if [*map(type, values)].count(first) == len(values) else None


def numbers(values: Sequence[Any], kind: type | None) -> Column | None:
    """Return values of one type as numbers; None if an array cannot have them as numbers."""
    if kind is not None and (plain := _PLAIN.get(kind)) is not None:
        try:
            return np.fromiter(values, plain, len(values))
        except OverflowError:  # a whole number of more than 64 bits
            return None
    return None


def repeated(value: object, size: int) -> Column:
    """Return a column of one object; `numpy.full` would make a string of its own for each row."""
    found = np.empty(size, object)
    found.fill(value)
    return found
