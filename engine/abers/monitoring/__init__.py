"""Watching whether predictions still mean what they say."""

from __future__ import annotations

from abers.monitoring.binary import BinaryMonitor
from abers.monitoring.multiclass import MultiClassMonitor, MultiClassScores
from abers.monitoring.regression import RegressionMonitor
from abers.monitoring.scores import PrequentialScores

__all__ = [
    "BinaryMonitor",
    "MultiClassMonitor",
    "MultiClassScores",
    "PrequentialScores",
    "RegressionMonitor",
]
