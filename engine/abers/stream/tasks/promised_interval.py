"""The interval of `calibrator.coverage`: how it is made of quantiles, checked and scored.

Its promise depends on the calibrator. That of `ivapr` is the widest interval of any CDF in the
band, which covers by theorem with a fixed model and a stream that does not move. That of
`protected` begins as the central one of the mixture, and a tracker moves it, with a bound on any
stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers import validation
from abers.monitoring import TrackedRows
from abers.regression import CoverageTracker
from abers.regression.scores import interval_score

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = ["PromisedInterval"]


class PromisedInterval:
    """An interval that is to cover a share of the labels, one for each prediction.

    Parameters
    ----------
    level
        The share.
    support
        Ends between which all labels lie; infinite if these are not known.
    tracked
        Whether a tracker moves it; otherwise it is that of the band.
    """

    def __init__(self, level: float, support: tuple[float, float], *, tracked: bool) -> None:
        tail = (1.0 - level) / 2.0
        self.levels: tuple[float, ...] = (*validation.level_list([tail, 1.0 - tail]).tolist(),)
        self.tracked = tracked
        self._level, self._ends = level, support

    def tracker(self) -> CoverageTracker | None:
        """Return an empty tracker, if one moves the interval."""
        return CoverageTracker(self._level, self._ends) if self.tracked else None

    def ends(self, quantiles: Floats) -> Floats:
        """Return lower and upper ends, a row each, before a tracker moves them.

        The quantiles are of shape (n, 3, 2): merged, of the upper and of the lower CDF, at
        `levels`. Those of the band are clipped to the support, which contains all labels.
        """
        if self.tracked:
            return quantiles[:, 0]
        band = np.column_stack((quantiles[:, 1, 0], quantiles[:, 2, 1]))
        clipped: Floats = np.clip(band, *self._ends)
        return clipped

    def are_ends(self, low: Floats, high: Floats) -> bool:
        """Return whether numbers can be ends: in order and in the support, or of nothing."""
        lowest, highest = self._ends
        inside = (lowest <= low) & (low <= high) & (high <= highest)
        empty = (low == np.inf) & (high == -np.inf) & self.tracked
        return bool((inside | empty).all())

    def scored(self, low: Floats, high: Floats, labels: Floats) -> TrackedRows:
        """Return intervals and their labels as monitors read them."""
        filled = low <= high
        scores, (lowest, highest) = np.full(len(labels), np.inf), self._ends
        with np.errstate(over="ignore"):  # ends may be as far apart as doubles go
            widths = np.maximum(high - low, 0.0)
            scores[filled] = interval_score(low[filled], high[filled], labels[filled], self._level)
        return TrackedRows(
            level=self._level,
            covered=(low <= labels) & (labels <= high),
            widths=widths,
            whole=np.isinf(widths) | ((low == lowest) & (high == highest)),
            empty=~filled,
            scores=scores,
        )
