"""Reliability diagram of all forecasts of one view, in bounded memory.

Forecasts are counted in the cells of a fixed grid, and each cell stands for their mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers import validation
from abers.backends import core
from abers.monitoring.corp import Diagram, probabilities

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from abers._core import Tally
    from abers.arrays import Floats, Integers
    from abers.monitoring.corp import Decomposition

__all__ = ["ForecastCells", "Reliability"]


class ForecastCells(NamedTuple):
    """The mean forecast of each cell that has any, ascending, and the counts there."""

    forecasts: Floats
    counts: Integers
    positives: Integers


class Reliability:
    """CORP reliability diagram of all forecasts so far.

    Parameters
    ----------
    tally
        Counts in the core that others add to as well; none unless given.

    Notes
    -----
    Cells have a width of 1/8 in log odds, from -8 to 8, and also end at the multiples of 1/20; one
    more lies beyond each end.

    **Guarantee.** That of `Diagram`, for forecasts that are replaced by the mean of their cell. A
    forecast that is alone in its cell, however often, stays exact if it is at least 2**-12;
    a smaller forecast is rounded to multiples of 2**-64. There are 148 cells, of 32 bytes each.

    Sums are exact, so they have no order: the order of the forecasts, their batches and the number
    of `Reliability` over which they were spread make no difference.

    Examples
    --------
    >>> reliability = Reliability()
    >>> reliability.update_many([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 0])
    >>> reliability.diagram().probability.tolist()
    [0.0, 0.5]
    >>> reliability.decomposition().miscalibration
    0.0625
    """

    def __init__(self, tally: Tally | None = None) -> None:
        self._tally = core.Tally() if tally is None else tally

    @property
    def count(self) -> int:
        """Number of forecasts."""
        return int(self.cells().counts.sum())

    def update_many(self, forecasts: ArrayLike, labels: ArrayLike) -> None:
        """Count labelled forecasts.

        Parameters
        ----------
        forecasts
            Array of shape (n,): probabilities of label 1.
        labels
            Array of shape (n,): 0 or 1.

        Raises
        ------
        ScoreError, LabelError, ParameterError
            As `corp`; nothing is counted then.
        """
        issued = probabilities(forecasts)
        self.add(issued, validation.labels(labels, len(issued)).astype(np.float64))

    def add(self, forecasts: Floats, labels: Floats) -> None:
        """Count forecasts and labels that were checked; see `update_many`."""
        self._tally.add(forecasts, labels)

    def diagram(self) -> Diagram:
        """Return the diagram of the mean forecasts of the cells."""
        return Diagram(*self.cells())

    def decomposition(self) -> Decomposition:
        """Return the parts of the mean Brier score of these forecasts; see `Diagram`."""
        return self.diagram().decomposition()

    def state(self) -> bytes:
        """Return the state: what `restore` takes."""
        return self._tally.save()

    @classmethod
    def restore(cls, state: bytes) -> Reliability:
        """Return the `Reliability` with this state; a ValueError if it cannot be one."""
        return cls(core.Tally.load(state))

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        """Pickle and copy the state."""
        return type(self).restore, (self.state(),)

    @classmethod
    def total(cls, many: Iterable[Reliability]) -> Reliability:
        """Add up different forecasts."""
        whole = cls()
        for one in many:
            whole.include(one)
        return whole

    def include(self, other: Reliability) -> None:
        """Add the forecasts of another."""
        self._tally.include(other._tally)

    def cells(self) -> ForecastCells:
        """Return the mean forecast and the counts of each cell."""
        size = self._tally.size()
        cells = ForecastCells(np.empty(size), *np.empty((2, size), np.int64))
        self._tally.cells(*cells)
        return cells
