"""A river classifier of several classes with a calibrator of their scores.

Governing rule: the scores of an observation are the classifier's probabilities by class; what it
does not name has score 0, and classes are known from their first score or label on.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from river.utils import dataframe

from abers._shown import shown
from abers.calibration import OneVsOne, OneVsRest
from abers.exceptions import LabelError, ParameterError
from abers.learners._classifying import (
    Batch,
    CalibratedClassifier,
    Intervals,
    Probabilities,
    Target,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from river.base import Classifier
    from river.compose import Pipeline

    from abers.learners._calibrated import Features

__all__ = ["VennAbersMultiClassifier"]

_STRATEGIES = {"one-vs-rest": OneVsRest, "one-vs-one": OneVsOne}


class VennAbersMultiClassifier(CalibratedClassifier):
    """Calibrate a river classifier of several classes while it learns.

    Beside the classifier stands a calibrator of the scores of all classes, `OneVsRest` or
    `OneVsOne`.

    At most one of `window`, `max_age` and `half_life` may be given; with none, everything is kept.

    Parameters
    ----------
    classifier
        Any classifier, or a pipeline that ends in one.
    strategy
        "one-vs-rest" or "one-vs-one".
    window
        Keep only the last `window` calibration observations, whatever their classes.
    max_age, half_life
        As `VennAbersClassifier` has them.
    max_classes
        The greatest number of classes; memory and time grow with the number known.
    max_pending
        How many ids may wait for their label. With one more the oldest is dropped, and counted in
        `dropped`.

    Attributes
    ----------
    unmatched, dropped
        As `VennAbersClassifier` has them.

    Raises
    ------
    ParameterError
        If an option makes no sense.

    Notes
    -----
    **Guarantee.** None: the classifier keeps learning, and a vector of probabilities has none in
    any case (see `abers.OneVsRest` and `abers.OneVsOne`).

    **Labels** are strings, whole numbers or truth values. A class keeps its place in the answers
    for ever once it was scored or learned; before the first label there are no classes, and
    predictions are empty, as river has it.

    **Intervals** are those before the probabilities are divided by their sum, so a probability may
    lie outside its own.

    **Labels that come later**, scores that are no numbers, and keywords are as in
    `VennAbersClassifier`.

    References
    ----------
    Manokhin (2017), Multi-class probabilistic classification using inductive and cross Venn-Abers
    predictors.

    Examples
    --------
    >>> from abers.learners import VennAbersMultiClassifier
    >>> from river import datasets, evaluate, metrics, naive_bayes
    >>> model = VennAbersMultiClassifier(naive_bayes.GaussianNB())
    >>> stream = datasets.ImageSegments().take(500)
    >>> evaluate.progressive_val_score(stream, model, metrics.Accuracy())
    Accuracy: 67.74%
    >>> x, y = next(iter(datasets.ImageSegments()))
    >>> y, [round(end, 2) for end in model.predict_proba_one(x, with_interval=True)[y]]
    ('path', [0.21, 0.28])
    """

    def __init__(  # noqa: PLR0913, PLR0917 - an option each, in the order of `OneVsRest`
        self,
        classifier: Classifier | Pipeline,
        strategy: str = "one-vs-rest",
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        max_classes: int = 100,
        max_pending: int = 100_000,
    ) -> None:
        if strategy not in _STRATEGIES:
            msg = f"strategy={shown(strategy)} is unknown; there are {' and '.join(_STRATEGIES)}"
            raise ParameterError(msg)
        self.classifier = classifier
        self.strategy = strategy
        self.window = window
        self.max_age = max_age
        self.half_life = half_life
        self.max_classes = max_classes
        self.max_pending = max_pending
        make = _STRATEGIES[strategy]
        self._start(make(None, window, max_age, half_life, max_classes=max_classes), max_pending)

    @property
    def _multiclass(self) -> bool:
        return True

    @classmethod
    def _unit_test_params(cls) -> Any:  # noqa: ANN401 - an iterator of parameters
        from river import linear_model, multiclass, preprocessing, tree  # noqa: PLC0415 - for river's tests

        several = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
        yield {"classifier": preprocessing.StandardScaler() | several}
        yield {"classifier": tree.HoeffdingTreeClassifier(), "strategy": "one-vs-one"}

    def _label(self, y: Any) -> Target:  # noqa: ANN401 - checked here
        label = y.item() if isinstance(y, np.generic) else y
        if not isinstance(label, str | int):
            msg = f"label {shown(y)} is no string, whole number or truth value"
            raise LabelError(msg)
        return label

    def _score(self, x: Features, given: dict[str, Any]) -> Probabilities:
        given = self._forwarded("predict_proba_one", given)
        found: Probabilities = self.classifier.predict_proba_one(x, **given)
        return found

    def _probabilities(self, scores: Probabilities, time: float | None) -> Probabilities:
        found: Probabilities = self._calibrator.predict_one(scores, time).p
        return found

    def _intervals(self, scores: Probabilities, time: float | None) -> Intervals:
        _, low, high = self._calibrator.predict_one(scores, time)
        return {label: (low[label], high[label]) for label in low}

    def _score_many(self, X: Any, given: dict[str, Any]) -> list[Probabilities]:  # noqa: ANN401, N803
        given = self._forwarded("predict_proba_many", given)
        found = dataframe.into_frame(self.classifier.predict_proba_many(X, **given))
        rows = dataframe.to_numpy(found).tolist() or [()] * len(dataframe.into_frame(X))
        return [dict(zip(found.columns, row, strict=True)) for row in rows]

    def _probabilities_many(
        self, scores: list[Probabilities], times: NDArray[Any] | None
    ) -> dict[Target, NDArray[Any]]:
        when = _each(times, len(scores), None)
        rows = [self._probabilities(*row) for row in zip(scores, when, strict=True)]
        return {label: np.array([row[label] for row in rows]) for label in (rows or [{}])[0]}

    def _learn_many(self, batch: Batch, given: dict[str, Any]) -> None:
        labels = [self._label(y) for y in dataframe.into_series(batch.y).to_list()]
        n = len(labels)
        weights, times = _each(batch.weights, n, 1.0), _each(batch.times, n, None)
        rows = [*zip(batch.scores, labels, weights, times, strict=True)]
        # What cannot be used is refused by a prediction, before the first row is learned.
        self._calibrator.predict_one(dict.fromkeys(chain(labels, *batch.scores), 0.0))
        for scores, _, weight, time in rows:
            self._calibrator.predict_one(scores, time, weight)
        for scores, label, weight, time in rows:
            self._calibrator.learn_one(scores, label, weight=weight, time=time)
        self.classifier.learn_many(batch.X, batch.y, **given)


def _each(column: NDArray[Any] | None, n: int, default: float | None) -> list[Any]:
    """One a row, or the default."""
    return [default] * n if column is None else column.tolist()
