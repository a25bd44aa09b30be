"""The regression task with protected distributions: predictions change the state of a calibrator.

A row is that of the regression task, and the number of the observation. A protected distribution is
no band, so its quantiles are those of its upper and of its lower CDF too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.stream.tasks.base import are_numbers
from abers.stream.tasks.regression import RegressionTask

if TYPE_CHECKING:
    from abers.arrays import Floats
    from abers.stream.columns import Column
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import AnyCalibrator, CalibrationSteps

__all__ = ["ProtectedRegressionTask"]


class ProtectedRegressionTask(RegressionTask):
    """Labels that are numbers, calibrated by a protected pool of predictive distributions.

    Parameters
    ----------
    settings
        Settings of the processor: levels of the quantiles, the support, and the first weight of
        the base.
    """

    stateful = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._options["base_weight"] = settings.base_weight
        self.prediction_width += 1
        self.make_calibrator()  # refuses ends that are too far apart at once

    def are_predictions(self, rows: Floats) -> bool:
        """Return whether rows are those of a regression, and a number."""
        return super().are_predictions(rows) and are_numbers(rows[:, -1])

    def predict(
        self, calibrator: AnyCalibrator, steps: CalibrationSteps, options: dict[str, Any]
    ) -> tuple[Floats, Column | None]:
        """Return quantiles and numbers, or also means and whole distributions."""
        rows, distributions = super().predict(calibrator, steps, options)
        return np.column_stack((rows, options["numbers"])), distributions
