"""Sums and counts of forecasts with labels: a specification of the native core.

A batch is checked before anything is added, and added row by row, so results do not depend on how
forecasts are batched.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from tests.oracles.elementary import logarithm, logistic

if TYPE_CHECKING:
    from abers.arrays import Floats, Integers

__all__ = [
    "BINS",
    "CELL_EDGES",
    "EDGES",
    "UNIT",
    "BinaryScores",
    "LossDifference",
    "Tally",
    "added",
    "bet_on_bins",
    "first_unscored",
]

BINS = 10
_LEAST = 1e-6  # probability of a label in a difference of log losses
_LARGEST = 3.0  # nats of such a difference
UNIT = 1 << 64  # a tally rounds forecasts to multiples of 1 / UNIT
# Bins are closed on the left: a forecast on an edge belongs to the bin above it. Forecasts are
# compared with edges, because int(10 p) rounds some forecasts just below an edge across it.
EDGES = np.array([edge / BINS for edge in range(1, BINS)])
# Cells of a tally are closed on the left too.
CELL_EDGES = sorted(
    {*(logistic(k / 8) for k in range(-64, 65)), *(edge / 20 for edge in range(1, 20))}
)


def added(total: float, terms: Floats) -> float:
    """Add terms one after the other, so the sum does not depend on how they are batched."""
    return float(np.cumsum(np.concatenate(([total], terms)))[-1])


def first_unscored(forecasts: Floats, labels: Floats) -> int:
    """Return the first row that has no probability or no label, or the number of rows."""
    good = (forecasts >= 0.0) & (forecasts <= 1.0) & ((labels == 0.0) | (labels == 1.0))
    return len(forecasts) if good.all() else int(good.argmin())


class BinaryScores:
    """Log losses, squares and bins of forecasts, and how many there are of each."""

    def __init__(self) -> None:
        """Start with no forecasts."""
        self.sums, self.counts = np.zeros(2 + BINS), np.zeros(1 + 2 * BINS, np.int64)
        self.widths, self.tally = 0.0, Tally()

    def add(self, forecasts: Floats, labels: Floats) -> int:
        """Add up log losses, squares and bins; return the first invalid row, or their number.

        If a row has no probability or no label, nothing is added. `sums` are the finite log losses,
        the squares, and the forecasts of each bin; `counts` are the infinite log losses, the number
        of forecasts of each bin, and of those with label 1.
        """
        bad = first_unscored(forecasts, labels)
        if bad < len(forecasts):
            return bad
        sums, counts = self.sums, self.counts
        bins = np.searchsorted(EDGES, forecasts, side="right").tolist()
        for p, y, b in zip(forecasts.tolist(), labels.tolist(), bins, strict=True):
            of_label = p if y else 1.0 - p
            if of_label > 0.0:
                sums[0] -= logarithm(of_label)
            else:
                counts[0] += 1
            sums[1] += (y - p) * (y - p)
            sums[2 + b] += p
            counts[1 + b] += 1
            counts[1 + BINS + b] += int(y)
        self.tally.add(forecasts, labels)
        return len(forecasts)


class LossDifference:
    """Log loss of one forecast minus that of another, row by row.

    Probabilities of a label are at least 1e-6, and a difference is at most 3 nats in size.
    `clipped` is the number of those that were larger.
    """

    def __init__(self) -> None:
        """Start with no labels."""
        self.total, self.squares = 0.0, 0.0
        self.clipped = self.count = self.start = self.until = 0

    def add(self, first: Floats, second: Floats, labels: Floats, times: Integers) -> None:
        """Add forecasts and labels."""
        columns = (first.tolist(), second.tolist(), labels.tolist(), times.tolist())
        for p, q, y, time in zip(*columns, strict=True):
            one, other = (max(r if y else 1.0 - r, _LEAST) for r in (p, q))
            difference = logarithm(other / one)
            self.clipped += abs(difference) > _LARGEST
            difference = min(max(difference, -_LARGEST), _LARGEST)
            self.total += difference
            self.squares += difference * difference
            if not self.count:
                self.start = self.until = time
            self.until = max(self.until, time)
            self.count += 1


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
    """Forecasts and labels in cells: their number, ones, and the exact sum of the forecasts."""

    def __init__(self) -> None:
        """Start with no forecasts."""
        self._cells: dict[int, tuple[int, int, int]] = {}

    def add(self, forecasts: Floats, labels: Floats) -> None:
        """Count probabilities, rounded half to even, with labels 0 or 1."""
        for forecast, label in zip(forecasts.tolist(), labels.tolist(), strict=True):
            cell = bisect_right(CELL_EDGES, forecast)
            self._add(cell, 1, int(label), round(Fraction(forecast) * UNIT))

    def include(self, other: Tally) -> None:
        """Add the forecasts of another."""
        for cell, sums in other._cells.items():
            self._add(cell, *sums)

    def _add(self, cell: int, *more: int) -> None:
        before = self._cells.get(cell, (0, 0, 0))
        count, positives, units = (old + new for old, new in zip(before, more, strict=True))
        self._cells[cell] = count, positives, units

    def size(self) -> int:
        """Return the number of cells that have a forecast."""
        return len(self._cells)

    def cells(self, forecasts: Floats, counts: Integers, positives: Integers) -> None:
        """Write the mean forecast of each cell, ascending, and the counts there."""
        for row, (_, (count, ones, units)) in enumerate(sorted(self._cells.items())):
            forecasts[row], counts[row], positives[row] = units / (count * UNIT), count, ones
