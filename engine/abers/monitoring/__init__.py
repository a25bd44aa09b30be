"""Watching whether predictions still mean what they say."""

from __future__ import annotations

from abers.monitoring.binary import BinaryMonitor
from abers.monitoring.calibration_bets import CalibrationBets
from abers.monitoring.evidence import ChangeDetector, Episode, Evidence, SinceStart
from abers.monitoring.multiclass import MultiClassMonitor, MultiClassScores
from abers.monitoring.regression import CentralInterval, RegressionMonitor
from abers.monitoring.scores import Bin, PrequentialScores
from abers.monitoring.stretches import Passage, Stretches

__all__ = [
    "Bin",
    "BinaryMonitor",
    "CalibrationBets",
    "CentralInterval",
    "ChangeDetector",
    "Episode",
    "Evidence",
    "MultiClassMonitor",
    "MultiClassScores",
    "Passage",
    "PrequentialScores",
    "RegressionMonitor",
    "SinceStart",
    "Stretches",
]
