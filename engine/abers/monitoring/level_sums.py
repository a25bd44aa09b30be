"""Sums that a verdict needs of forecasts that are all one level, such as that of a quantile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.backends import core
from abers.monitoring.forecast_groups import GRID, ForecastGroup, tolerances

if TYPE_CHECKING:
    from abers._core import LevelSums as CoreLevelSums
    from abers.arrays import Floats

__all__ = ["LevelSums"]


class LevelSums:
    """Sums over labels that should be counted as often as a level says.

    Parameters
    ----------
    level
        Share of the labels that should be counted, between 0 and 1.
    tolerance
        Ratio of odds, at least 1; see `ForecastGroups`.
    sums
        Those of the core; none unless given.

    Notes
    -----
    Of each label there are two numbers from 0 to 1: how far it is counted at least, and at most.
    They differ if a label equals a quantile: P(Y < q) may be below the level of a right quantile
    and P(Y <= q) above it. Too many labels are counted only if even the least are too many, too few
    only if even the most are too few.

    Examples
    --------
    >>> import numpy as np
    >>> sums = LevelSums(0.25, 1.0)
    >>> sums.add(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0]))  # the second is a tie
    >>> one = sums.groups()[0]
    >>> one.labels, one.observed, one.least, one.most
    (3.0, 2.0, 0.75, 1.75)
    """

    def __init__(self, level: float, tolerance: float, sums: CoreLevelSums | None = None) -> None:
        self.level, self.tolerance = level, tolerance
        self._core = core.LevelSums(level, tolerances(tolerance)) if sums is None else sums

    def add(self, least: Floats, most: Floats) -> None:
        """Add labels, in the order of the observations."""
        self._core.add(least, most)

    @property
    def labels(self) -> int:
        """Number of labels."""
        return int(self._core.labels)

    def groups(self) -> list[ForecastGroup]:
        """Return the sums of all labels, of an empty lower half, and of the upper half."""
        return [ForecastGroup(*row) for row in self._core.groups()]

    def main_groups(self, tolerance: float) -> list[ForecastGroup]:
        """Return the same at one of the `GRID`."""
        rows = self._core.main_groups(1 + GRID.index(tolerance))
        return [ForecastGroup(*row) for row in rows]
