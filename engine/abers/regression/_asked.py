"""What a predictive distribution is asked for, checked, and the form of its answers.

Governing rule: an array of any shape is answered by one of that shape, a number by a float.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers._shown import shown
from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers._arrays import Floats

__all__ = ["finite", "levels", "places", "plain"]


def plain(values: Floats) -> float | Floats:
    """Answer a number with a number and an array with an array."""
    return values if np.ndim(values) else float(values)


def levels(values: ArrayLike, name: str) -> Floats:
    """Check probabilities that are neither 0 nor 1."""
    found = np.asarray(values, np.float64)
    bad = ~((found > 0.0) & (found < 1.0))
    if bad.any():
        msg = f"{name}={shown(float(found[bad][0]))} is not inside (0, 1); give a probability"
        raise ParameterError(msg)
    return found


def places(values: ArrayLike) -> Floats:
    """Check where a CDF is asked for: numbers, among them infinite ones."""
    where = np.asarray(values, np.float64)
    if np.isnan(where).any():
        msg = "t is not a number; ask for the CDF at numbers"
        raise ParameterError(msg)
    return where


def finite(values: ArrayLike, name: str) -> Floats:
    """Check finite numbers."""
    numbers = np.asarray(values, np.float64)
    bad = ~np.isfinite(numbers)
    if bad.any():
        msg = f"{name}={shown(float(numbers[bad][0]))} is not a finite number; drop it"
        raise ParameterError(msg)
    return numbers
