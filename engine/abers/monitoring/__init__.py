"""Watching whether predictions still mean what they say."""

from __future__ import annotations

from abers.monitoring.binary import BinaryMonitor
from abers.monitoring.calibration_bets import CalibrationBets
from abers.monitoring.corp import Bands, Decomposition, Diagram, corp
from abers.monitoring.distribution_bets import DistributionBets
from abers.monitoring.evidence import ChangeDetector, Episode, Evidence, SinceStart
from abers.monitoring.exchangeability import ExchangeabilityBets
from abers.monitoring.multiclass import MultiClassMonitor, MultiClassScores
from abers.monitoring.regression import CentralInterval, RegressionMonitor
from abers.monitoring.reliability import Reliability
from abers.monitoring.scores import Bin, PrequentialScores
from abers.monitoring.settling import Opened, Steps
from abers.monitoring.stretches import Passage, Stretches

__all__ = [
    "Bands",
    "Bin",
    "BinaryMonitor",
    "CalibrationBets",
    "CentralInterval",
    "ChangeDetector",
    "Decomposition",
    "Diagram",
    "DistributionBets",
    "Episode",
    "Evidence",
    "ExchangeabilityBets",
    "MultiClassMonitor",
    "MultiClassScores",
    "Opened",
    "Passage",
    "PrequentialScores",
    "RegressionMonitor",
    "Reliability",
    "SinceStart",
    "Steps",
    "Stretches",
    "corp",
]
