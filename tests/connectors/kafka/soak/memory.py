"""Slope of resident memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Slope", "slope"]

_BLOCKS = 24  # means of so many blocks are as good as independent, where single samples are not
_CONFIDENCE = 0.95
_HOUR, _MIB = 3600.0, 2.0**20


class Slope(NamedTuple):
    """Growth of resident memory in MiB an hour, by least squares.

    Attributes
    ----------
    value
        The slope.
    error
        Half the width of its confidence interval, of 95%.
    begin, end
        The memory on the line at both ends, in MiB.
    seconds
        Length of time.
    """

    value: float
    error: float
    begin: float
    end: float
    seconds: float


def slope(samples: Sequence[tuple[float, float]]) -> Slope:
    """Fit a line through times in seconds and bytes."""
    assert len(samples) > 2 * _BLOCKS, "too few samples for the slope of memory"
    blocks = np.array_split(np.array(samples), _BLOCKS)
    times, values = np.array([one.mean(axis=0) for one in blocks]).T / [[_HOUR], [_MIB]]
    fit = stats.linregress(times, values)
    error = fit.stderr * stats.t.ppf(0.5 + _CONFIDENCE / 2, _BLOCKS - 2)
    begin, end = (fit.intercept + fit.slope * at for at in times[[0, -1]])
    return Slope(
        float(fit.slope), float(error), float(begin), float(end), samples[-1][0] - samples[0][0]
    )
