"""Evidence as a power of ten, as pages show it."""

from __future__ import annotations

import math

__all__ = ["HIGHEST", "power"]

HIGHEST = 30.0
"""Largest power of ten of evidence that is shown."""


def power(log_wealth: float) -> float:
    """Return the power of ten, up to the largest that is shown."""
    return min(log_wealth / math.log(10.0), HIGHEST)
