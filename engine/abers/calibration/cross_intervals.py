"""Predictions of cross Venn-Abers calibrators: K intervals, and their merges.

For log loss they are merged by geometric means, taken as means of logarithms, so that no number of
folds and no probability under- or overflows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.arrays import unmasked
from abers.backends import core
from abers.calibration.intervals import brier_merge, clamped

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats

__all__ = ["CrossInterval", "CrossIntervals", "cross_brier_merge", "cross_ends", "cross_log_merge"]


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
    merges: Any = brier_merge(_by_fold(p0), _by_fold(p1))
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


def _by_fold(p: ArrayLike) -> Floats:
    """Return an array with the folds first, each contiguous."""
    array = np.asarray(unmasked(p), dtype=np.float64)
    return array if array.ndim == 1 else np.ascontiguousarray(np.moveaxis(array, -1, 0))


def _geometric_means(p0: ArrayLike, p1: ArrayLike) -> tuple[Floats, Floats]:
    """Return the geometric means over the folds of 1 - p0 and of p1."""
    return _geometric_mean(1.0 - _by_fold(p0)), _geometric_mean(_by_fold(p1))


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
