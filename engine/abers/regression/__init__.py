"""Regression: predictive distributions that are updated with every label."""

from __future__ import annotations

from abers.regression.beta_cdf import BetaCDF
from abers.regression.continuous import CalibratedDistribution
from abers.regression.distribution import PredictiveDistribution
from abers.regression.gp_beta import GPBeta
from abers.regression.ivapr import IVAPR, Quantiles
from abers.regression.ivar import IVAR, MeanInterval
from abers.regression.quantile_calibration import QuantileCalibration

__all__ = [
    "IVAPR",
    "IVAR",
    "BetaCDF",
    "CalibratedDistribution",
    "GPBeta",
    "MeanInterval",
    "PredictiveDistribution",
    "QuantileCalibration",
    "Quantiles",
]
