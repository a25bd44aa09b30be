"""The labels of a calibrator of several classes, and their checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.arrays import unmasked
from abers.exceptions import LabelError, ParameterError
from abers.steps import LEARN

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Bytes, Integers
    from abers.calibration._classes import Classes, Label

__all__ = ["ClassLabels"]


class ClassLabels:
    """Labels that are classes; arrays of steps have their numbers."""

    _classes: Classes

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes known, in the order of their columns."""
        return self._classes.labels

    @property
    def max_classes(self) -> int:
        """The greatest number of classes."""
        return self._classes.most

    def _labels(self, labels: ArrayLike, length: int) -> Integers:
        return self._classes.index(labels, length)

    def _step_labels(self, labels: ArrayLike, kinds: Bytes) -> Integers:
        """Check the labels of steps, which are numbers of classes."""
        column = np.asarray(unmasked(labels))
        if column.shape != kinds.shape:
            msg = f"labels is of shape {column.shape}, not {kinds.shape}, one for each row"
            raise ParameterError(msg)
        numbers = np.where(kinds == LEARN, column, 0)
        bad = np.flatnonzero(~np.isin(numbers, np.arange(len(self._classes))))
        if bad.size:
            msg = (
                f"row {bad[0]}: label {column[bad[0]].item()!r} is not the number of a class, "
                f"0 to {len(self._classes) - 1}"
            )
            raise LabelError(msg)
        return numbers.astype(np.int64)
