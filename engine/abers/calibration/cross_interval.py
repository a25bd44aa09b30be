"""One probability from K intervals: the cross Venn-Abers prediction and its merges.

Governing rule: the K pairs are the prediction. For log loss they are merged by geometric means,
taken as means of logarithms, so that no number of folds and no probability under- or overflows;
a mean is never sorted before it is merged, only where it is shown as an end of the interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers._arrays import unmasked
from abers.calibration.interval import brier_merge

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.calibration._typing import Floats

__all__ = ["CrossInterval", "cross_brier_merge", "cross_ends", "cross_log_merge"]

_SMALLEST = 2.0**-53
_LARGEST = 1.0 - 2.0**-53


def cross_log_merge(p0: ArrayLike, p1: ArrayLike) -> Floats:
    """Merge the intervals of K folds as `CrossInterval.log` does.

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
    return np.clip(for_1 / (for_0 + for_1), _SMALLEST, _LARGEST)  # p1 > 0, and so the sum


def cross_brier_merge(p0: ArrayLike, p1: ArrayLike) -> Floats:
    """Merge the intervals of K folds as `CrossInterval.brier` does.

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
    >>> cross_brier_merge([[0.0, 0.5]], [[1.0, 1.0]]).tolist()
    [0.5625]
    """
    merges = brier_merge(_by_fold(p0), _by_fold(p1))
    mean: Floats = np.clip(sum(merges) / len(merges), _SMALLEST, _LARGEST)
    return mean


def cross_ends(p0: ArrayLike, p1: ArrayLike) -> tuple[Floats, Floats]:
    """Find the ends of the intervals of K folds, as `CrossInterval.low` and `CrossInterval.high`.

    Parameters
    ----------
    p0, p1
        Arrays of shape (..., K).

    Returns
    -------
    low, high
        Two arrays of shape (...).

    Examples
    --------
    >>> low, high = cross_ends([[0.1, 0.9]], [[0.1, 0.9]])  # the folds disagree
    >>> low.round(12).tolist(), high.round(12).tolist()
    ([0.3], [0.7])
    """
    for_0, for_1 = _geometric_means(p0, p1)
    return np.minimum(1.0 - for_0, for_1), np.maximum(1.0 - for_0, for_1)


def _by_fold(p: ArrayLike) -> Floats:
    """Put the folds first, each contiguous."""
    array = np.asarray(unmasked(p), dtype=np.float64)
    return array if array.ndim == 1 else np.ascontiguousarray(np.moveaxis(array, -1, 0))


def _geometric_means(p0: ArrayLike, p1: ArrayLike) -> tuple[Floats, Floats]:
    """Means over the folds of 1 - p0 and of p1."""
    with np.errstate(divide="ignore"):  # the mean with a 0 is 0
        return _geometric_mean(1.0 - _by_fold(p0)), _geometric_mean(_by_fold(p1))


def _geometric_mean(by_fold: Floats) -> Floats:
    # Added fold by fold: then a prediction by itself and one of many have the same sum.
    mean: Floats = np.exp(sum(np.log(by_fold)) / len(by_fold))
    return mean


class CrossInterval(NamedTuple):
    """A cross Venn-Abers prediction: a pair of probabilities of label 1 from each of K folds.

    Attributes
    ----------
    p0
        Of each fold, the probability of label 1 if the observation is given label 0.
    p1
        Of each fold, the probability of label 1 if the observation is given label 1.

    Notes
    -----
    **Guarantee.** None: each pair carries that of `VennInterval` by itself, the K together do
    not. The merges are minimax for their loss (Vovk, Petej & Fedorova 2015, section 4).

    When the folds disagree, the two geometric means cross. The ends are then shown in order; the
    merge, which is made of the means as they are, lies between them either way.

    Examples
    --------
    >>> interval = CrossInterval((0.1, 0.9), (0.1, 0.9))
    >>> round(interval.low, 4), round(interval.log, 4), round(interval.high, 4)
    (0.3, 0.5, 0.7)
    >>> interval = CrossInterval((0.0, 0.5), (1.0, 1.0))
    >>> interval.brier
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
    def log(self) -> float:
        """The merge that is minimax for log loss, GM(p1) / (GM(1 - p0) + GM(p1)), in (0, 1)."""
        return float(cross_log_merge(self.p0, self.p1))

    @property
    def brier(self) -> float:
        """The merge that is minimax for Brier loss: the mean of `VennInterval.brier`, in (0, 1)."""
        return float(cross_brier_merge(self.p0, self.p1))

    @property
    def width(self) -> float:
        """How much the folds do not know or disagree about, high - low."""
        low, high = cross_ends(self.p0, self.p1)
        return float(high - low)
