"""One probability from two: the Venn-Abers interval and its merges.

Governing rule: the pair (p0, p1) is the prediction; a single probability is a
view of it that is optimal for one loss, computed on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from abers.calibration._typing import Floats

__all__ = ["VennInterval", "brier_merge", "log_merge"]

_SMALLEST = 2.0**-53
_LARGEST = 1.0 - 2.0**-53


def _open(p: float) -> float:
    """Keep `p` inside the open unit interval, so that no log loss is infinite."""
    return min(max(p, _SMALLEST), _LARGEST)


def log_merge(p0: Floats, p1: Floats) -> Floats:
    """Merge arrays of intervals as `VennInterval.log` does one.

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
    return _clamped(p1 / (1.0 - p0 + p1))


def brier_merge(p0: Floats, p1: Floats) -> Floats:
    """Merge arrays of intervals as `VennInterval.brier` does one.

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
    >>> brier_merge(np.array([0.0, 0.5]), np.array([1.0, 1.0])).tolist()
    [0.5, 0.625]
    """
    mean = (p0 + p1) / 2.0
    return _clamped(mean + (p1 - p0) * (0.5 - mean))


def _clamped(p: Floats) -> Floats:
    # np.clip takes five times as long for the rows of one model in a batch of many.
    return np.minimum(np.maximum(p, _SMALLEST), _LARGEST)


class VennInterval(NamedTuple):
    """A Venn-Abers prediction: two probabilities of label 1.

    Attributes
    ----------
    p0
        Probability of label 1 if the observation is given label 0; in [0, 1).
    p1
        Probability of label 1 if the observation is given label 1; in (0, 1],
        never below `p0`.

    Notes
    -----
    Under exchangeability one of the two, the one that belongs to the true
    label, is perfectly calibrated (Vovk & Petej 2014, Theorem 1). The merges do
    not carry that guarantee; they are minimax for their loss.

    Examples
    --------
    >>> interval = VennInterval(0.5, 1.0)
    >>> interval.width
    0.5
    >>> round(interval.log, 4), round(interval.brier, 4)
    (0.6667, 0.625)
    """

    p0: float
    p1: float

    @property
    def log(self) -> float:
        """The merge that is minimax for log loss, p1 / (1 - p0 + p1), in (0, 1)."""
        return _open(self.p1 / (1.0 - self.p0 + self.p1))

    @property
    def brier(self) -> float:
        """The merge that is minimax for Brier loss: the mean, drawn towards 1/2, in (0, 1)."""
        mean = (self.p0 + self.p1) / 2.0
        return _open(mean + (self.p1 - self.p0) * (0.5 - mean))

    @property
    def width(self) -> float:
        """How much the calibrator does not know, p1 - p0."""
        return self.p1 - self.p0
