"""Classification: calibrators of binary scores."""

from __future__ import annotations

from abers.calibration.interval import VennInterval, log_merge
from abers.calibration.venn_abers import Hull, VennAbers

__all__ = ["Hull", "VennAbers", "VennInterval", "log_merge"]
