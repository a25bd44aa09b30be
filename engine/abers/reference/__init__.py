"""The definitions of what is behind `VennAbers`, `IVAPR` and `UnboundedIVAR`, in plain Python.

This is what runs without a compiler. A change of their behaviour starts here; tests compare the
native core with it bit for bit.
"""

from abers.reference.calibration_set import CalibrationSet
from abers.reference.isotonic import isotonic_blocks
from abers.reference.mean_set import MeanSet, PredictiveSet

__all__ = ["CalibrationSet", "MeanSet", "PredictiveSet", "isotonic_blocks"]
