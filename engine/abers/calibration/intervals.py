"""Predictions of Venn-Abers calibrators: pairs (p0, p1), and their minimax merges."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from abers.arrays import Floats
    from abers.calibration._classes import Label

__all__ = [
    "MultiInterval",
    "MultiIntervals",
    "ProtectedInterval",
    "ProtectedIntervals",
    "VennInterval",
    "VennIntervals",
    "brier_merge",
    "clamped",
    "clamped_number",
    "log_merge",
    "log_merged",
]

_MIN_PROBABILITY = 2.0**-53
_MAX_PROBABILITY = 1.0 - 2.0**-53


def log_merge(p0: Floats, p1: Floats) -> Floats:
    """Merge arrays of intervals as `VennInterval.merged` does one.

    Parameters
    ----------
    p0, p1
        Arrays of one shape.

    Returns
    -------
    numpy.ndarray
        The probabilities, of the same shape.

    Examples
    --------
    >>> log_merge(np.array([0.0, 0.5]), np.array([1.0, 1.0])).tolist()
    [0.5, 0.6666666666666666]
    """
    return clamped(p1 / (1.0 - p0 + p1))


def log_merged(p0: float, p1: float) -> float:
    """Merge one interval as `log_merge` does many.

    Examples
    --------
    >>> log_merged(0.5, 1.0)
    0.6666666666666666
    """
    return min(max(p1 / (1.0 - p0 + p1), _MIN_PROBABILITY), _MAX_PROBABILITY)


def brier_merge(p0: Floats, p1: Floats) -> Floats:
    """Merge arrays of intervals as `VennInterval.merged_brier` does one, shaped as in `log_merge`.

    Examples
    --------
    >>> brier_merge(np.array([0.0, 0.5]), np.array([1.0, 1.0])).tolist()
    [0.5, 0.625]
    """
    mean = (p0 + p1) / 2.0
    return clamped(mean + (p1 - p0) * (0.5 - mean))


def clamped(p: Floats) -> Floats:
    """Keep probabilities inside the open unit interval, so that no log loss is infinite."""
    # np.clip takes five times as long for the rows of one model in a batch of many.
    return np.minimum(np.maximum(p, _MIN_PROBABILITY), _MAX_PROBABILITY)


def clamped_number(p: float) -> float:
    """Clamp a probability as `clamped` does."""
    return min(max(p, _MIN_PROBABILITY), _MAX_PROBABILITY)


class VennInterval(NamedTuple):
    """A Venn-Abers prediction: two probabilities of label 1.

    Attributes
    ----------
    p0
        Probability of label 1 if the observation is given label 0; in [0, 1).
    p1
        Probability of label 1 if the observation is given label 1; in (0, 1], never below `p0`.

    Notes
    -----
    **Guarantee.** Under exchangeability the one of the two that belongs to the true label is
    perfectly calibrated (Vovk & Petej 2014, Theorem 1). The merges do not carry that guarantee;
    they are minimax for their loss.

    Examples
    --------
    >>> interval = VennInterval(0.5, 1.0)
    >>> interval.width
    0.5
    >>> round(interval.merged, 4), round(interval.merged_brier, 4)
    (0.6667, 0.625)
    """

    p0: float
    p1: float

    @property
    def merged(self) -> float:
        """The merge that is minimax for log loss, p1 / (1 - p0 + p1), in (0, 1)."""
        return log_merged(self.p0, self.p1)

    @property
    def merged_brier(self) -> float:
        """The merge that is minimax for Brier loss: the mean, drawn towards 1/2, in (0, 1)."""
        mean = (self.p0 + self.p1) / 2.0
        return clamped_number(mean + (self.p1 - self.p0) * (0.5 - mean))

    @property
    def width(self) -> float:
        """Uncertainty of the calibrator, p1 - p0."""
        return self.p1 - self.p0


class VennIntervals(NamedTuple):
    """Venn-Abers predictions of many observations, with the names of `VennInterval`.

    Attributes
    ----------
    p0, p1
        Arrays of shape (n,).

    Examples
    --------
    >>> intervals = VennIntervals(np.array([0.0, 0.5]), np.array([1.0, 1.0]))
    >>> intervals.merged.tolist(), intervals.merged_brier.tolist()
    ([0.5, 0.6666666666666666], [0.5, 0.625])
    """

    p0: Floats
    p1: Floats

    @property
    def merged(self) -> Floats:
        """Merges that are minimax for log loss, each in (0, 1)."""
        return log_merge(self.p0, self.p1)

    @property
    def merged_brier(self) -> Floats:
        """Merges that are minimax for Brier loss, each in (0, 1)."""
        return brier_merge(self.p0, self.p1)

    @property
    def width(self) -> Floats:
        """Widths of the intervals, p1 - p0."""
        return self.p1 - self.p0


class ProtectedInterval(NamedTuple):
    """A protected prediction: a probability, and a Venn-Abers interval.

    Attributes
    ----------
    p0, p1
        As of `VennInterval`; of a cross calibrator, as `low` and `high` of `CrossInterval`.
    probability
        Protected probability of label 1. It may lie outside [p0, p1], often where the stream has
        moved.
    """

    p0: float
    p1: float
    probability: float

    @property
    def width(self) -> float:
        """How much the calibrator does not know, p1 - p0."""
        return self.p1 - self.p0


class ProtectedIntervals(NamedTuple):
    """Protected predictions of many observations, with the names of `ProtectedInterval`.

    Attributes
    ----------
    p0, p1, probability
        Arrays of shape (n,).
    """

    p0: Floats
    p1: Floats
    probability: Floats

    @property
    def width(self) -> Floats:
        """Widths of the intervals, p1 - p0."""
        return self.p1 - self.p0


class MultiInterval(NamedTuple):
    """Calibrated probabilities of several classes, each with an interval.

    Attributes
    ----------
    p
        Probability of each class; they sum to one.
    low, high
        Ends of the interval of each class, before the probabilities were divided by their sum, so
        `p` may lie outside.

    Examples
    --------
    >>> MultiInterval({"a": 2 / 3, "b": 1 / 3}, {"a": 0.5, "b": 0.0}, {"a": 1.0, "b": 0.5})
    MultiInterval('a': 0.6667 [0.5, 1], 'b': 0.3333 [0, 0.5])
    """

    p: dict[Label, float]
    low: dict[Label, float]
    high: dict[Label, float]

    def __repr__(self) -> str:
        """List the classes: probability and interval, in four digits."""
        shown = (
            f"{c!r}: {p:.4g} [{self.low[c]:.4g}, {self.high[c]:.4g}]" for c, p in self.p.items()
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class MultiIntervals(NamedTuple):
    """Probabilities of several classes for many observations, with the names of `MultiInterval`.

    Attributes
    ----------
    p, low, high
        Arrays of shape (n, number of classes), columns in the order of the classes.
    """

    p: Floats
    low: Floats
    high: Floats
