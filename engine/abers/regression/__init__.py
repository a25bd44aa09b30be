"""Regression: predictive distributions that are updated with every label."""

from abers.regression.coverage_tracker import (
    CoverageTracker,
    PredictionInterval,
    PredictionIntervals,
)
from abers.regression.distribution import PredictiveDistribution
from abers.regression.ivapr import IVAPR, Quantiles
from abers.regression.protected_ivapr import ProtectedIVAPR

__all__ = [
    "IVAPR",
    "CoverageTracker",
    "PredictionInterval",
    "PredictionIntervals",
    "PredictiveDistribution",
    "ProtectedIVAPR",
    "Quantiles",
]
