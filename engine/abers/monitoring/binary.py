"""All-time scores of binary predictions, raw and calibrated."""

from __future__ import annotations

from abers.monitoring.probability import ProbabilityMonitor
from abers.monitoring.scores import BRIER, ECE, LOG_LOSS, PrequentialScores

__all__ = ["BinaryMonitor"]


class BinaryMonitor(ProbabilityMonitor[PrequentialScores]):
    """Scores of the raw and of the calibrated probabilities, and the width of the intervals.

    Parameters
    ----------
    raw
        Whether raw scores are probabilities.

    Attributes
    ----------
    raw, calibrated
        `PrequentialScores` of each view; `raw` is None where scores are not probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from abers.monitoring import BinaryForecasts, ScoredRows
    >>> labels = np.array([1.0])
    >>> forecasts = {
    ...     "raw": BinaryForecasts(np.array([0.9]), labels),
    ...     "calibrated": BinaryForecasts(np.array([0.75]), labels),
    ... }
    >>> monitor = BinaryMonitor(raw=True)
    >>> monitor.update(ScoredRows(labels, forecasts, widths=np.array([0.5])))
    >>> monitor.mean_width, round(monitor.raw.brier, 4)
    (0.5, 0.01)
    >>> [(one.view, one.name, one.value) for one in monitor.summary() if one.name == "ece"]
    [('raw', 'ece', 0.09999999999999998), ('calibrated', 'ece', 0.25)]
    >>> [one.id for one in monitor.figures()]
    ['reliability']
    """

    @property
    def width_sum(self) -> float:
        """Sum of the widths of the intervals."""
        return self.calibrated.width_sum

    @width_sum.setter
    def width_sum(self, total: float) -> None:
        self.calibrated.width_sum = total

    name = "binary"
    measures = (*ProbabilityMonitor.measures, LOG_LOSS, BRIER, ECE)
    kind = PrequentialScores

    title = "Reliability"
    right = "the label 1"
