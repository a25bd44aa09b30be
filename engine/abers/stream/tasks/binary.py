"""The binary task: a score becomes the probability of label 1, in a Venn-Abers interval.

A row is score, p0, p1, p. A baseline, which has one probability, has it as both ends too.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from abers import validation
from abers.arrays import EXPIRE, PREDICT
from abers.backends import core
from abers.calibration import (
    ProtectedVennAbers,
    VennAbers,
    cross_ends,
    cross_log_merge,
    sets,
)
from abers.calibration.label_rates import among_labelled, checked_rates
from abers.calibration.protected import protection
from abers.calibration.raw_probability import logistic
from abers.monitoring import BinaryForecasts, ScoredRows
from abers.stream.events import Outcome, Prediction
from abers.stream.option import Phrase, Ref, RefusedScoreError
from abers.stream.settings import setting_options
from abers.stream.tasks.base import Task
from abers.stream.tasks.model_options import model_options
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers._core import Model
    from abers.arrays import Floats
    from abers.forgetting import Forgetting
    from abers.stream.column_types import Column
    from abers.stream.columns import Events
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import AnyCalibrator, CalibrationSteps

__all__ = ["PARTS", "BinaryTask"]

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

    def step(  # noqa: PLR0913, PLR0917 - as of the base class
        self,
        calibrator: AnyCalibrator,
        kind: int,
        score: Sequence[float],
        value: float,
        time: int | None,
        number: int | None,
    ) -> Sequence[float]:
        """Run one step, and return lower end, upper end and probability of a prediction."""
        if kind == PREDICT:
            return PARTS[self._answer](calibrator.predict_one(score[0], time, number=number))
        if kind == EXPIRE and number is not None:
            calibrator.expire_one(number)
        else:
            calibrator.learn_one(score[0], int(value), time=time, number=number)
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
