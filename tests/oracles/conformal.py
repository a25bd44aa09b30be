"""Conformal intervals by their definitions, in fractions.

`isotonic_quantile` is the isotonic quantile regression at a score, as a maximum of minima of
quantiles; `isotonic_mean` the isotonic mean likewise. A label belongs to an interval if it conforms
when the query has it, so every question is answered by a fit of its own.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Pair = tuple[Fraction, Fraction]  # a score or difficulty, and a label or error

__all__ = ["exact", "isotonic_mean", "isotonic_quantile", "level_set", "self_calibrated", "within"]


def exact(pairs: Sequence[tuple[float, float]]) -> list[Pair]:
    """Return pairs of floats as fractions."""
    return [(Fraction(score), Fraction(label)) for score, label in pairs]


def _fitted(
    pairs: Sequence[Pair], at: Fraction, value: Callable[[list[Fraction]], Fraction]
) -> Fraction:
    """Return the greatest, over left ends, of the least value, over right ends, of a window."""
    known = sorted({score for score, _ in pairs})
    return max(
        min(
            value([label for score, label in pairs if left <= score <= right])
            for right in known
            if right >= at
        )
        for left in known
        if left <= at
    )


def isotonic_quantile(pairs: Sequence[Pair], at: Fraction, level: Fraction) -> Fraction:
    """Return the isotonic quantile of labels at a score, which is among the pairs."""
    return _fitted(pairs, at, lambda labels: sorted(labels)[math.ceil(level * len(labels)) - 1])


def isotonic_mean(pairs: Sequence[Pair], at: Fraction) -> Fraction:
    """Return the isotonic mean of labels at a score, which is among the pairs."""
    return _fitted(pairs, at, lambda labels: sum(labels, Fraction()) / len(labels))


def within(pairs: Sequence[Pair], difficulty: Fraction, error: Fraction, level: Fraction) -> bool:
    """Return whether an error is at most the isotonic quantile of errors that is fitted with it."""
    fitted = isotonic_quantile([*pairs, (difficulty, error)], difficulty, level)
    return error <= fitted


def level_set(pairs: Sequence[Pair], value: Fraction) -> list[int]:
    """List the rows whose isotonic mean is a value."""
    known = {score: isotonic_mean(pairs, score) for score in {score for score, _ in pairs}}
    return [row for row, (score, _) in enumerate(pairs) if known[score] == value]


def self_calibrated(
    pairs: Sequence[Pair], score: Fraction, label: Fraction, level: Fraction
) -> bool:
    """Return whether a label is as near to its own fit as the share `level` of its level set."""
    full = [*pairs, (score, label)]
    value = isotonic_mean(full, score)
    residuals = sorted(abs(full[row][1] - value) for row in level_set(full, value))
    return abs(label - value) <= residuals[math.ceil(level * len(residuals)) - 1]
