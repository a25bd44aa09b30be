"""Sums that a verdict needs of forecasts that are all one level, such as that of a quantile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abers.arrays import raw
from abers.monitoring.forecast_groups import ForecastGroup
from abers.serialization import MAX_COUNT, column, number, require

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers.arrays import Floats

__all__ = ["LevelSums"]

_NONE = ForecastGroup(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
_SUMS = 5  # level, labels, most, ties, squares
_ROUNDED = 1.0 + 1e-9


class LevelSums:
    """Sums over labels that should be counted as often as a level says.

    Parameters
    ----------
    level
        Share of the labels that should be counted, between 0 and 1.
    tolerance
        Ratio of odds, at least 1; see `ForecastGroups`.

    Attributes
    ----------
    sums
        Level, number of labels, those counted at most, ties, and squared distances to the level.

    Notes
    -----
    Of each label there are two numbers from 0 to 1: how far it is counted at least, and at most.
    They differ if a label equals a quantile: P(Y < q) may be below the level of a right quantile
    and P(Y <= q) above it. Too many labels are counted only if even the least are too many, too few
    only if even the most are too few.

    Examples
    --------
    >>> sums = LevelSums(0.25, 1.0)
    >>> sums.add(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0]))  # the second is a tie
    >>> one = sums.groups()[0]
    >>> one.labels, one.observed, one.least, one.most
    (3.0, 2.0, 0.75, 1.75)
    """

    def __init__(self, level: float, tolerance: float) -> None:
        self.level, self.tolerance = level, tolerance
        self.sums = np.array([level, 0.0, 0.0, 0.0, 0.0])

    def add(self, least: Floats, most: Floats) -> None:
        """Add labels, in the order of the observations."""
        rows = np.empty((1 + len(most), _SUMS - 1))
        rows[0] = self.sums[1:]
        rows[1:, 0], rows[1:, 1], rows[1:, 2] = 1.0, most, most - least
        rows[1:, 3] = np.maximum((least - self.level) ** 2, (most - self.level) ** 2)
        # Row by row, so that batches make no difference.
        self.sums[1:] = rows.cumsum(axis=0)[-1]

    @property
    def labels(self) -> int:
        """Number of labels."""
        return int(self.sums[1])

    @property
    def cut(self) -> float:
        """The level, at which halves would meet."""
        return self.level

    def groups(self) -> list[ForecastGroup]:
        """Return the sums of all labels, of an empty lower half, and of the upper half."""
        return self.main_groups(self.tolerance)

    def main_groups(self, tolerance: float) -> list[ForecastGroup]:
        """Return the same at another tolerance."""
        p, n, most, ties, squares = self.sums.tolist()
        lower = p / (p + (1.0 - p) * tolerance)
        upper = p * tolerance / (p * tolerance + 1.0 - p)
        one = ForecastGroup(n, most, n * p, squares, n * lower, n * upper + ties)
        return [one, _NONE, one]

    def is_undecided(self, main: float, bins: float) -> bool:
        """Return whether all labels can neither be outside the tolerance nor inside it.

        Parameters
        ----------
        main, bins
            Logarithms of one divided by the level of each side, and of bins, of which there are
            none.
        """
        del bins
        one = self.groups()[0]
        below, above = one.most - one.observed, one.observed - one.least
        nearest = min(below, above)  # negative if they are outside
        return nearest * nearest < 2.0 * one.squares * main

    def state(self) -> tuple[float, memoryview]:
        """Return the state: what `restore` takes."""
        return self.tolerance, raw(self.sums)

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the sums with this state; a ValueError if it cannot be one."""
        tolerance, saved = state
        values = column(saved, "<f8", "sums of a level", _SUMS)
        level, n, *others = values.tolist()
        require(0.0 < level < 1.0, "level")
        require(0.0 <= n <= MAX_COUNT and n == int(n), "labels of a level")
        require(all(0.0 <= one <= n * _ROUNDED for one in others), "sums of a level")
        sums = cls(level, number(tolerance, "tolerance", 1.0))
        sums.sums[:] = values
        return sums

    @classmethod
    def total(cls, many: Iterable[Self]) -> Self:
        """Add up the sums of different labels of one level and tolerance."""
        parts = [*many]
        whole = cls(parts[0].level, parts[0].tolerance)
        for one in parts:
            require((one.level, one.tolerance) == (whole.level, whole.tolerance), "levels differ")
            whole.sums[1:] += one.sums[1:]
        return whole
