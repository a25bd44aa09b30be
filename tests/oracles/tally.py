"""Sums and counts of forecasts with labels: a specification of the native core.

A batch is checked before anything is added, and added row by row, so results do not depend on how
forecasts are batched.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from tests.oracles.elementary import logarithm

if TYPE_CHECKING:
    from abers.arrays import Floats, Integers

__all__ = [
    "BINS",
    "EDGES",
    "PARTS",
    "Tally",
    "add_loss_differences",
    "add_scores",
    "added",
    "bet_on_bins",
    "first_unscored",
]

BINS = 10
_LEAST = 1e-6  # probability of a label in a difference of log losses
PARTS = 4_096  # a tally rounds forecasts to multiples of 1 / PARTS
# Bins are closed on the left: a forecast on an edge belongs to the bin above it. Forecasts are
# compared with edges, because int(10 p) rounds some forecasts just below an edge across it.
EDGES = np.array([edge / BINS for edge in range(1, BINS)])


def added(total: float, terms: Floats) -> float:
    """Add terms one after the other, so the sum does not depend on how they are batched."""
    return float(np.cumsum(np.concatenate(([total], terms)))[-1])


def first_unscored(forecasts: Floats, labels: Floats) -> int:
    """Return the first row that has no probability or no label, or the number of rows."""
    good = (forecasts >= 0.0) & (forecasts <= 1.0) & ((labels == 0.0) | (labels == 1.0))
    return len(forecasts) if good.all() else int(good.argmin())


def add_scores(forecasts: Floats, labels: Floats, sums: Floats, counts: Integers) -> int:
    """Add up log losses, squares and bins; return the first invalid row, or the number of rows.

    If a row has no probability or no label, nothing is added. `sums` are the finite log losses,
    the squares, and the forecasts of each bin; `counts` are the infinite log losses, the number of
    forecasts of each bin, and of those with label 1.
    """
    bad = first_unscored(forecasts, labels)
    if bad < len(forecasts):
        return bad
    bins = np.searchsorted(EDGES, forecasts, side="right").tolist()
    for p, y, b in zip(forecasts.tolist(), labels.tolist(), bins, strict=True):
        of_label = p if y else 1.0 - p
        if of_label > 0.0:
            sums[0] -= math.log(of_label)
        else:
            counts[0] += 1
        sums[1] += (y - p) * (y - p)
        sums[2 + b] += p
        counts[1 + b] += 1
        counts[1 + BINS + b] += int(y)
    return len(forecasts)


def add_loss_differences(
    first: Floats, second: Floats, labels: Floats, largest: float, sums: Floats
) -> None:
    """Add the log loss of one forecast minus that of another, row by row.

    Probabilities of a label are at least 1e-6, and a difference is at most `largest` in size.
    `sums` are those of the differences and of their squares, and the number of those that were
    larger.
    """
    total, squares, clipped = sums.tolist()
    for p, q, y in zip(first.tolist(), second.tolist(), labels.tolist(), strict=True):
        one, other = (max(r if y else 1.0 - r, _LEAST) for r in (p, q))
        difference = logarithm(other / one)
        clipped += abs(difference) > largest
        difference = min(max(difference, -largest), largest)
        total += difference
        squares += difference * difference
    sums[:] = total, squares, clipped


def bet_on_bins(  # noqa: PLR0913, PLR0917 - one call a batch
    shares: Floats,
    null: Floats,
    prior: Floats,
    counts: Floats,
    forget: float,
    factors: Floats,
    *,
    capped: bool,
) -> None:
    """Bet on each row of shares that bins fill as before, write its factor, and count it.

    The weight of a bin in a bet is its count plus the prior. The factor of a bet is the mean, over
    the shares, of the bet divided by `null`; it is 1 if bets are `capped` and the last bin would
    have more than `null`. Counts are multiplied by `forget` before a row is added.
    """
    held, null_, prior_ = counts.tolist(), null.tolist(), prior.tolist()
    for row, share in enumerate(shares.tolist()):
        weights = [count + more for count, more in zip(held, prior_, strict=True)]
        total = factor = 0.0
        for weight in weights:  # one after the other: `sum` rounds otherwise in newer Pythons
            total += weight
        for s, weight, of_null in zip(share, weights, null_, strict=True):
            factor += s * weight / (total * of_null)
        won = capped and weights[-1] > null_[-1] * total
        factors[row] = 1.0 if won else factor
        held = [count * forget + s for count, s in zip(held, share, strict=True)]
    counts[:] = held


class Tally:
    """Number of forecasts at each multiple of 1/4096, and of those with label 1."""

    def __init__(self) -> None:
        """Start with no forecasts."""
        self._groups: dict[int, tuple[int, int]] = {}

    def add(self, forecasts: Floats, labels: Floats) -> None:
        """Count probabilities, rounded half to even, with labels 0 or 1."""
        numbers = np.rint(forecasts * PARTS).astype(int).tolist()
        for number, label in zip(numbers, labels.tolist(), strict=True):
            self._add(number, 1, int(label))

    def load(self, numbers: Integers, counts: Integers, positives: Integers) -> None:
        """Add counts of numbers."""
        columns = (numbers.tolist(), counts.tolist(), positives.tolist())
        for number, count, ones in zip(*columns, strict=True):
            self._add(number, count, ones)

    def _add(self, number: int, count: int, positives: int) -> None:
        before = self._groups.get(number, (0, 0))
        self._groups[number] = (before[0] + count, before[1] + positives)

    def size(self) -> int:
        """Return the number of distinct numbers."""
        return len(self._groups)

    def groups(self, numbers: Integers, counts: Integers, positives: Integers) -> None:
        """Write the distinct numbers, ascending, and their counts."""
        for row, (number, group) in enumerate(sorted(self._groups.items())):
            numbers[row], (counts[row], positives[row]) = number, group
