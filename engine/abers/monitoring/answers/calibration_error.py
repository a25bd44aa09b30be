"""Calibration error in bins, with the range in which it is in truth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from abers.backends import core
from abers.monitoring.answers import formats

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CalibrationError", "calibration_error"]

_SUMS = 4  # of a bin: labels, ones, forecasts and squares
_POINTS = 100.0


class CalibrationError(Struct, frozen=True):
    """Calibration error in bins, with the range in which it is in truth.

    Attributes
    ----------
    plain
        Mean distance of forecasts and labels over bins, a share as `PrequentialScores.ece`. It is
        above the truth by chance. NaN before the first label.
    low, high
        Ends of the range of the true error, as shares; 0 and 1 before the first label.
    labels
        Number of labels.

    Examples
    --------
    >>> CalibrationError(0.0773, 0.06142, 0.09258, 20_000).sentence
    'The calibration error is between 6.1 and 9.3 points.'
    >>> CalibrationError(0.0093, 0.0, 0.02178, 20_000).sentence
    'The calibration error is at most 2.2 points.'
    """

    plain: float
    low: float
    high: float
    labels: int

    @property
    def sentence(self) -> str:
        """The range in words, each end rounded to the cautious side."""
        return f"The calibration error is {self.ends}."

    @property
    def ends(self) -> str:
        """The range in points, in a few words."""
        low, high = _POINTS * self.low, _POINTS * self.high
        places = formats.decimals(low, high)
        most = formats.up(high, places)
        if not low:
            return f"at most {most} points"
        return f"between {formats.down(low, places)} and {most} points"


def calibration_error(bins: Sequence[Sequence[float]], alpha: float) -> CalibrationError:
    """Return the calibration error of bins, with its range at a level.

    Parameters
    ----------
    bins
        Of each bin the number of labels, that of ones, the sum of forecasts and that of squares,
        and more that is not read; see `ForecastGroup`. Bins do not depend on labels.
    alpha
        As of `CalibrationErrorSequence`.
    """
    sums = np.array([one[:_SUMS] for one in bins], dtype=np.float64)
    labels = float(sums[:, 0].sum())
    if not labels:
        return CalibrationError(math.nan, 0.0, 1.0, 0)
    low, high = core.calibration_error(sums, alpha)
    plain = float(np.abs(sums[:, 1] - sums[:, 2]).sum())
    return CalibrationError(plain / labels, low / labels, high / labels, int(labels))
