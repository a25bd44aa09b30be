"""Reliability diagram of all forecasts of one view, in bounded memory.

Forecasts are rounded to multiples of 1/4096 and counted. The diagram is made from the counts.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers import validation
from abers.arrays import packed, parsed, total
from abers.backends import core
from abers.monitoring.corp import Decomposition, Diagram, probabilities
from abers.serialization import MAX_COUNT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from abers.arrays import Floats, Integers

__all__ = ["PARTS", "ForecastCounts", "Reliability"]

PARTS = 4_096
"""Forecasts are counted as multiples of 1 / PARTS."""


class ForecastCounts(NamedTuple):
    """Counts of each distinct forecast, ascending, in units of 1/4096."""

    numbers: Integers
    counts: Integers
    positives: Integers


class Reliability:
    """CORP reliability diagram of all forecasts so far.

    Notes
    -----
    **Guarantee.** That of `Diagram`, for the rounded forecasts: rounding moves a forecast by
    1/8192 at most. There are at most 4,097 of them, of 24 bytes each.

    Counts have no order and can be added: the order of the forecasts, their batches and the number
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

    def __init__(self) -> None:
        self._tally = core.Tally()

    @property
    def count(self) -> int:
        """Number of forecasts."""
        return int(self.groups().counts.sum())

    def update_many(self, forecasts: ArrayLike, labels: ArrayLike) -> None:
        """Count forecasts whose labels came.

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
        """Return the diagram of the rounded forecasts."""
        numbers, counts, positives = self.groups()
        return Diagram(numbers / PARTS, counts, positives)

    def decomposition(self) -> Decomposition:
        """Return the parts of the mean Brier score of the rounded forecasts; see `Diagram`."""
        return self.diagram().decomposition()

    def state(self) -> bytes:
        """Return the state: what `restore` takes."""
        columns = (
            column.astype(np.min_scalar_type(np.max(column, initial=0))) for column in self.groups()
        )
        return b"".join(part for column in columns for part in packed(column))

    @classmethod
    def restore(cls, state: bytes) -> Reliability:
        """Return the `Reliability` with this state; a ValueError if it cannot be one."""
        try:
            columns = [column for _, column in parsed(state, 0)]
        except struct.error as error:
            raise ValueError("columns") from error
        if any(column.dtype.kind != "u" or total(column) > MAX_COUNT for column in columns):
            raise ValueError("counts")
        if len(columns) != len(ForecastCounts._fields) or len({*map(len, columns)}) > 1:
            raise ValueError("columns")
        numbers, counts, positives = (column.astype(np.int64) for column in columns)
        ascending = (np.diff(numbers) > 0).all() and np.max(numbers, initial=0) <= PARTS
        if not (ascending and (counts > 0).all() and (positives <= counts).all()):
            raise ValueError("counts")
        whole = cls()
        whole._tally.load(numbers, counts, positives)
        return whole

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        """Pickle and copy the state."""
        return type(self).restore, (self.state(),)

    @classmethod
    def total(cls, many: Iterable[Reliability]) -> Reliability:
        """Add up different forecasts."""
        whole = cls()
        for one in many:
            whole._tally.load(*one.groups())
        return whole

    def groups(self) -> ForecastCounts:
        """Return the counts of each distinct forecast."""
        groups = ForecastCounts(*np.empty((3, self._tally.size()), np.int64))
        self._tally.groups(*groups)
        return groups
