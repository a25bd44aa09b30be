"""Intervals for labels: one, or arrays of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from abers.arrays import Floats

__all__ = ["PredictionInterval", "PredictionIntervals"]

T = TypeVar("T", float, "Floats")


class _LabelEnds(NamedTuple, Generic[T]):
    low: T
    high: T


class PredictionInterval(_LabelEnds[float]):
    """An interval for a label, closed at both ends.

    Attributes
    ----------
    low, high
        The ends, in the unit of the label, which may be infinite. If `low` is above `high`, no
        label is in it.

    Examples
    --------
    >>> interval = PredictionInterval(1.0, 2.0)
    >>> interval.covers(2.0), interval.is_empty, PredictionInterval(2.0, 1.0).is_empty
    (True, False, True)
    """

    __slots__ = ()

    @property
    def is_empty(self) -> bool:
        """Whether no label is in it."""
        return self.low > self.high

    def covers(self, label: float) -> bool:
        """Return whether a label is in it."""
        return self.low <= label <= self.high


class PredictionIntervals(_LabelEnds["Floats"]):
    """Intervals for many labels, as `PredictionInterval` with arrays of shape (n,)."""

    __slots__ = ()

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Whether no label is in it, for each."""
        return self.low > self.high

    def covers(self, labels: Floats) -> NDArray[np.bool_]:
        """Return whether each label is in its interval."""
        return (self.low <= labels) & (labels <= self.high)
