"""Prequential scores: how good the forecasts were, told by the labels that came later.

Governing rule: a forecast is scored once, as it was issued, when its label
arrives; the sums are all that is kept, and nothing infinite is added to a sum.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from abers.calibration import _checks
from abers.exceptions import ScoreError

__all__ = ["PrequentialScores"]

_BINS = 10
# Bins are closed on the left: a forecast on an edge belongs to the bin above it. Compared, not
# computed as int(10 p), which rounds some forecasts just below an edge across it.
_EDGES = tuple(edge / _BINS for edge in range(1, _BINS))


class PrequentialScores:
    """Log loss, Brier score and expected calibration error of forecasts of a binary label.

    Notes
    -----
    The log loss is in nats. A forecast of 0 for a label 1, or of 1 for a label 0, costs an
    infinite loss: it is counted in `infinite`, and makes `log_loss` infinite.

    The expected calibration error is the mean distance between forecast and label over ten
    bins of equal width, closed on the left (the last on both sides), each weighted by the
    number of its forecasts.

    Examples
    --------
    >>> scores = PrequentialScores()
    >>> for forecast, label in [(0.9, 1), (0.2, 0), (0.6, 0), (0.3, 0)]:
    ...     scores.update(forecast, label)
    >>> scores.count
    4
    >>> round(scores.log_loss, 4), round(scores.brier, 4), round(scores.ece, 4)
    (0.4004, 0.125, 0.3)
    """

    def __init__(self) -> None:
        self.infinite = 0
        self._log_loss = 0.0
        self._squares = 0.0
        self._counts = [0] * _BINS
        self._forecasts = [0.0] * _BINS
        self._positives = [0] * _BINS

    def update(self, forecast: float, label: int) -> None:
        """Score one forecast whose label has arrived.

        Parameters
        ----------
        forecast
            The probability of label 1 that was issued, in [0, 1].
        label
            0 or 1 (False or True).

        Raises
        ------
        ScoreError
            If the forecast is no probability; nothing is counted then.
        LabelError
            If the label is neither 0 nor 1; nothing is counted then.
        """
        if not 0.0 <= forecast <= 1.0:
            msg = f"forecast {forecast!r} is no probability; it must lie between 0 and 1"
            raise ScoreError(msg)
        label = _checks.label(label)
        of_label = forecast if label else 1.0 - forecast
        if of_label > 0.0:
            self._log_loss -= math.log(of_label)
        else:
            self.infinite += 1
        self._squares += (label - forecast) ** 2
        number = bisect_right(_EDGES, forecast)
        self._counts[number] += 1
        self._forecasts[number] += forecast
        self._positives[number] += label

    @property
    def count(self) -> int:
        """Number of forecasts scored."""
        return sum(self._counts)

    @property
    def log_loss(self) -> float:
        """Mean of the negative log probability of the label; NaN before the first."""
        return math.inf if self.infinite else self._mean(self._log_loss)

    @property
    def brier(self) -> float:
        """Mean squared distance of forecast and label; NaN before the first."""
        return self._mean(self._squares)

    @property
    def ece(self) -> float:
        """Expected calibration error over ten bins; NaN before the first."""
        bins = zip(self._forecasts, self._positives, strict=True)
        return self._mean(sum(abs(forecasts - positives) for forecasts, positives in bins))

    def _mean(self, total: float) -> float:
        return total / self.count if self.count else math.nan
