"""Classification: calibrators of binary scores, and of the scores of several classes."""

from __future__ import annotations

from abers.calibration.cross import CrossVennAbers
from abers.calibration.cross_batch import cvap
from abers.calibration.cross_interval import (
    CrossInterval,
    cross_brier_merge,
    cross_ends,
    cross_log_merge,
)
from abers.calibration.interval import VennInterval, brier_merge, log_merge
from abers.calibration.multi_interval import MultiInterval
from abers.calibration.one_vs_one import OneVsOne
from abers.calibration.one_vs_rest import OneVsRest
from abers.calibration.venn_abers import Hull, VennAbers

__all__ = [
    "CrossInterval",
    "CrossVennAbers",
    "Hull",
    "MultiInterval",
    "OneVsOne",
    "OneVsRest",
    "VennAbers",
    "VennInterval",
    "brier_merge",
    "cross_brier_merge",
    "cross_ends",
    "cross_log_merge",
    "cvap",
    "log_merge",
]
