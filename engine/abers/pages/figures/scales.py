"""Scales from values to coordinates, and round numbers along them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Scale", "Ticks", "drawn", "finite", "nice_ticks", "number_text", "widened"]

MOST_POINTS = 200
_LARGEST = 1e100  # differences and products of these numbers are finite
_RESOLUTION = 1e-9  # of a scale, relative to its numbers
_PLAIN = 1e9  # larger numbers have an exponent
_MOST_DECIMALS = 6


class Scale(NamedTuple):
    """A linear map of values between two ends to coordinates; values outside stay at the ends."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the coordinate of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)


class Ticks(NamedTuple):
    """Multiples of 1, 2 or 5 times a power of ten."""

    values: list[float]
    step: float
    decimals: int


def finite(value: float | None) -> float | None:
    """Return a number that can be drawn, or None for a gap."""
    if value is None or not math.isfinite(value):
        return None
    return min(_LARGEST, max(-_LARGEST, float(value)))


def widened(values: Iterable[float]) -> tuple[float, float]:
    """Return the least and the largest value, moved apart if a scale cannot lie between them."""
    all_values = [*values]
    low, high = min(all_values), max(all_values)
    least = max(abs(low), abs(high), 1.0) * _RESOLUTION
    return (low, high) if high - low > least else (low - least * 10, high + least * 10)


def nice_ticks(low: float, high: float, most: int) -> Ticks:
    """Return at most `most` + 1 round numbers from `low` to `high`."""
    least = (high - low) / most
    exponent = math.floor(math.log10(least))
    factor = next(
        (one for one in (1, 2, 5) if one * 10.0**exponent >= least * (1 - _RESOLUTION)), 10
    )
    step = factor * 10.0**exponent
    decimals = max(0, -exponent - (factor == 10))  # noqa: PLR2004 - 10 is 1 with the next exponent
    first = math.ceil(low / step - _RESOLUTION)
    last = math.floor(high / step + _RESOLUTION)
    return Ticks([one * step for one in range(first, last + 1)], step, decimals)


def number_text(value: float, decimals: int = 0) -> str:
    """Write a number with thousands and a minus sign."""
    plain = abs(value) < _PLAIN and decimals <= _MOST_DECIMALS
    text = f"{value:,.{decimals}f}" if plain else f"{value:.3g}"
    if not text.strip("-0.,"):
        return "0"
    return text.replace("-", "\N{MINUS SIGN}")


def drawn(length: int) -> Sequence[int]:
    """Return the indices to draw of `length` points: all, or some at equal distances."""
    if length <= MOST_POINTS:
        return range(length)
    return [one * (length - 1) // (MOST_POINTS - 1) for one in range(MOST_POINTS)]
