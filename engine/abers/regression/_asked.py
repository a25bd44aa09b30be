"""What a predictive distribution is asked for, checked, and the form of its answers.

Governing rule: an array of any shape is answered by one of that shape, a number by a float.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers._arrays import unmasked
from abers._shown import shown
from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers._arrays import Floats

__all__ = ["count", "finite", "levels", "numbers", "places", "plain"]

_LARGEST = (1 << 63) - 1


def plain(values: Floats) -> float | Floats:
    """Answer a number with a number and an array with an array."""
    return values if np.ndim(values) else float(values)


def levels(values: ArrayLike, name: str) -> Floats:
    """Check probabilities that are neither 0 nor 1."""
    found = numbers(values, name)
    bad = ~((found > 0.0) & (found < 1.0))
    if bad.any():
        msg = f"{name}={shown(float(found[bad][0]))} is not inside (0, 1); give a probability"
        raise ParameterError(msg)
    return found


def places(values: ArrayLike) -> Floats:
    """Check where a CDF is asked for: numbers, among them infinite ones."""
    where = numbers(values, "t")
    if np.isnan(where).any():
        msg = "t is not a number; ask for the CDF at numbers"
        raise ParameterError(msg)
    return where


def finite(values: ArrayLike, name: str) -> Floats:
    """Check finite numbers."""
    found = numbers(values, name)
    bad = ~np.isfinite(found)
    if bad.any():
        msg = f"{name}={shown(float(found[bad][0]))} is not a finite number; drop it"
        raise ParameterError(msg)
    return found


def numbers(values: ArrayLike, name: str) -> Floats:
    """Check that these are numbers at all; they may be infinite, or NaN."""
    try:
        return np.asarray(unmasked(values), np.float64)
    except (TypeError, ValueError, OverflowError):
        msg = f"{name}={shown(values)} is no number and no array of numbers; convert it"
        raise ParameterError(msg) from None


def count(value: int, name: str, least: int, most: int = _LARGEST) -> int:
    """Check how many of something are asked for."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        range_ = f"of {least} or more" if most == _LARGEST else f"between {least} and {most}"
        msg = f"{name}={shown(value)} is not a whole number {range_}"
        raise ParameterError(msg)
    return int(value)
