"""The definition of the unbounded interval for a mean, in fractions, which the tests compare with.

Nothing is shared with the code under test. For a possible label y of the query, the labels kept and
y are clipped at the (m + 1)-th smallest and the (m + 1)-th largest of them all; the answer for y is
the isotonic regression of the clipped labels on the scores, at the query. The interval reaches from
the least to the greatest answer.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Pair = tuple[float, Fraction]
"""Score and label."""


def isotonic(pairs: Sequence[Pair], at: float) -> Fraction:
    """Isotonic regression at a score that is there: max over a of min over b of means."""

    def mean(a: float, b: float) -> Fraction:
        inside = [y for s, y in pairs if a <= s <= b]
        return sum(inside, Fraction()) / len(inside)

    known = sorted({s for s, _ in pairs})
    return max(min(mean(a, b) for b in known if b >= at) for a in known if a <= at)


def clipped(pairs: Sequence[Pair], m: int) -> list[Pair]:
    """Clip labels at the (m + 1)-th smallest and the (m + 1)-th largest."""
    labels = sorted(y for _, y in pairs)
    return [(s, min(max(y, labels[m]), labels[-m - 1])) for s, y in pairs]


def answer(pairs: Sequence[Pair], query: float, label: Fraction, m: int) -> Fraction:
    """Return the answer for a possible label of the query."""
    return isotonic(clipped([*pairs, (query, label)], m), query)


def interval(pairs: Sequence[Pair], query: float, m: int) -> tuple[Fraction, Fraction]:
    """Return the least and the greatest answer; there must be 2m labels."""
    labels = [y for _, y in pairs]
    ends = min(labels) - 1, max(labels) + 1
    low, high = (answer(pairs, query, end, m) for end in ends)
    return low, high


def exact(pairs: Sequence[tuple[float, float]]) -> list[Pair]:
    """Return scores and labels with the labels as fractions."""
    return [(s, Fraction(y)) for s, y in pairs]
