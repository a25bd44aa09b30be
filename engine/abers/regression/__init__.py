"""Regression: predictive distributions that are updated with every label."""

from __future__ import annotations

from abers.regression.distribution import PredictiveDistribution

__all__ = ["PredictiveDistribution"]
