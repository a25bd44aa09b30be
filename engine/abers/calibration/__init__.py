"""Classification: calibrators of binary scores and of several classes, and baselines."""

from abers.calibration.baselines import Baseline, BetaCalibration, DirectIsotonic, Isotonic, Platt
from abers.calibration.cross import CrossVennAbers
from abers.calibration.intervals import (
    CrossInterval,
    CrossIntervals,
    MultiInterval,
    MultiIntervals,
    ProtectedInterval,
    ProtectedIntervals,
    VennInterval,
    VennIntervals,
    brier_merge,
    cross_brier_merge,
    cross_ends,
    cross_log_merge,
    log_merge,
)
from abers.calibration.multiclass import OneVsOne, OneVsRest
from abers.calibration.protected import ProtectedVennAbers
from abers.calibration.protected_classes import ProtectedMultiClass
from abers.calibration.protected_cross import ProtectedCrossVennAbers
from abers.calibration.uncalibrated import Uncalibrated, UncalibratedClasses
from abers.calibration.venn_abers import IsotonicFit, VennAbers

__all__ = [
    "Baseline",
    "BetaCalibration",
    "CrossInterval",
    "CrossIntervals",
    "CrossVennAbers",
    "DirectIsotonic",
    "Isotonic",
    "IsotonicFit",
    "MultiInterval",
    "MultiIntervals",
    "OneVsOne",
    "OneVsRest",
    "Platt",
    "ProtectedCrossVennAbers",
    "ProtectedInterval",
    "ProtectedIntervals",
    "ProtectedMultiClass",
    "ProtectedVennAbers",
    "Uncalibrated",
    "UncalibratedClasses",
    "VennAbers",
    "VennInterval",
    "VennIntervals",
    "brier_merge",
    "cross_brier_merge",
    "cross_ends",
    "cross_log_merge",
    "log_merge",
]
