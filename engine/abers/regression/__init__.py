"""Regression: predictive distributions that are updated with every label."""

from __future__ import annotations

from abers.regression.beta_cdf import BetaCDF
from abers.regression.continuous import CalibratedDistribution
from abers.regression.distribution import PredictiveDistribution
from abers.regression.ivapr import IVAPR, Quantiles
from abers.regression.ivar import IVAR, MeanInterval
from abers.regression.quantile_calibration import QuantileCalibration

__all__ = [
    "IVAPR",
    "IVAR",
    "BetaCDF",
    "CalibratedDistribution",
    "MeanInterval",
    "PredictiveDistribution",
    "QuantileCalibration",
    "Quantiles",
]
