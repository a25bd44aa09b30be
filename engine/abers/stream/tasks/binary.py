"""The binary task: a score, or one of each of K folds, becomes the probability of label 1.

A row is score, p0, p1, p. A baseline, which has one probability, has it as both ends too.

The binary task with a score of each of K folds. A row is the K scores, the fold, the ends and the
probability. The id of an observation decides its fold.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers import validation
from abers.arrays import EXPIRE, PREDICT
from abers.backends import core
from abers.calibration import (
    CrossVennAbers,
    ProtectedVennAbers,
    VennAbers,
    cross_ends,
    cross_log_merge,
    sets,
)
from abers.calibration.cross import fold_of_id
from abers.calibration.protected import logistic, protection
from abers.calibration.protected_cross import ProtectedCrossVennAbers, fold_protection
from abers.calibration.sets import among_labelled, checked_rates
from abers.exceptions import ScoreError
from abers.mathematics import Forgetting
from abers.monitoring import BinaryForecasts, ScoredRows
from abers.stream.events import Outcome, Prediction
from abers.stream.option import Phrase, Ref, RefusedScoreError
from abers.stream.setting_rules import FORGETTING
from abers.stream.settings import setting_options
from abers.stream.tasks.base import Task
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers._core import Model
    from abers.arrays import Floats
    from abers.stream.cells import Column
    from abers.stream.columns import Events
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import AnyCalibrator, CalibrationSteps, OneStep

__all__ = ["PARTS", "BinaryTask", "CrossTask", "ModelOptions", "model_options"]

_LEAST_WAIT = 4_096  # predictions


class ModelOptions(NamedTuple):
    """How a model forgets, what its mixture is, and in which order labels teach it."""

    rule: Forgetting
    mixture: dict[str, Any]
    teaching: dict[str, Any]


def model_options(settings: Settings, given: Mapping[str, Any]) -> ModelOptions:
    """Return them from settings, and from the options of the calibrator."""
    mixture = {name: given[name] for name in ("scores", "raw_weight") if name in given}
    after = settings.labels_after
    teaching = {
        # What expires holds nothing back, so the wait bounds only how many labels are kept.
        "wait": max(settings.max_pending, _LEAST_WAIT),
        "age": -1 if after is None else after,
        "room": settings.max_bytes,
    }
    return ModelOptions(Forgetting(*map(given.get, FORGETTING)), mixture, teaching)


_ANY = Ref(setting_options()["scores"], "any")
_OF_PERCENT = Phrase("Set input.percent = true", "Divide it by 100", "Add --scores percent")

PARTS: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    "probability": lambda p: (p, p, p),
    "interval": lambda ends: (*ends, ends.merged),
    "protected": lambda parts: parts,
    "folds": lambda ends: (*cross_ends(*ends), cross_log_merge(*ends)),
}
"""Lower end, upper end and probability of an answer, one or many, by `Capabilities.answer`."""


class BinaryTask(Task):
    """Binary labels, calibrated by any calibrator of one score.

    Parameters
    ----------
    settings
        Settings of the processor: kind of scores, and options of the calibrator.
    """

    prediction = Prediction
    outcome = Outcome
    merged: type[AnyCalibrator] | None = VennAbers
    score_width = 1
    prediction_width = 3

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._answer = self._kind.capabilities.answer
        self._rates = checked_rates(settings.label_rates)
        self._model_options = model_options(settings, self._options)
        self._smallest = 0.0 if self.probabilities else -sys.float_info.max
        self._largest = 1.0 if self.probabilities else sys.float_info.max

    def native(self) -> tuple[Model, Forgetting] | None:
        """Return an empty model and its rule, if calibrators are the merged or the protected."""
        rule, mixture, teaching = self._model_options
        if self._kind is self.merged:
            return core.Merge(sets.empty(rule, self._rates), **teaching), rule
        if self._kind is ProtectedVennAbers:
            return protection(rule, **mixture, **teaching), rule
        return None

    def score(self, given: object, id_: str) -> float | list[float]:
        """Return a score: a finite number, in [0, 1] where scores are probabilities."""
        del id_
        return self._checked(given)

    def _checked(self, given: object) -> float:
        if type(given) is float and self._smallest <= given <= self._largest:
            return given
        score = validation.score(given)
        if not self._smallest <= score <= self._largest:
            msg = f"score {shown(given)} is not a probability in [0, 1]; is it a percentage? "
            raise RefusedScoreError(
                msg,
                _OF_PERCENT,
                "; is it another number, such as a margin? ",
                Phrase("Set ", "Set ", "Add "),
                _ANY,
            )
        return score

    def value(self, given: object) -> float:
        """Return a label, which is 0, 1, False or True, as a number."""
        return float(validation.label(given))

    def columns(self, events: Events) -> tuple[Floats, Floats] | None:
        """Return `score` and `value` of all events of a batch; None if one is unusual."""
        n = len(events)
        scores: Column = np.zeros(n) if events.scores is None else events.scores
        values: Column = np.zeros(n, bool) if events.values is None else events.values
        plain = scores.dtype.kind == "f" and values.dtype.kind in "ib"
        if not plain or not 0 <= values.min() <= values.max() <= 1:
            return None
        if not self._smallest <= scores.min() <= scores.max() <= self._largest:  # nor a NaN
            return None
        return scores.reshape(n, 1), np.where(events.labelled, values, 0.0)

    def are_scores(self, rows: Floats) -> bool:
        """Return whether rows are finite scores, in [0, 1] where they are probabilities."""
        return bool(((rows >= self._smallest) & (rows <= self._largest)).all())

    def are_predictions(self, rows: Floats) -> bool:
        """Return whether rows are two ends in order, and a probability, of intervals inside."""
        p0, p1, p = rows.T
        ordered = (p0 >= 0.0) & (p0 <= p1) & (p1 <= 1.0)
        served = (p == p0) if self._answer == "probability" else (p > 0.0) & (p < 1.0)
        return bool((ordered & served).all())

    def are_values(self, values: Floats) -> bool:
        """Return whether numbers are 0 or 1."""
        return bool(((values == 0.0) | (values == 1.0)).all())

    def label(self, value: float) -> int:
        """Return the label of a value."""
        return int(value)

    def predict(
        self, calibrator: AnyCalibrator, steps: CalibrationSteps, options: dict[str, Any]
    ) -> tuple[Floats, None]:
        """Return lower and upper ends, and probabilities."""
        answers = calibrator.run(steps.kinds, steps.scores[:, 0], steps.values, **options)
        return np.column_stack([*PARTS[self._answer](answers)]), None

    def step(self, calibrator: AnyCalibrator, one: OneStep) -> Sequence[float]:
        """Run one step, and return lower end, upper end and probability of a prediction."""
        kind, (score, *_), value, time, number = one
        if kind == PREDICT:
            return PARTS[self._answer](calibrator.predict_one(score, time, number=number))
        if kind == EXPIRE and number is not None:
            calibrator.expire_one(number)
        else:
            calibrator.learn_one(score, int(value), time=time, number=number)
        return ()

    def field_values(self, row: Sequence[float]) -> Sequence[float]:
        """Return score, lower and upper end, and probability."""
        return row

    def scored_rows(self, rows: Floats, values: Floats) -> ScoredRows:
        """Score the probability, and that of the score, if it says one.

        With rates of labels, both are first made those of observations with labels.
        """
        score, p0, p1, p = self._read(rows)
        columns = self._of_labelled(score, p)
        views = {view: BinaryForecasts(one, values) for view, one in columns.items()}
        outside = (p < p0) | (p > p1) if self.mixed else None
        return ScoredRows(values, views, p1 - p0, outside)

    def bets(self, issued: Floats, scored: ScoredRows) -> tuple[Floats, Floats]:
        """Return the probabilities of each view, and the labels."""
        score, _, _, p = self._read(issued)
        columns = self._of_labelled(score, p)
        labels = np.repeat(scored.labels[:, np.newaxis], len(self.views), axis=1)
        return np.column_stack([columns[view] for view in self.views]), labels

    def labels(self, values: Floats) -> Column:
        """Return the labels of values, as whole numbers."""
        return values.astype(np.int64)

    def fields(self, rows: Floats) -> dict[str, Column]:
        """Return the columns of scores and predictions."""
        score, p0, p1, p = self._read(rows)
        return {"score": score, "p0": p0, "p1": p1, "p": p}

    def _raw(self, scores: Column) -> dict[str, Column]:
        """Return the probabilities that scores say, by the name of their view, if any."""
        if not self.has_raw_view:
            return {}
        return {"raw": scores if self.probabilities else logistic(scores)}

    def _of_labelled(self, scores: Column, p: Column) -> dict[str, Column]:
        """Return the probabilities of each view among observations with labels."""
        columns = self._raw(scores) | {"calibrated": p}
        return {view: among_labelled(one, self._rates) for view, one in columns.items()}

    def _read(self, rows: Floats) -> tuple[Column, Column, Column, Column]:
        """Return score, lower and upper end, and probability."""
        score, p0, p1, p = rows.T
        return score, p0, p1, p


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
