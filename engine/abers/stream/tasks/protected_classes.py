"""The multi-class task with protected probabilities: predictions change the state of a calibrator.

A row is the scores, the protected probabilities, the lower and the upper ends, each in the order of
the classes, and the number of the observation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.arrays import EXPIRE, PREDICT
from abers.stream.tasks.multiclass import MultiClassTask
from abers.stream.tasks.rows import are_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import AnyCalibrator, CalibrationSteps

__all__ = ["ProtectedMultiClassTask"]


class ProtectedMultiClassTask(MultiClassTask):
    """One of several labels, calibrated by protected one-vs-rest and one-vs-one prediction.

    Parameters
    ----------
    settings
        Settings of the processor: the classes, first weight of the raw probabilities, and how the
        calibrator of the intervals forgets.
    """

    stateful = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.prediction_width += 1
        self._options["raw_weight"] = settings.raw_weight

    def are_predictions(self, rows: Floats) -> bool:
        """Return whether rows are positive probabilities, lower and upper ends, and a number."""
        positive = bool((rows[:, : self.score_width] > 0.0).all())
        return positive and are_numbers(rows[:, -1]) and super().are_predictions(rows[:, :-1])

    def predict(
        self, calibrator: AnyCalibrator, steps: CalibrationSteps, options: dict[str, Any]
    ) -> tuple[Floats, None]:
        """Return protected probabilities, lower and upper ends, and numbers."""
        rows, bands = super().predict(calibrator, steps, options)
        return np.column_stack((rows, options["numbers"])), bands

    def step(  # noqa: PLR0913, PLR0917 - as of the base class
        self,
        calibrator: AnyCalibrator,
        kind: int,
        score: Sequence[float],
        value: float,
        time: int | None,
        number: int,
    ) -> Sequence[float]:
        """Run one step, and return probabilities, ends and number of a prediction."""
        if kind == EXPIRE:
            calibrator.expire_one(number)
            return ()
        row = super().step(calibrator, kind, score, value, time, number)
        return [*row, number] if kind == PREDICT else row

    def field_values(self, row: Sequence[float]) -> Sequence[Any]:
        """Return scores, probabilities, lower and upper ends by class."""
        return super().field_values(row[:-1])

    def _parts(self, rows: Floats) -> list[Floats]:
        return super()._parts(rows[:, :-1])
