"""Predictions of Venn-Abers calibrators: pairs (p0, p1), or K of them, and their merges.

For log loss they are merged by geometric means, taken as means of logarithms, so that no number of
folds and no probability under- or overflows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers import validation
from abers.backends import core
from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats
    from abers.calibration._classes import Label

__all__ = [
    "CrossInterval",
    "CrossIntervals",
    "MultiInterval",
    "MultiIntervals",
    "ProtectedInterval",
    "ProtectedIntervals",
    "VennInterval",
    "VennIntervals",
    "brier_merge",
    "clamped",
    "clamped_number",
    "cross_brier_merge",
    "cross_ends",
    "cross_log_merge",
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


def cross_log_merge(p0: ArrayLike, p1: ArrayLike) -> Floats:
    """Merge the intervals of K folds as `CrossInterval.merged` does.

    Parameters
    ----------
    p0, p1
        Arrays of shape (..., K).

    Returns
    -------
    numpy.ndarray
        The probabilities, of shape (...).

    Examples
    --------
    >>> cross_log_merge([[0.1, 0.9]], [[0.1, 0.9]]).round(12).tolist()
    [0.5]
    """
    for_0, for_1 = _geometric_means(p0, p1)
    return clamped(for_1 / (for_0 + for_1))  # p1 > 0, and so the sum


def cross_brier_merge(p0: ArrayLike, p1: ArrayLike) -> Floats:
    """Merge intervals as `CrossInterval.merged_brier` does, shaped as in `cross_log_merge`.

    Examples
    --------
    >>> cross_brier_merge([[0.0, 0.5]], [[1.0, 1.0]]).tolist()
    [0.5625]
    """
    merges: Any = brier_merge(_by_fold(p0, "p0"), _by_fold(p1, "p1"))
    return clamped(sum(merges) / len(merges))


def cross_ends(p0: ArrayLike, p1: ArrayLike) -> tuple[Floats, Floats]:
    """Return the ends `CrossInterval.low` and `.high` of arrays as in `cross_log_merge`.

    Examples
    --------
    >>> low, high = cross_ends([[0.1, 0.9]], [[0.1, 0.9]])  # the folds disagree
    >>> low.round(12).tolist(), high.round(12).tolist()
    ([0.3], [0.7])
    """
    for_0, for_1 = _geometric_means(p0, p1)
    return np.minimum(1.0 - for_0, for_1), np.maximum(1.0 - for_0, for_1)


def _by_fold(p: ArrayLike, name: str) -> Floats:
    """Return an array with the folds first, each contiguous."""
    array = validation.numbers(p, name)
    if not array.ndim or not array.shape[-1]:
        msg = f"{name} has shape {array.shape}; give an array with a column for each fold"
        raise ParameterError(msg)
    return array if array.ndim == 1 else np.ascontiguousarray(np.moveaxis(array, -1, 0))


def _geometric_means(p0: ArrayLike, p1: ArrayLike) -> tuple[Floats, Floats]:
    """Return the geometric means over the folds of 1 - p0 and of p1."""
    return _geometric_mean(1.0 - _by_fold(p0, "p0")), _geometric_mean(_by_fold(p1, "p1"))


def _geometric_mean(by_fold: Floats) -> Floats:
    """Return the geometric mean over the folds, equal to the bit on every machine."""
    means = np.empty(by_fold.shape[1:])
    core.geometric_means(by_fold.reshape(len(by_fold), -1), means.reshape(-1))
    return means


class CrossInterval(NamedTuple):
    """A cross Venn-Abers prediction: a pair of probabilities of label 1 from each of K folds.

    Attributes
    ----------
    p0, p1
        For each fold, the pair of `VennInterval`.

    Notes
    -----
    **Guarantee.** None: each pair carries that of `VennInterval` by itself, the K together do
    not. The merges are minimax for their loss (Vovk, Petej & Fedorova 2015, section 4).

    When the folds disagree, the two geometric means cross. The ends are then shown in order; the
    merge, which is made of the means as they are, lies between them either way.

    Examples
    --------
    >>> interval = CrossInterval((0.1, 0.9), (0.1, 0.9))
    >>> round(interval.low, 4), round(interval.merged, 4), round(interval.high, 4)
    (0.3, 0.5, 0.7)
    >>> interval = CrossInterval((0.0, 0.5), (1.0, 1.0))
    >>> interval.merged_brier
    0.5625
    """

    p0: tuple[float, ...]
    p1: tuple[float, ...]

    @property
    def low(self) -> float:
        """The smaller of 1 - GM(1 - p0) and GM(p1), GM the geometric mean over the folds."""
        return float(cross_ends(self.p0, self.p1)[0])

    @property
    def high(self) -> float:
        """The larger of 1 - GM(1 - p0) and GM(p1)."""
        return float(cross_ends(self.p0, self.p1)[1])

    @property
    def merged(self) -> float:
        """The merge that is minimax for log loss, GM(p1) / (GM(1 - p0) + GM(p1)), in (0, 1)."""
        return float(cross_log_merge(self.p0, self.p1))

    @property
    def merged_brier(self) -> float:
        """The merge that is minimax for Brier loss: the mean over the folds, in (0, 1)."""
        return float(cross_brier_merge(self.p0, self.p1))

    @property
    def width(self) -> float:
        """Uncertainty of the folds, their disagreement included, high - low."""
        low, high = cross_ends(self.p0, self.p1)
        return float(high - low)


class CrossIntervals(NamedTuple):
    """Cross Venn-Abers predictions of many observations, with the names of `CrossInterval`.

    Attributes
    ----------
    p0, p1
        Arrays of shape (n, K), a column a fold.

    Examples
    --------
    >>> p = np.array([[0.1, 0.9]])
    >>> CrossIntervals(p, p).merged.round(12).tolist()
    [0.5]
    """

    p0: Floats
    p1: Floats

    @property
    def low(self) -> Floats:
        """Lower ends, of shape (n,)."""
        return cross_ends(self.p0, self.p1)[0]

    @property
    def high(self) -> Floats:
        """Upper ends, of shape (n,)."""
        return cross_ends(self.p0, self.p1)[1]

    @property
    def merged(self) -> Floats:
        """Merges that are minimax for log loss, of shape (n,)."""
        return cross_log_merge(self.p0, self.p1)

    @property
    def merged_brier(self) -> Floats:
        """Merges that are minimax for Brier loss, of shape (n,)."""
        return cross_brier_merge(self.p0, self.p1)

    @property
    def width(self) -> Floats:
        """Widths of the intervals, high - low."""
        low, high = cross_ends(self.p0, self.p1)
        return high - low
