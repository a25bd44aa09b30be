"""Classification: calibrators of binary scores, and of the scores of several classes."""

from __future__ import annotations

from abers.calibration.interval import VennInterval, log_merge
from abers.calibration.multi_interval import MultiInterval
from abers.calibration.one_vs_one import OneVsOne
from abers.calibration.one_vs_rest import OneVsRest
from abers.calibration.venn_abers import Hull, VennAbers

__all__ = [
    "Hull",
    "MultiInterval",
    "OneVsOne",
    "OneVsRest",
    "VennAbers",
    "VennInterval",
    "log_merge",
]
