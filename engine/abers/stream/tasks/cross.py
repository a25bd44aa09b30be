"""The binary task with a score of each of K folds.

A row is the K scores, the fold, the ends and the probability. The id of an observation decides its
fold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.backends import core
from abers.calibration import CrossVennAbers, sets
from abers.calibration.folds import fold_of_id
from abers.calibration.protected_cross import ProtectedCrossVennAbers, fold_protection
from abers.exceptions import ScoreError
from abers.stream.tasks.base import Task
from abers.stream.tasks.binary import PARTS, BinaryTask
from abers.validation import shown

if TYPE_CHECKING:
    from abers._core import Model
    from abers.arrays import Floats
    from abers.forgetting import Forgetting
    from abers.stream.column_types import Column
    from abers.stream.columns import Events
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import AnyCalibrator, CalibrationSteps

__all__ = ["CrossTask"]


class CrossTask(BinaryTask):
    """Binary labels, calibrated by any calibrator of K scores.

    Parameters
    ----------
    settings
        Settings of the processor: number of folds, kind of scores, and options of the calibrator.
    """

    merged = CrossVennAbers

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._folds = self._options["folds"] = settings.folds
        self.score_width = settings.folds + 1

    def native(self) -> tuple[Model, Forgetting] | None:
        """Return an empty model and its rule, if calibrators are the merged or the protected."""
        rule, mixture, teaching = self._model_options
        if self._kind is self.merged:
            held = [sets.empty(rule) for _ in range(self._folds)]
            return core.FoldMerge(held, **teaching), rule
        if self._kind is ProtectedCrossVennAbers:
            return fold_protection(rule, self._folds, **mixture, **teaching), rule
        return None

    def score(self, given: object, id_: str) -> list[float]:
        """Return the scores of an observation, one a fold or one for all, and its fold."""
        scores = [*given] if isinstance(given, list | tuple) else [given] * self._folds
        if len(scores) != self._folds:
            msg = f"score {shown(given)} is not one number, or {self._folds}, one a fold"
            raise ScoreError(msg)
        return [*map(self._checked, scores), float(fold_of_id(id_, self._folds))]

    def columns(self, events: Events) -> tuple[Floats, Floats] | None:
        """Return `score` and `value` of all events of a batch; None if one is unusual."""
        found = super().columns(events)
        if found is None:
            return None
        folds = np.zeros(len(events))
        ids = events.ids[~events.labels].tolist()
        folds[~events.labels] = [fold_of_id(one, self._folds) for one in ids]
        scores = np.repeat(found[0], self._folds, axis=1)
        return np.column_stack((scores, folds)), found[1]

    def are_scores(self, rows: Floats) -> bool:
        """Return whether rows are finite scores, and a fold."""
        folds = np.isin(rows[:, -1], np.arange(self._folds))
        return super().are_scores(rows[:, :-1]) and bool(folds.all())

    def learner_args(self, value: float, id_: str) -> tuple[Any, ...]:
        """Return the arguments of `learner.learn` after the features: the label, and the fold."""
        return (self.label(value), fold_of_id(id_, self._folds))

    def predict(
        self, calibrator: AnyCalibrator, steps: CalibrationSteps, options: dict[str, Any]
    ) -> tuple[Floats, None]:
        """Return lower and upper ends, and probabilities."""
        scores, folds = steps.scores[:, :-1], steps.scores[:, -1].astype(np.int64)
        answers = calibrator.run(steps.kinds, scores, steps.values, folds=folds, **options)
        return np.column_stack([*PARTS[self._answer](answers)]), None

    step, field_values = Task.step, Task.field_values  # a score is several numbers

    def _read(self, rows: Floats) -> tuple[Column, Column, Column, Column]:
        # The median of equal scores is their value, to the last bit.
        scores = np.median(rows[:, : self._folds], axis=1)
        low, high, p = rows[:, -3:].T
        return scores, low, high, p
