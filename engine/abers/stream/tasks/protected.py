"""The binary task with protected probabilities: predictions change the state of a calibrator.

A row is score, p0, p1, protected probability, and the number of the observation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.arrays import EXPIRE, PREDICT
from abers.stream.tasks.binary import BinaryTask
from abers.stream.tasks.rows import are_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats
    from abers.stream.columns import Column
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import AnyCalibrator, CalibrationSteps

__all__ = ["ProtectedTask"]


class ProtectedTask(BinaryTask):
    """Binary labels, calibrated by protected Venn-Abers prediction.

    Parameters
    ----------
    settings
        Settings of the processor: kind of scores, first weight of the raw probability, and how the
        interval's calibrator forgets.
    """

    prediction_width = 4
    stateful = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._options: dict[str, Any] = {
            "scores": settings.scores,
            "raw_weight": settings.raw_weight,
        }

    def are_predictions(self, rows: Floats) -> bool:
        """Return whether rows are two probabilities in order, one between 0 and 1, and a number."""
        inside = (rows[:, 2] > 0.0) & (rows[:, 2] < 1.0)
        counted = bool(inside.all()) and are_numbers(rows[:, 3])
        return counted and super().are_predictions(rows[:, :2])

    def make_calibrator(self) -> AnyCalibrator:
        """Return an empty calibrator."""
        return self._kind(**self.forgetting, **self._options)

    def predict(
        self, calibrator: AnyCalibrator, steps: CalibrationSteps, options: dict[str, Any]
    ) -> tuple[Floats, None]:
        """Return lower and upper ends, protected probabilities, and numbers."""
        answers = calibrator.run(steps.kinds, steps.scores[:, 0], steps.values, **options)
        return np.column_stack((*answers, options["numbers"])), None

    def step(  # noqa: PLR0913, PLR0917 - as of the base class
        self,
        calibrator: AnyCalibrator,
        kind: int,
        score: Sequence[float],
        value: float,
        time: int | None,
        number: int,
    ) -> Sequence[float]:
        """Run one step, and return the ends, probability and number of a prediction."""
        if kind == PREDICT:
            return (*calibrator.predict_one(score[0], time, number=number), number)
        if kind == EXPIRE:
            calibrator.expire_one(number)
        else:
            calibrator.learn_one(score[0], int(value), time=time, number=number)
        return ()

    def field_values(self, row: Sequence[float]) -> Sequence[float]:
        """Return score, lower and upper end, and protected probability."""
        return row[:-1]

    def _read(self, rows: Floats) -> tuple[Column, Column, Column, Column]:
        score, p0, p1, p, _ = rows.T
        return score, p0, p1, p
