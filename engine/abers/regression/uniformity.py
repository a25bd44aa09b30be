"""Whether PIT values are uniform, as those of calibrated forecasts are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.exceptions import MissingExtraError, ParameterError
from abers.validation import count, numbers, shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats, Integers

__all__ = ["Uniformity", "pit_histogram", "pit_uniformity"]


class Uniformity(NamedTuple):
    """Tests of whether PIT values are uniform: small p-values say that they are not.

    Attributes
    ----------
    chi_square
        p-value of the chi-square test on the histogram.
    kolmogorov_smirnov
        p-value of the Kolmogorov-Smirnov test.
    """

    chi_square: float
    kolmogorov_smirnov: float


def pit_histogram(pit: ArrayLike, bins: int = 10) -> Integers:
    """Count PIT values in bins of equal width, closed on the left, the last on both sides.

    Parameters
    ----------
    pit
        Array of shape (n,), in [0, 1].
    bins
        How many.

    Returns
    -------
    numpy.ndarray
        The counts, of shape (bins,).

    Raises
    ------
    ParameterError
        If a value is not in [0, 1].

    Examples
    --------
    >>> pit_histogram([0.0, 0.1, 0.5, 1.0], bins=2).tolist()
    [2, 2]
    """
    edges = np.arange(1, count(bins, "bins", 1)) / bins
    found = np.searchsorted(edges, _pit(pit), side="right")
    return np.bincount(found, minlength=bins).astype(np.int64)


def pit_uniformity(pit: ArrayLike, bins: int = 10) -> Uniformity:
    """Test whether PIT values are uniform, as they are for calibrated forecasts.

    Parameters
    ----------
    pit
        Array of shape (n,), in [0, 1], at least one.
    bins
        Bins of the chi-square test, which wants five expected values or more in each.

    Returns
    -------
    Uniformity
        The p-values of two tests, both for independent values.

    Raises
    ------
    ParameterError
        If a value is not in [0, 1], or there are no values.
    MissingExtraError
        If scipy is not installed.

    Examples
    --------
    >>> pit_uniformity([0.5] * 100).chi_square < 0.001
    True
    """
    try:
        from scipy import stats  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        msg = "tests of uniformity need scipy; run: pip install 'abers[regression]'"
        raise MissingExtraError(msg) from error
    values = _pit(pit)
    if not values.size:
        msg = "pit is empty; nothing can be tested without a value"
        raise ParameterError(msg)
    squares = stats.chisquare(pit_histogram(values, bins)).pvalue
    return Uniformity(float(squares), float(stats.kstest(values, "uniform").pvalue))


def _pit(values: ArrayLike) -> Floats:
    pit = numbers(values, "pit")
    bad = pit[~((pit >= 0.0) & (pit <= 1.0))]
    if bad.size:
        msg = f"PIT value {shown(float(bad[0]))} is not in [0, 1]; give probabilities"
        raise ParameterError(msg)
    return pit
