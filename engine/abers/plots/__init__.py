"""Figures of predictions and of what became of them, drawn by plotly from plain arrays."""

from __future__ import annotations

from abers.plots._style import Figure
from abers.plots.calibration import coverage, pit_histogram, reliability
from abers.plots.distributions import band, curve, fan_chart
from abers.plots.series import series

__all__ = [
    "Figure",
    "band",
    "coverage",
    "curve",
    "fan_chart",
    "pit_histogram",
    "reliability",
    "series",
]
