"""Classification: calibrators of binary scores and of several classes, and baselines."""

from __future__ import annotations

from abers.calibration.beta import BetaCalibration
from abers.calibration.cross import CrossVennAbers
from abers.calibration.cross_batch import cvap
from abers.calibration.cross_interval import (
    CrossInterval,
    cross_brier_merge,
    cross_ends,
    cross_log_merge,
)
from abers.calibration.interval import VennInterval, brier_merge, log_merge
from abers.calibration.isotonic import Isotonic
from abers.calibration.multi_interval import MultiInterval
from abers.calibration.one_vs_one import OneVsOne
from abers.calibration.one_vs_rest import OneVsRest
from abers.calibration.platt import Platt
from abers.calibration.uncalibrated import Uncalibrated
from abers.calibration.venn_abers import Hull, VennAbers

__all__ = [
    "BetaCalibration",
    "CrossInterval",
    "CrossVennAbers",
    "Hull",
    "Isotonic",
    "MultiInterval",
    "OneVsOne",
    "OneVsRest",
    "Platt",
    "Uncalibrated",
    "VennAbers",
    "VennInterval",
    "brier_merge",
    "cross_brier_merge",
    "cross_ends",
    "cross_log_merge",
    "cvap",
    "log_merge",
]
