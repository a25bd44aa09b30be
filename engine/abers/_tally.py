"""Sums over forecasts whose labels have come: the executable specification of the native ones.

Governing rule: a batch is looked at before anything is added, and added in its order, so that it
does not matter how forecasts were batched.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from abers._arrays import Floats, Integers

__all__ = ["BINS", "PARTS", "Tally", "add_scores", "added", "bet_on_bins"]

BINS = 10
PARTS = 4_096  # of the unit interval, to whose edges a tally rounds
# Bins are closed on the left: a forecast on an edge belongs to the bin above it. Compared, not
# computed as int(10 p), which rounds some forecasts just below an edge across it.
_EDGES = np.array([edge / BINS for edge in range(1, BINS)])


def added(total: float, terms: Floats) -> float:
    """Add terms one after the other, so that it does not matter how they were batched."""
    return float(np.cumsum(np.concatenate(([total], terms)))[-1])


def add_scores(forecasts: Floats, labels: Floats, sums: Floats, counts: Integers) -> int:
    """Add up log losses, squares and bins of forecasts; the first row that is none, or how many.

    Nothing is added if there is a row without a probability and a label. `sums` are the finite log
    losses, the squares, and the forecasts of each bin; `counts` the infinite log losses, the
    forecasts of each bin, and those with label 1.
    """
    good = (forecasts >= 0.0) & (forecasts <= 1.0) & ((labels == 0.0) | (labels == 1.0))
    if not good.all():
        return int(good.argmin())
    bins = np.searchsorted(_EDGES, forecasts, side="right").tolist()
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
    """Bet on each row of shares that bins fill as they did before, and count it.

    A bet gives each bin what was counted in it and the prior; its factor is the mean, over the
    shares, of the bet over `null`. It is 1 where bets are `capped` and would give the last bin
    more than `null`. What was counted is multiplied by `forget` before each row is added.
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
    """How many forecasts there are of each multiple of 1/4096, and how many with label 1."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self._groups: dict[int, tuple[int, int]] = {}

    def add(self, forecasts: Floats, labels: Floats) -> None:
        """Count probabilities with labels 0 or 1, rounded half to even."""
        numbers = np.rint(forecasts * PARTS).astype(int).tolist()
        for number, label in zip(numbers, labels.tolist(), strict=True):
            self._add(number, 1, int(label))

    def load(self, numbers: Integers, counts: Integers, positives: Integers) -> None:
        """Count so many of each number at once."""
        columns = (numbers.tolist(), counts.tolist(), positives.tolist())
        for number, count, ones in zip(*columns, strict=True):
            self._add(number, count, ones)

    def _add(self, number: int, count: int, positives: int) -> None:
        before = self._groups.get(number, (0, 0))
        self._groups[number] = (before[0] + count, before[1] + positives)

    def size(self) -> int:
        """Count the numbers that there are."""
        return len(self._groups)

    def groups(self, numbers: Integers, counts: Integers, positives: Integers) -> None:
        """Write the numbers that there are, ascending, and what was counted of each."""
        for row, (number, group) in enumerate(sorted(self._groups.items())):
            numbers[row], (counts[row], positives[row]) = number, group
