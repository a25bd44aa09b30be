"""What groups of forecasts show: on which side of the tolerance they are, by name and number."""

from __future__ import annotations

__all__ = [
    "ALL",
    "FIRST_BIN",
    "LOWER",
    "NOT_FOUND",
    "OVER_CONFIDENT",
    "STATUSES",
    "TOO_HIGH",
    "TOO_LOW",
    "TRUSTWORTHY",
    "UNDER_CONFIDENT",
    "UPPER",
]

TRUSTWORTHY = "trustworthy"
TOO_HIGH, TOO_LOW = "too high", "too low"
OVER_CONFIDENT, UNDER_CONFIDENT = "over-confident", "under-confident"
NOT_FOUND = "no miscalibration found"
STATUSES = (TRUSTWORTHY, TOO_HIGH, TOO_LOW, OVER_CONFIDENT, UNDER_CONFIDENT, NOT_FOUND)
"""In the order in which the core numbers them."""
ALL, LOWER, UPPER, FIRST_BIN = range(4)
"""Indices of groups; the bins are the last."""
