"""Real labels between two ends: the checks of a calibrator that learns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import numpy as np

from abers import validation
from abers.arrays import EXPIRE, PREDICT, unmasked
from abers.calibration.sets import HeldCalibrator
from abers.exceptions import LabelError
from abers.mathematics import Many, One

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Bytes, Floats

__all__ = ["BoundedCalibrator"]

S = TypeVar("S")  # a score


class BoundedCalibrator(HeldCalibrator[S, float, One, Many], Generic[S, One, Many]):
    """A calibrator of labels between two ends, which may be infinite."""

    _ends: tuple[float, float]
    _ends_name: ClassVar[str]

    def _label(self, label: object) -> float:
        y = validation.real(label)
        if not self._ends[0] <= y <= self._ends[1]:
            raise LabelError(self._outside(y))
        return y

    def _labels(self, labels: ArrayLike, length: int) -> Floats:
        column = validation.reals(labels, length)
        outside = np.flatnonzero((column < self._ends[0]) | (column > self._ends[1]))
        if outside.size:
            msg = f"row {outside[0]}: {self._outside(float(column[outside[0]]))}"
            raise LabelError(msg)
        return column

    def _step_labels(self, labels: ArrayLike, kinds: Bytes) -> Floats:
        """Check the labels of a run; those of predictions and expiries are ignored."""
        given = unmasked(labels)
        column = np.array(given, dtype=None if np.asarray(given).dtype.kind in "fiub" else object)
        if column.shape == kinds.shape:
            column[(kinds == PREDICT) | (kinds == EXPIRE)] = np.clip(0.0, *self._ends)
        return self._labels(column, len(kinds))

    def _outside(self, y: float) -> str:
        name = self._ends_name
        return f"label {y!r} lies outside the {name} {self._ends}; widen the {name}"
