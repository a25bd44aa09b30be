"""Groups of forecasts that are chosen before the label, and the sums that verdicts need of them."""

from __future__ import annotations

import math
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from abers import validation
from abers.arrays import raw, unmasked
from abers.backends import core
from abers.exceptions import ParameterError
from abers.monitoring.corp import probabilities
from abers.serialization import column, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike

    from abers._core import GroupSums
    from abers.arrays import Floats

__all__ = ["BINS", "GRID", "ForecastGroup", "ForecastGroups", "checked_rows", "tolerances"]

GRID = (1.05, 1.1, 1.15, 1.2, 1.25, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)
"""The smallest of these tolerances that holds is shown; more of them cost no evidence."""
BINS = 10
"""Number of bins of equal width; each but the last is open above."""


class ForecastGroup(NamedTuple):
    """Sums over labelled forecasts of a group.

    Attributes
    ----------
    labels
        Number of labels.
    observed
        Number of labels that are 1.
    expected
        Sum of the forecasts.
    squares
        Sum of the squared distances of label and forecast.
    least, most
        Sums of the lower and the upper ends of what the forecasts may stand for by the tolerance.
    """

    labels: float
    observed: float
    expected: float
    squares: float
    least: float
    most: float


class ForecastGroups:
    """Sums over all forecasts, their lower and their upper half, and ten bins.

    Parameters
    ----------
    tolerance
        Ratio of odds, at least 1. A forecast p may stand for each probability from l to u: their
        odds are those of p divided and multiplied by it.

    Raises
    ------
    ParameterError
        If the tolerance is not a finite number of at least 1.

    Notes
    -----
    The halves meet at the mean of the log odds of earlier forecasts, clipped to 15 and weighted
    with p (1 - p): about half of what can be learned from labels is in each. Equal forecasts are
    all in the upper half. The bins are [k/10, (k + 1)/10), and the last has the forecast 1.

    **Guarantee.** The group of a forecast depends on it and on the forecasts before it, and on no
    label. Sums are added row by row, so that batches make no difference, and need about 1 KB.

    Examples
    --------
    >>> groups = ForecastGroups(1.25)
    >>> groups.update([0.2, 0.8, 0.3, 0.7], [0, 1, 1, 1])
    >>> [(one.labels, one.observed) for one in groups.groups()[:3]]  # all, lower, upper
    [(4.0, 3.0), (1.0, 1.0), (3.0, 2.0)]
    >>> one = groups.groups()[0]
    >>> round(one.least, 3), one.expected, round(one.most, 3)
    (1.835, 2.0, 2.165)
    """

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self._core = core.GroupSums(tolerances(tolerance))

    @classmethod
    def of(cls, sums: GroupSums, tolerance: float) -> Self:
        """Return the groups of sums of the core."""
        groups = cls(tolerance)
        groups._core = sums
        return groups

    def update(self, forecasts: ArrayLike, labels: ArrayLike) -> None:
        """Add labelled forecasts, in the order of the observations.

        Parameters
        ----------
        forecasts
            Array of shape (n,): probabilities of label 1.
        labels
            Array of shape (n,): 0 or 1.

        Raises
        ------
        ScoreError, LabelError, ParameterError
            As `corp`; nothing is added then.
        """
        self.add(*checked_rows(forecasts, labels))

    def add(self, forecasts: Floats, labels: Floats) -> None:
        """Add forecasts and labels that were checked; see `update`."""
        self._core.add(forecasts, labels)

    @property
    def core(self) -> GroupSums:
        """The sums in the core."""
        sums: GroupSums = self._core
        return sums

    @property
    def labels(self) -> int:
        """Number of labels."""
        return int(self._core.labels)

    @property
    def cut(self) -> float:
        """Forecast at which the halves meet now."""
        return float(self._core.cut)

    def groups(self) -> list[ForecastGroup]:
        """Return the sums of all forecasts, the lower half, the upper half, and each bin."""
        return [ForecastGroup(*row) for row in self._core.groups()]

    def main_groups(self, tolerance: float) -> list[ForecastGroup]:
        """Return the sums of all forecasts, the lower and the upper half, at one of the `GRID`."""
        rows = self._core.main_groups(1 + GRID.index(tolerance))
        return [ForecastGroup(*row) for row in rows]

    def state(self) -> tuple[float, memoryview]:
        """Return the state: what `restore` takes."""
        return self.tolerance, raw(self.sums())

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the groups with this state; a ValueError if it cannot be one."""
        tolerance, sums = state
        groups = cls(number(tolerance, "tolerance", 1.0))
        values = column(sums, "<f8", "sums of groups", groups._core.size())
        groups._core.load(values)
        return groups

    def __reduce__(self) -> tuple[object, tuple[tuple[float, bytes]]]:
        """Pickle and copy the state."""
        tolerance, sums = self.state()
        return type(self).restore, ((tolerance, bytes(sums)),)

    @classmethod
    def total(cls, many: Iterable[Self]) -> Self:
        """Add up the sums of different forecasts of one tolerance; their cut is the mean."""
        parts = [*many]
        whole = cls(parts[0].tolerance)
        for one in parts:
            whole.core.add_sums(one.core)
        return whole

    def sums(self) -> Floats:
        """Return weight and cut, then the sums of both halves, then those of the bins."""
        sums = np.empty(self._core.size())
        self._core.sums(sums)
        return sums


@cache
def tolerances(tolerance: float) -> Floats:
    """Return a tolerance and the grid, or raise a ParameterError that names it."""
    if not isinstance(tolerance, Real) or not 1.0 <= tolerance < math.inf:
        msg = f"tolerance {tolerance!r} must be a finite ratio of odds of at least 1"
        raise ParameterError(msg)
    made = np.array([tolerance, *GRID])
    made.flags.writeable = False  # all verdicts of this tolerance read it
    return made


def checked_rows(forecasts: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """Return forecasts and labels as arrays of floats, or raise the error that names a value."""
    issued = np.ascontiguousarray(unmasked(forecasts), np.float64)
    if type(labels) is np.ndarray and labels.dtype == np.float64 and labels.shape == issued.shape:
        truth: Floats = np.ascontiguousarray(labels)
    else:
        truth = validation.labels(labels, len(issued)).astype(np.float64)
    if core.first_unscored(issued, truth) < len(issued):
        probabilities(issued)
        validation.labels(truth, len(issued))
    return issued, truth
