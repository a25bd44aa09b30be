"""Figures of predictions and their labels, drawn by plotly from plain arrays.

Each function returns a plotly figure, or raises a `MissingExtraError` if plotly is not installed.
Its attribute `drawing` is the same function without plotly: it returns the figure as a `Drawing`,
plain data that can be encoded as JSON.
"""

from abers.plotting._style import Drawing, Figure
from abers.plotting.calibration_figures import corp, coverage, pit_histogram, reliability
from abers.plotting.distribution_figures import band, curve, fan_chart, interval_bars
from abers.plotting.stream_figures import bars, evidence, series

__all__ = [
    "Drawing",
    "Figure",
    "band",
    "bars",
    "corp",
    "coverage",
    "curve",
    "evidence",
    "fan_chart",
    "interval_bars",
    "pit_histogram",
    "reliability",
    "series",
]
