"""Checks of numbers that are read from a saved state.

Governing rule: what no state could have held is a ValueError that names it, before anything is made
of it; whoever reads a whole state makes a StateError of that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["MOST", "column", "count", "number", "numbers", "require", "whole", "wholes"]

MOST = 1 << 48
"""More than anybody counts; sums over bins and calibrators stay exact in 64 bits."""


def require(condition: object, what: str) -> None:
    """Raise a ValueError that names what is wrong, unless a condition holds."""
    if not condition:
        raise ValueError(what)


def whole(value: Any, what: str, least: int, most: int) -> int:  # noqa: ANN401
    """Check a whole number between two ends."""
    require(type(value) is int and least <= value <= most, what)
    checked: int = value
    return checked


def count(value: Any, what: str, most: int = MOST) -> int:  # noqa: ANN401
    """Check how many there are of something."""
    return whole(value, what, 0, most)


def number(value: Any, what: str, least: float = -math.inf, most: float = math.inf) -> float:  # noqa: ANN401
    """Check a number between two ends, which may be infinite; it is not NaN."""
    require(type(value) is float and least <= value <= most, what)
    checked: float = value
    return checked


def wholes(
    values: Any,  # noqa: ANN401
    what: str,
    size: int | None = None,
    most: int = MOST,
) -> NDArray[np.int64]:
    """Check a list of whole numbers, from 0 on."""
    require(_listed(values, size), what)
    return np.array([count(one, what, most) for one in values], np.int64)


def numbers(
    values: Any,  # noqa: ANN401
    what: str,
    size: int | None = None,
    least: float = -math.inf,
    most: float = math.inf,
) -> NDArray[np.float64]:
    """Check a list of numbers between two ends."""
    require(_listed(values, size), what)
    return np.array([number(one, what, least, most) for one in values], np.float64)


def column(given: Any, kind: str, what: str, size: int | None = None) -> NDArray[Any]:  # noqa: ANN401
    """Read a column from its little-endian bytes."""
    require(isinstance(given, bytes | memoryview), what)
    found = np.frombuffer(given, kind)
    require(size is None or len(found) == size, what)
    return found.astype(found.dtype.newbyteorder("="))


def _listed(values: Sequence[Any], size: int | None) -> bool:
    return isinstance(values, list | tuple) and (size is None or len(values) == size)
