"""Least squares on segment indicators: exact sums, and what they say of a query.

The sums are integers, so that what leaves leaves no trace, and equal observations have equal sums
in any order. The factors of their matrix are made anew when a query follows a change: d**3 / 3
multiplications for d columns. An update of the factors would take d**2 of them, but its rounding
would stay: a calibrator would depend on what it forgot, and on whether it was restored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.arrays import Floats

__all__ = ["MOST", "SegmentSums"]

MOST = 1 << 62
"""The greatest sum of residuals, in units, each without its sign."""

_LEAST_PIVOT = 2.0**-40  # of a column's own square: what is below is rounding
_LEAST_REST = 2.0**-20  # of an indicator, likewise


class SegmentSums:
    """The sums of p p' and of p r, for rows p = (1, indicators) and whole residuals r."""

    def __init__(self, segments: int) -> None:
        size = segments + 1
        self.total = 0  # of residuals without their signs
        self._squares = np.zeros((size, size), np.int64)
        self._products = np.zeros(size, np.int64)
        self._factors: tuple[Floats, Floats, Floats] | None = None

    def add(self, row: NDArray[np.int64], residual: int, count: int) -> None:
        """Add an observation `count` times; below 0, take it away."""
        self.total += abs(residual) * count
        self._squares += count * np.outer(row, row)
        self._products += count * residual * row
        self._factors = None

    def query(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return p' A^-1 b and p' A^-1 p of each column p of `rows`, with A and b the two sums.

        The second is infinite for a p that is no combination of the rows added. Each number is
        computed alone, in one order of operations, however many columns there are.
        """
        lower, pivots, targets = self._factors = self._factors or self._factored()
        rest, size = rows.astype(float), rows.shape[1]
        mean, leverage, apart = np.zeros(size), np.zeros(size), np.zeros(size, bool)
        # Invariant: `rest` is what the columns of A before k leave of each p.
        for k, pivot in enumerate(pivots.tolist()):
            part = rest[k].copy()
            if pivot == 0.0:
                apart |= np.abs(part) > _LEAST_REST
                continue
            share = part / pivot
            mean += share * targets[k]
            leverage += share * part
            rest[k + 1 :] -= lower[k + 1 :, k, np.newaxis] * part
        leverage[apart] = np.inf
        return mean, leverage

    def _factored(self) -> tuple[Floats, Floats, Floats]:
        """Return L and D of A = L D L', and L^-1 b; a pivot is 0 where a column depends on others.

        Then the whole rest of the column is 0, since A has no negative squares.
        """
        rest, targets = self._squares.astype(float), self._products.astype(float)
        lower, pivots = np.zeros_like(rest), np.zeros_like(targets)
        for k, own in enumerate(np.diag(self._squares).tolist()):
            pivot = float(rest[k, k])
            if pivot <= _LEAST_PIVOT * own:
                continue
            pivots[k] = pivot
            lower[k + 1 :, k] = column = rest[k + 1 :, k] / pivot
            rest[k + 1 :, k + 1 :] -= np.outer(column, rest[k, k + 1 :])
            targets[k + 1 :] -= column * targets[k]
        return lower, pivots, targets
