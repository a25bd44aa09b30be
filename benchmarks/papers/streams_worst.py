"""The worst part of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["WINDOW", "worst"]

WINDOW = 500
"""Labels in sequence, as they were predicted."""


def worst(losses: NDArray[np.float64]) -> float:
    """Return the largest mean of the losses of `WINDOW` labels, or the mean of all if fewer."""
    window = min(WINDOW, len(losses))
    return float(np.max(np.convolve(losses, np.ones(window), "valid"))) / window
