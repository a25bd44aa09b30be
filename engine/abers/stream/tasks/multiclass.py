"""The multi-class task: scores of some classes become their probabilities, each in an interval.

A row is the scores, the probabilities, the lower and the upper ends, each in the order of the
classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from abers import validation
from abers.arrays import EXPIRE, PREDICT
from abers.backends import core
from abers.calibration import OneVsOne, OneVsRest, ProtectedMultiClass, sets
from abers.calibration.protected_classes import class_protection
from abers.exceptions import LabelError, ScoreError
from abers.monitoring import CalibrationEProcess, ClassForecasts, ScoredRows
from abers.monitoring.measures import class_bets, class_outcomes
from abers.stream.events import MultiClassOutcome, MultiClassPrediction
from abers.stream.option import SET, Ref, RefusedScoreError
from abers.stream.settings import setting_options
from abers.stream.tasks.base import Task, by_name, dicts
from abers.stream.tasks.binary import model_options
from abers.validation import shown

if TYPE_CHECKING:
    from abers._core import Model
    from abers.arrays import Floats
    from abers.mathematics import Forgetting
    from abers.stream.cells import Column
    from abers.stream.columns import Events
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import AnyCalibrator, CalibrationSteps, OneStep

__all__ = ["MultiClassTask"]

_ANY = Ref(setting_options()["scores"], "any")
_EPSILON = 1e-9  # by which probabilities may exceed 1
_MOST_VERDICTS = 100  # classes; with more only the top class has verdicts
_ROUNDING = 0.01  # probabilities that were written with few digits still sum to about 1


class MultiClassTask(Task):
    """One of several labels, calibrated by any calibrator of classes.

    Parameters
    ----------
    settings
        Settings of the processor: the classes, kind of scores, and options of the calibrator.
    """

    prediction = MultiClassPrediction
    outcome = MultiClassOutcome
    merged = OneVsRest
    counted = "right top classes"
    tested = "of the top class"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._classes = settings.classes
        self._model_options = model_options(settings, self._options)
        several = len(settings.classes) <= _MOST_VERDICTS
        self._verdict_classes = settings.classes if several else ()
        self._row = itemgetter(*settings.classes)  # of a dict: the values in order
        self._numbers = {name: number for number, name in enumerate(settings.classes)}
        # The score of a pair is a share of two scores, which must not be negative.
        self._nonnegative = self.probabilities or issubclass(self._kind, OneVsOne)
        self.score_width = len(self._classes)
        self.prediction_width = 3 * len(self._classes)
        most = max(2, len(self._classes))
        self._options |= {"classes": self._classes, "max_classes": most}

    def native(self) -> tuple[Model, Forgetting] | None:
        """Return an empty model and its rule, if calibrators are the merged or the protected."""
        rule, mixture, teaching = self._model_options
        if self._kind is self.merged:
            held = [sets.empty(rule) for _ in self._classes]
            return core.ClassMerge(held, **teaching), rule
        if self._kind is ProtectedMultiClass:
            return class_protection(rule, len(self._classes), **mixture, **teaching), rule
        return None

    def score(self, given: object, id_: str) -> list[float]:
        """Return the scores of an observation, which are finite and by class; one left out is 0."""
        del id_
        if not isinstance(given, Mapping):
            msg = f"score {shown(given)} must be a dict; write {{class: score, …}}"
            raise ScoreError(msg)
        if unknown := [name for name in given if name not in self._numbers]:
            msg = f"score of class {shown(unknown[0])}, which is not among {shown(self._classes)}"
            raise ScoreError(msg)
        row = [validation.score(given.get(name, 0.0)) for name in self._classes]
        if not self._right(np.array([row])):
            rule = "probabilities that sum to 1" if self.probabilities else "0 or more"
            wrong = f"scores {shown(dict(given))} are not {rule}; fix the scores, or "
            raise RefusedScoreError(wrong, SET, _ANY)
        return row

    def value(self, given: object) -> float:
        """Return the number of a label: a class, or a whole number that is written like one."""
        whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
        with suppress(KeyError, ValueError):  # not among them, or of thousands of digits
            if whole or isinstance(given, str):
                return float(self._numbers[str(given)])
        msg = f"label {shown(given)} is not among the classes {shown(self._classes)}"
        raise LabelError(msg)

    def columns(self, events: Events) -> tuple[Floats, Floats] | None:
        """Return `score` and `value` of all events of a batch; None if one is unusual."""
        scores, values = np.zeros((len(events), len(self._classes))), np.zeros(len(events))
        if events.scores is not None:
            table = self._table(events.scores[~events.labels].tolist())
            if table is None:
                return None
            scores[~events.labels] = table
        if events.values is not None:
            given = events.values[events.labelled].tolist()
            if not {*map(type, given)} <= {str} or not {*given} <= self._numbers.keys():
                return None
            values[events.labelled] = [self._numbers[name] for name in given]
        return scores, values

    def _table(self, given: list[Any]) -> Floats | None:
        """Return rows of dicts that have a float for every class and no other; None of others."""
        if not {*map(type, given)} <= {dict} or not {*map(len, given)} <= {len(self._classes)}:
            return None
        try:
            rows = [*map(self._row, given)]
        except KeyError:
            return None
        if not {*map(type, chain.from_iterable(rows))} <= {float}:
            return None
        table = np.array(rows, float).reshape(-1, len(self._classes)) + 0.0  # as in `score`
        return table if self._right(table) else None

    def _right(self, table: Floats) -> bool:
        if not np.isfinite(table).all() or (self._nonnegative and (table < 0.0).any()):
            return False
        if not self.probabilities:
            return True
        with np.errstate(over="ignore"):  # an infinite sum is not 1
            return bool((np.abs(table.sum(axis=1) - 1.0) <= _ROUNDING).all())

    def are_scores(self, rows: Floats) -> bool:
        """Return whether rows are scores of all classes."""
        return self._right(rows)

    def are_predictions(self, rows: Floats) -> bool:
        """Return whether rows are probabilities, those of a mixture positive, and their ends."""
        positive = not self.mixed or bool((rows[:, : self.score_width] > 0.0).all())
        return positive and bool(((rows >= 0.0) & (rows <= 1.0 + _EPSILON)).all())

    def are_values(self, values: Floats) -> bool:
        """Return whether numbers are those of classes."""
        return bool(np.isin(values, np.arange(len(self._classes))).all())

    def label(self, value: float) -> str:
        """Return the class with this number."""
        return self._classes[int(value)]

    def predict(
        self, calibrator: AnyCalibrator, steps: CalibrationSteps, options: dict[str, Any]
    ) -> tuple[Floats, None]:
        """Return probabilities, lower and upper ends."""
        labels = steps.values.astype(np.int64)
        return np.hstack(calibrator.run(steps.kinds, steps.scores, labels, **options)), None

    def step(self, calibrator: AnyCalibrator, one: OneStep) -> Sequence[float]:
        """Run one step, and return probabilities, lower and upper ends of a prediction."""
        kind, score, value, time, number = one
        if kind == EXPIRE and number is not None:
            calibrator.expire_one(number)
            return ()
        scores = dict(zip(self._classes, score, strict=True))
        if kind == PREDICT:
            found = calibrator.predict_one(scores, time, number=number)
            return [each for part in found for each in part.values()]
        calibrator.learn_one(scores, self.label(value), time=time, number=number)
        return ()

    def field_values(self, row: Sequence[float]) -> Sequence[Any]:
        """Return scores, probabilities, lower and upper ends by class."""
        return dicts(self._classes, row)

    def scored_rows(self, rows: Floats, values: Floats) -> ScoredRows:
        """Score the probabilities, and the scores where they are probabilities."""
        labels = values.astype(np.int64)
        score, p, low, high = self._parts(rows)
        raw = {"raw": ClassForecasts(score, labels)} if self.has_raw_view else {}
        widths = (high - low)[np.arange(len(labels)), labels]
        outside = ((p < low) | (p > high)).any(axis=1) if self.mixed else None
        return ScoredRows(values, raw | {"calibrated": ClassForecasts(p, labels)}, widths, outside)

    def e_process(self) -> CalibrationEProcess:
        """Return an e-process against the top class, with verdicts on each class if few."""
        return CalibrationEProcess(
            self.views,
            outcome=self.counted,
            of=self.tested,
            classes=self._verdict_classes,
            multiclass=True,
            **self.testing,
        )

    def bets(self, issued: Floats, scored: ScoredRows) -> tuple[Floats, Floats]:
        """Return the largest probabilities, and whether the labels were of those classes.

        Behind the labels is what `CalibrationEProcess` takes of several classes.
        """
        score, p, *_ = self._parts(issued)
        tables = {"raw": score, "calibrated": p}
        each = bool(self._verdict_classes)
        forecasts = [scored.forecasts[view] for view in self.views]
        found = [one for one in forecasts if isinstance(one, ClassForecasts)]
        bets = class_bets([tables[view] for view in self.views], each=each)
        return bets, class_outcomes(found, each=each)

    def fields(self, rows: Floats) -> dict[str, Column]:
        """Return the columns of scores and predictions."""
        parts = zip(("score", "p", "low", "high"), self._parts(rows), strict=True)
        return {name: by_name(self._classes, part) for name, part in parts}

    def _parts(self, rows: Floats) -> list[Floats]:
        """Return scores, probabilities, lower and upper ends."""
        return np.split(rows, 4, axis=1)
