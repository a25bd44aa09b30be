"""A wrapper that calibrates a river classifier of several classes.

The scores of an observation are the classifier's probabilities by class. A class that the
classifier does not name has score 0. The wrapper knows a class after its first score or label.

A protected calibrator of classes that become known as they come. `ProtectedMultiClass` needs its
classes. Here a class is known from its first score or label on, as river's classifiers have it. The
calibrator exists from the second class on.
"""

from __future__ import annotations

import copy
import math
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from river.utils import dataframe

from abers.calibration import ProtectedMultiClass
from abers.calibration._classes import Classes, mapping
from abers.calibration.intervals import MultiInterval
from abers.exceptions import LabelError
from abers.river._classifier_wrapper import (
    CalibratedClassifier,
    Intervals,
    MiniBatch,
    Probabilities,
    Target,
)
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from river.base import Classifier
    from river.compose import Pipeline

    from abers.base import Calibrator
    from abers.calibration._classes import Label
    from abers.mathematics import Capabilities

    Scores = Mapping[Label, float]

__all__ = ["OpenClasses", "VennAbersMultiClassifier"]

_FEWEST = 2  # classes that make a choice


class OpenClasses:
    """A `ProtectedMultiClass` that grows; a prediction without a number changes nothing.

    Scores are divided by their sum, and are equal if all are 0.

    Parameters
    ----------
    window, max_age, half_life, max_classes
        As in `ProtectedMultiClass`.

    Attributes
    ----------
    protected
        The calibrator; None before the second class.
    """

    capabilities: ClassVar[Capabilities] = ProtectedMultiClass.capabilities

    def __init__(
        self,
        window: int | None,
        max_age: float | None,
        half_life: float | None,
        max_classes: int,
    ) -> None:
        self._classes = Classes(None, max_classes)
        self._rule = (window, max_age, half_life)
        self.protected: ProtectedMultiClass | None = None
        self._made([0, 1])  # refuses options that make no sense

    def predict_one(
        self,
        scores: Scores,
        time: float | None = None,
        weight: float = 1.0,
        *,
        number: int | None = None,
    ) -> MultiInterval:
        """Predict for the scores of one observation, as `ProtectedMultiClass` does."""
        checked = mapping(scores, 0.0)
        new = self._classes.unknown(checked)
        labels, calibrator = [*self._classes.labels, *new], self._grown(new)
        if calibrator is None:  # there is nothing to choose from
            self._made([0, 1]).predict_one({0: 1.0}, time, weight)
            found = MultiInterval(*(dict.fromkeys(labels, end) for end in (1.0, 0.0, 1.0)))
        else:
            found = calibrator.predict_one(_shares(checked, labels), time, weight, number=number)
        if number is not None:
            self._classes.add(new)
            self.protected = calibrator
        return found

    def learn_one(
        self,
        scores: Scores,
        label: Label,
        *,
        weight: float = 1.0,
        time: float | None = None,
        number: int | None = None,
    ) -> None:
        """Learn one labelled observation; nothing but its class before the second class."""
        checked = mapping(scores, 0.0)
        new = self._classes.unknown([*checked, label])
        labels, calibrator = [*self._classes.labels, *new], self._grown(new)
        if calibrator is None:
            self._made([0, 1]).learn_one({0: 1.0}, 0, weight=weight, time=time)
        else:
            shares = _shares(checked, labels)
            calibrator.learn_one(shares, label, weight=weight, time=time, number=number)
        self._classes.add(new)
        self.protected = calibrator

    def expire_one(self, number: int) -> None:
        """Stop waiting for the label of an observation."""
        if self.protected is not None:
            self.protected.expire_one(number)

    def _grown(self, new: list[Label]) -> ProtectedMultiClass | None:
        """Return the calibrator with new classes too; if there are any, a copy."""
        if not new:
            return self.protected
        if self.protected is None:
            labels = [*self._classes.labels, *new]
            return self._made(labels) if len(labels) >= _FEWEST else None
        grown = copy.copy(self.protected)
        for label in new:
            grown.add_class(label)
        return grown

    def _made(self, labels: list[Label]) -> ProtectedMultiClass:
        return ProtectedMultiClass(labels, *self._rule, max_classes=self._classes.most)


def _shares(scores: Scores, labels: list[Label]) -> Scores:
    """Divide scores by their sum; a model that says nothing finds all labels alike."""
    largest = max(scores.values(), default=0.0)
    if largest == 0.0:
        return dict.fromkeys(labels, 1.0 / len(labels))
    parts = {label: score / largest for label, score in scores.items()}  # no sum is infinite
    total = math.fsum(parts.values())
    return {label: part / total for label, part in parts.items()}


_Row: TypeAlias = tuple[Probabilities, Target, Any, Any]  # scores, label, weight and time


class VennAbersMultiClassifier(CalibratedClassifier):
    """Calibrate a river classifier of several classes while it learns.

    The classifier's probabilities of all classes go through a `ProtectedMultiClass` calibrator,
    which predicts protected probabilities, and an interval for each class.

    Parameters
    ----------
    classifier
        Any classifier, or a pipeline that ends in one.
    window, max_age, half_life, max_pending
        As in `VennAbersClassifier`; a window counts labels of all classes.
    max_classes
        The largest number of classes; memory and time grow with that of the classes.
    calibrator
        Another calibrator of several classes, such as ``OneVsRest()`` or ``OneVsOne()``, which then
        predicts its merged probabilities. It learns in place, and has its own rule of forgetting
        and number of classes.

    Attributes
    ----------
    calibrator
        The calibrator that learns; by default None before the second class.
    unmatched, dropped
        As in `VennAbersClassifier`.

    Raises
    ------
    ParameterError
        If `classifier` is not a river classifier, or another option is invalid.

    Notes
    -----
    **Guarantee.** With ids, and from the second class on, that of `VennAbersClassifier`: against
    the classifier's own probabilities, divided by their sum and then clipped, as in
    `ProtectedMultiClass`. Other calibrators have none.

    **Labels** are strings, integers or booleans. The wrapper knows a class after its first score
    or label, and every later prediction has it. Before the first label there are no classes and
    predictions are empty, as in river. When a class becomes known, the guarantee no longer covers
    the observations that await their labels: their probabilities lack the class. Before the second
    class, labels teach the calibrator nothing.

    **Intervals** are not normalised. Probabilities are divided by their sum, so one may lie outside
    its interval.

    **Delayed labels**, invalid scores and keywords are as in `VennAbersClassifier`.

    References
    ----------
    Manokhin (2017), Multi-class probabilistic classification using inductive and cross Venn-Abers
    predictors.

    Examples
    --------
    >>> from abers.river import VennAbersMultiClassifier
    >>> from river import datasets, evaluate, metrics, naive_bayes
    >>> model = VennAbersMultiClassifier(naive_bayes.GaussianNB())
    >>> stream = datasets.ImageSegments().take(500)
    >>> evaluate.progressive_val_score(stream, model, metrics.Accuracy())
    Accuracy: 67.33%
    >>> x, y = next(iter(datasets.ImageSegments()))
    >>> y, [round(end, 2) for end in model.predict_proba_one(x, with_interval=True)[y]]
    ('path', [0.21, 0.28])
    """

    _kind = "a calibrator of several classes, such as OneVsRest()"

    def __init__(  # noqa: PLR0913, PLR0917 - an option each, in the order of `OneVsRest`
        self,
        classifier: Classifier | Pipeline,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        max_classes: int = 100,
        max_pending: int = 100_000,
        calibrator: Calibrator[Any, Any, Any, Any] | None = None,
    ) -> None:
        self.classifier = classifier
        self.window, self.max_age, self.half_life = window, max_age, half_life
        self.max_classes = max_classes
        self.max_pending = max_pending
        self._choose(calibrator, lambda: OpenClasses(window, max_age, half_life, max_classes))

    @staticmethod
    def _fits(able: Capabilities) -> bool:
        return able.task == "multiclass"

    @property
    def calibrator(self) -> Any:  # noqa: ANN401 - of the class that was given
        """The calibrator that learns; by default None before the second class."""
        own = self._calibrator
        return own.protected if isinstance(own, OpenClasses) else own

    @property
    def _multiclass(self) -> bool:
        return True

    @classmethod
    def _unit_test_params(cls) -> Any:  # noqa: ANN401 - an iterator of parameters
        from river import linear_model, multiclass, preprocessing, tree  # noqa: PLC0415 - for river's tests

        from abers.calibration import OneVsOne  # noqa: PLC0415 - likewise

        multiclass_model = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
        yield {"classifier": preprocessing.StandardScaler() | multiclass_model}
        yield {"classifier": tree.HoeffdingTreeClassifier(), "calibrator": OneVsOne()}

    def _label(self, y: Any) -> Target:  # noqa: ANN401 - checked here
        label = y.item() if isinstance(y, np.generic) else y
        if not isinstance(label, str | int):
            msg = f"label {shown(y)} is not a string, an integer or a boolean"
            raise LabelError(msg)
        return label

    def _probabilities(
        self, scores: Probabilities, time: float | None, number: int | None
    ) -> Probabilities:
        found: Probabilities = self._calibrator.predict_one(scores, time, number=number).p
        return found

    def _intervals(
        self, scores: Probabilities, time: float | None, number: int | None
    ) -> Intervals:
        _, low, high = self._calibrator.predict_one(scores, time, number=number)
        return {label: (low[label], high[label]) for label in low}

    def _score_many(self, X: Any, keywords: dict[str, Any]) -> list[Probabilities]:  # noqa: ANN401, N803
        frame = dataframe.into_frame(self._ask_many(self.classifier, X, keywords))
        # A classifier that has seen no class returns a frame without columns, and so without rows.
        rows = dataframe.to_numpy(frame).tolist() or [()] * len(dataframe.into_frame(X))
        return [dict(zip(frame.columns, row, strict=True)) for row in rows]

    def _probabilities_many(
        self, scores: list[Probabilities], times: NDArray[Any] | None
    ) -> dict[Target, NDArray[Any]]:
        times_or_none = _column_or_default(times, len(scores), None)
        rows = [self._probabilities(*row, None) for row in zip(scores, times_or_none, strict=True)]
        first = rows[0] if rows else {}  # An empty batch has no labels.
        return {label: np.array([row[label] for row in rows]) for label in first}

    def _learn_many(self, batch: MiniBatch, keywords: dict[str, Any]) -> None:
        labels = [self._label(y) for y in dataframe.into_series(batch.y).to_list()]
        n = len(labels)
        weights = _column_or_default(batch.weights, n, 1.0)
        times = _column_or_default(batch.times, n, None)
        rows = [*zip(batch.scores, labels, weights, times, strict=True)]
        self._require_valid(rows)
        for scores, label, weight, time in rows:
            self._calibrator.learn_one(scores, label, weight=weight, time=time)
        self.classifier.learn_many(batch.X, batch.y, **keywords)

    def _require_valid(self, rows: list[_Row]) -> None:
        """Raise if the batch has too many classes, or a row an invalid score, weight or time.

        A prediction makes the same checks as learning, and changes nothing.
        """
        classes = chain((row[1] for row in rows), *(row[0] for row in rows))
        self._calibrator.predict_one(dict.fromkeys(classes, 0.0))
        for scores, _, weight, time in rows:
            self._calibrator.predict_one(scores, time, weight)


def _column_or_default(column: NDArray[Any] | None, n: int, default: float | None) -> list[Any]:
    """Return the values of a column, or n times the default."""
    return [default] * n if column is None else column.tolist()
