"""The answer about forecasts of several classes: whether the first choice tells the truth now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.monitoring import CalibrationEProcess, ClassForecasts
from abers.monitoring.class_columns import class_bets, class_outcomes
from abers.monitoring.e_processes import LEARNS, PREDICTS, EProcessSteps
from abers.notebook.forecast_answers import WARM_UP, answer_about_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring import VerdictSequence
    from abers.monitoring.answers import Answers
    from abers.notebook.forecast_rows import ForecastRows

__all__ = ["ClassAnswers"]


class ClassAnswers:
    """The first of the three answers, about forecasts of several classes, and about each class.

    Parameters
    ----------
    classes
        Names of the classes, in the order of the columns of forecasts.
    tolerance
        Ratio of odds within which forecasts are right, at least 1.
    """

    def __init__(self, classes: Sequence[str], tolerance: float) -> None:
        self._process = CalibrationEProcess(
            ("raw",),
            tolerance=tolerance,
            grace_period=WARM_UP,
            outcome="right top classes",
            of="of the top class",
            classes=classes,
            multiclass=True,
        )

    @property
    def verdicts(self) -> VerdictSequence:
        """Verdicts on the first choice; the answer names their incidents."""
        return self._process.verdicts[0]

    def add(self, rows: ForecastRows) -> None:
        """Add all forecasts with their labels, in the order of time; each label comes at once."""
        n = len(rows.labels)
        found = ClassForecasts(rows.forecasts, rows.labels.astype(np.int64))
        both = (class_bets([rows.forecasts], each=True), class_outcomes([found], each=True))
        kinds = np.tile(np.array([PREDICTS, LEARNS], np.uint8), n)
        numbers, times = np.repeat(np.arange(n), 2), np.repeat(rows.times, 2)
        values = np.stack(both, axis=1).reshape(2 * n, both[0].shape[1])
        self._process.run(EProcessSteps(kinds, numbers, times, values))

    def answers(self) -> Answers:
        """Return the answer, with all that it is made of."""
        return answer_about_model(self._process.answer_sums())
