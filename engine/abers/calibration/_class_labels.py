"""The labels of a calibrator of several classes, and their checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.arrays import unmasked
from abers.exceptions import LabelError, ParameterError
from abers.steps import LEARN
from abers.validation import shown

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
        learned = kinds == LEARN
        numbers = range(len(self._classes))
        if column.dtype.kind in "iubf":
            known = np.isin(column[learned], numbers)
        else:
            known = np.array([one in numbers for one in column[learned].tolist()], bool)
        if not known.all():
            row = int(np.flatnonzero(learned)[int(np.argmin(known))])
            raise LabelError(self._unnumbered(row, column[row : row + 1].tolist()[0]))
        return np.where(learned, column, 0).astype(np.int64)

    def _unnumbered(self, row: int, label: object) -> str:
        """Return what is wrong with the label of a step, and what to do instead."""
        wrong = f"row {row}: label {shown(label)} is not the number of a class"
        return (
            f"{wrong}, 0 to {len(self._classes) - 1}; run takes numbers, for classes by name "
            "calibrator.classes.index(name); learn_many and prequential take the classes"
        )
