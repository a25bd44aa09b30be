"""The reliability of all forecasts of one view, in bounded memory.

Governing rule: forecasts are rounded to multiples of 1/4096, and only counted; the diagram is made
of the counts when it is asked for.
"""

# ruff: noqa: SLF001 - of the same class

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers._arrays import packed, parsed, total
from abers._backend import core
from abers._saved import MOST
from abers._tally import PARTS
from abers.calibration import _checks
from abers.monitoring.corp import Decomposition, Diagram, probabilities

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from abers._arrays import Floats, Integers

__all__ = ["Reliability"]


class _Groups(NamedTuple):
    """What was counted of each number, ascending; a forecast is a number of 1/4096."""

    numbers: Integers
    counts: Integers
    positives: Integers


class Reliability:
    """The CORP reliability diagram of all forecasts so far.

    Notes
    -----
    **Guarantee.** That of `Diagram`, for the rounded forecasts: rounding moves a forecast by
    1/8192 at most. There are at most 4,097 of them, of 24 bytes each.

    Counts have no order and can be added: neither the order of the forecasts, nor how they were
    batched, nor over how many `Reliability` they were spread makes a difference.

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for probabilistic
    classifiers.

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
        return int(self._groups().counts.sum())

    def update_many(self, forecasts: ArrayLike, labels: ArrayLike) -> None:
        """Count forecasts whose labels have arrived.

        Parameters
        ----------
        forecasts
            Array of shape (n,): probabilities of label 1.
        labels
            Array of shape (n,): 0 or 1.

        Raises
        ------
        ScoreError, LabelError, ParameterError
            As `corp` does; nothing is counted then.
        """
        issued = probabilities(forecasts)
        self.add(issued, _checks.labels(labels, len(issued)).astype(np.float64))

    def add(self, forecasts: Floats, labels: Floats) -> None:
        """Do as `update_many` with what was checked."""
        self._tally.add(forecasts, labels)

    def diagram(self) -> Diagram:
        """Make the diagram of the forecasts so far.

        Returns
        -------
        Diagram
            Of the rounded forecasts.
        """
        numbers, counts, positives = self._groups()
        return Diagram(numbers / PARTS, counts, positives)

    def decomposition(self) -> Decomposition:
        """Split the mean Brier score of the rounded forecasts into its three parts.

        Returns
        -------
        Decomposition
            NaN in all parts before the first forecast.
        """
        return self.diagram().decomposition()

    def state(self) -> bytes:
        """Give what is remembered: what `restore` takes."""
        columns = (
            column.astype(np.min_scalar_type(np.max(column, initial=0)))
            for column in self._groups()
        )
        return b"".join(part for column in columns for part in packed(column))

    @classmethod
    def restore(cls, state: bytes) -> Reliability:
        """Make the one that gave this `state`.

        Raises
        ------
        ValueError
            If none did.
        """
        try:
            columns = [column for _, column in parsed(state, 0)]
        except struct.error as error:
            raise ValueError("columns") from error
        if any(column.dtype.kind != "u" or total(column) > MOST for column in columns):
            raise ValueError("counts")
        if len({*map(len, columns)}) > 1 or len(columns) != len(_Groups._fields):
            raise ValueError("columns")
        groups = _Groups(*(column.astype(np.int64) for column in columns))
        _require_consistent(groups)
        whole = cls()
        whole._tally.load(*groups)
        return whole

    @classmethod
    def total(cls, many: Iterable[Reliability]) -> Reliability:
        """Put different forecasts together.

        Parameters
        ----------
        many
            One for each part of the forecasts.

        Returns
        -------
        Reliability
            That of all forecasts.
        """
        whole = cls()
        for one in many:
            whole._tally.load(*one._groups())
        return whole

    def _groups(self) -> _Groups:
        groups = _Groups(*(np.empty(self._tally.size(), np.int64) for _ in _Groups._fields))
        self._tally.groups(*groups)
        return groups


def _require_consistent(groups: _Groups) -> None:
    numbers, counts, positives = groups
    ascending = (np.diff(numbers) > 0).all() and np.max(numbers, initial=0) <= PARTS
    if not (ascending and (counts > 0).all() and (positives <= counts).all()):
        raise ValueError("counts")
