"""All-time scores of binary predictions, raw beside calibrated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.monitoring.base import BAND_LEVEL, Figure
from abers.monitoring.probability import ProbabilityMonitor
from abers.monitoring.scores import BRIER, ECE, LOG_LOSS, PrequentialScores

if TYPE_CHECKING:
    from abers.monitoring.base import BandMaker

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

    measures = (*ProbabilityMonitor.measures, LOG_LOSS, BRIER, ECE)
    kind = PrequentialScores

    def _figures(self, bands: BandMaker) -> list[Figure]:
        """Return the figure of the reliability diagrams, if there are any."""
        views: dict[str, Any] = {}
        drawn: dict[str, Any] = {}
        rows: list[list[str | float]] = []
        for view, scores in self.scores().items():
            if scores.reliability is None:
                continue
            diagram = scores.reliability.diagram()
            columns = (diagram.lower, diagram.upper, diagram.probability, diagram.count)
            blocks = [*zip(*(column.tolist() for column in columns), strict=True)]
            ends = np.column_stack((diagram.lower, diagram.upper)).ravel()
            views[view] = (ends.tolist(), diagram.probability.repeat(2).tolist())
            drawn[view] = tuple(column.tolist() for column in bands(view, diagram))
            rows += [[view, *block] for block in blocks]
        if not views:
            return []
        return [
            Figure(
                "reliability",
                "Reliability",
                "corp",
                {"views": views, "bands": drawn},
                "Of the observations that were given a probability of 0.8, eight in ten should "
                "have the label 1. Calibrated forecasts stay in their band in "
                f"{10 * BAND_LEVEL:.0f} of 10 cases.",
                ["view", "forecast from", "to", "share of labels 1", "labels"],
                rows,
            )
        ]
