"""Sums over labels that should be counted as often as a level says: a specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tests.oracles.findings import Group

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = ["LevelSums"]


class LevelSums:
    """Number of labels, those counted at most, ties, and squared distances to the level."""

    def __init__(self, level: float, tolerances: Floats) -> None:
        """Start with no labels."""
        self.cut, self.tolerances = level, tolerances.tolist()
        self._sums = np.zeros(4)

    def add(self, least: Floats, most: Floats) -> None:
        """Add labels that are counted so far at least, and at most."""
        for low, high in zip(least.tolist(), most.tolist(), strict=True):
            below, above = low - self.cut, high - self.cut
            self._sums += [1.0, high, high - low, max(below * below, above * above)]

    @property
    def labels(self) -> int:
        """Number of labels."""
        return int(self._sums[0])

    def sums(self, out: Floats) -> None:
        """Write the sums."""
        out[:] = self._sums

    def groups(self) -> list[Group]:
        """Return the sums of all labels, of an empty lower half, and of the upper half."""
        return self.main_groups(0)

    def main_groups(self, tolerance: int) -> list[Group]:
        """Return the same at one of the tolerances."""
        p, t = self.cut, self.tolerances[tolerance]
        n, most, ties, squares = self._sums.tolist()
        lower, upper = p / (p + (1.0 - p) * t), p * t / (p * t + 1.0 - p)
        one = Group(n, most, n * p, squares, n * lower, n * upper + ties)
        return [one, Group(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), one]

    def clear(self) -> None:
        """Begin anew."""
        self._sums[:] = 0.0
