"""Size of a change: labels observed and expected since the change probably began.

A detector says that something changed, and neither since when nor by how much. The moment is
estimated as Page's CUSUM does: the last one at which the product of the factors since an earlier
one had won nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.backends import core
from abers.saveable import CopiedWhole
from abers.serialization import count, number, numbers, whole

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from abers.arrays import Floats

__all__ = ["Shift", "ShiftEstimate"]

_LARGEST_TIME = (1 << 63) - 1
_SUMS = 3  # of labels, of forecasts, and of the variances of labels that are as forecast
_CLEAR = 2.0  # standard deviations from which a difference has a direction


class Shift(NamedTuple):
    """Labels observed and expected from the estimated beginning of a change to its alarm.

    Attributes
    ----------
    since
        Event time of the first observation.
    labels
        Number of labels.
    outcome
        What is counted, such as "labels 1".
    observed, expected
        How many were observed, and the sum of their forecasts.
    deviation
        Standard deviation of the number observed if all forecasts were right.
    """

    since: int
    labels: int
    outcome: str
    observed: float
    expected: float
    deviation: float

    @property
    def direction(self) -> int:
        """1 if forecasts are too high, -1 if too low, 0 if they are about right on average.

        Examples
        --------
        >>> [Shift(0, 100, "labels 1", n, 50.0, 5.0).direction for n in (30.0, 55.0, 70.0)]
        [1, 0, -1]
        """
        gap = self.expected - self.observed
        if abs(gap) < _CLEAR * self.deviation:
            return 0
        return 1 if gap > 0.0 else -1


class ShiftEstimate(CopiedWhole):
    """Sums since the estimated beginning of a change.

    Parameters
    ----------
    outcomes
        What the labels of each column count, such as "labels 1".

    Notes
    -----
    M is the product of the factors. The change is estimated to begin behind the last observation
    at which M was at most 1; M begins again at 1 there, and behind each alarm. The bets must learn
    a change before they win, so the estimate is rather late than early. Of several columns,
    that of the largest difference in standard deviations is reported.

    Examples
    --------
    >>> estimate = ShiftEstimate(["labels 1"])
    >>> p, y = np.full((4, 1), 0.75), np.array([[1.0], [0.0], [0.0], [0.0]])
    >>> estimate.update([0.9, 1.1, 1.1, 1.1], p, y, [10, 20, 30, 40], [3])
    [Shift(since=20, labels=3, outcome='labels 1', observed=0.0, expected=2.25, deviation=0.75)]
    """

    def __init__(self, outcomes: Sequence[str]) -> None:
        self._outcomes = (*outcomes,)
        self._wealth = 1.0
        self._since = self._labels = 0
        self._sums = np.zeros((_SUMS, len(self._outcomes)))

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self._outcomes)

    def update(
        self,
        factors: Sequence[float],
        forecasts: Floats,
        labels: Floats,
        times: Sequence[int],
        alarms: Collection[int],
    ) -> list[Shift]:
        """Take rows in the order of the observations.

        Parameters
        ----------
        factors
            Of the detector.
        forecasts, labels
            Arrays of shape (n, number of outcomes).
        times
            Event times.
        alarms
            Rows at which the detector raised an alarm.

        Returns
        -------
        list of Shift
            The shift at each alarm.
        """
        rows = np.stack((labels, forecasts, forecasts * (1.0 - forecasts)))
        found, begin, wealth = [], 0, self._wealth
        for row, factor in enumerate(factors):
            if wealth <= 1.0:
                wealth, begin = 1.0, row
                self._clear(times[row])
            wealth *= factor
            if row in alarms:
                self._add(rows[:, begin : row + 1])
                found.append(self._shift())
                wealth, begin = 1.0, row + 1
                self._clear(times[row])
        self._add(rows[:, begin:])
        self._wealth = wealth
        return found

    def _clear(self, time: int) -> None:
        self._since, self._labels = time, 0
        self._sums[:] = 0.0

    def _add(self, rows: Floats) -> None:
        self._labels += rows.shape[1]
        for sums, columns in zip(self._sums, rows, strict=True):
            for at, column in enumerate(columns.T):
                sums[at] = core.added(float(sums[at]), np.ascontiguousarray(column))

    def _shift(self) -> Shift:
        observed, expected, variances = self._sums
        deviations = np.sqrt(variances)
        # A forecast that is certain has no deviation; the largest finite gap then counts.
        gaps = np.abs(observed - expected) / np.maximum(deviations, 1e-9)
        at = int(np.argmax(gaps))
        sizes = (float(one[at]) for one in (observed, expected, deviations))
        return Shift(self._since, self._labels, self._outcomes[at], *sizes)

    def state(self) -> tuple[Any, ...]:
        """Return the state: what `load` takes."""
        return (self._wealth, self._since, self._labels, self._sums.ravel().tolist())

    def load(self, state: Sequence[Any]) -> None:
        """Restore a state; a ValueError if it cannot be one."""
        wealth, since, labels, sums = state
        self._wealth = number(wealth, "wealth", 0.0, math.inf)
        self._since = whole(since, "times", -_LARGEST_TIME, _LARGEST_TIME)
        self._labels = count(labels, "labels")
        most = self._labels * (1.0 + 1e-9)  # sums are rounded
        self._sums[:] = numbers(sums, "sums", self._sums.size, 0.0, most).reshape(self._sums.shape)
