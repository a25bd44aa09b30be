"""The binary task with protected probabilities of K scores.

A row is the K scores, the fold, the ends, the protected probability, and the number of the
observation, as `abers.ProtectedCrossVennAbers` computes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.stream.tasks.base import Task
from abers.stream.tasks.cross import CrossTask
from abers.stream.tasks.protected import ProtectedTask

if TYPE_CHECKING:
    from abers.arrays import Floats
    from abers.stream.columns import Column
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import AnyCalibrator, CalibrationSteps

__all__ = ["ProtectedCrossTask"]


class ProtectedCrossTask(ProtectedTask, CrossTask):
    """Binary labels, calibrated by protected cross Venn-Abers prediction.

    Parameters
    ----------
    settings
        Settings of the processor: number of folds, and those of `ProtectedTask`.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._options["folds"] = settings.folds

    def predict(
        self, calibrator: AnyCalibrator, steps: CalibrationSteps, options: dict[str, Any]
    ) -> tuple[Floats, None]:
        """Return lower and upper ends, protected probabilities, and numbers."""
        answers = self._run(calibrator, steps, options)
        return np.column_stack((*answers, options["numbers"])), None

    step, field_values = Task.step, Task.field_values  # a score is several numbers

    def _read(self, rows: Floats) -> tuple[Column, Column, Column, Column]:
        return super(ProtectedTask, self)._read(rows[:, :-1])  # as of `CrossTask`
