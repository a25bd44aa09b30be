"""K clones of a river classifier, each trained without its fold, with a calibrator for each.

Governing rule: all K scores are made when an observation is predicted; its label goes to the
calibrator of its fold and to the K - 1 classifiers of the other folds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from river.utils import dataframe

from abers.calibration import CrossVennAbers, cross_log_merge
from abers.learners.classifier import BinaryClassifier, both, positive, positives

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray
    from river.base import Classifier
    from river.compose import Pipeline

    from abers.learners._calibrated import Features
    from abers.learners._classifying import Batch, Intervals, Probabilities, Target
    from abers.learners._pending import Waiting

__all__ = ["CrossVennAbersClassifier"]


class CrossVennAbersClassifier(BinaryClassifier):
    """Calibrate a binary river classifier on all labels, by K clones each trained without its fold.

    An observation belongs to one of K folds. Each of K clones of the classifier scores it. Its
    label is learned by the calibrator of its fold, with the score of that fold's clone, and by the
    K - 1 other clones: so every label serves training and calibration, and no calibrator sees a
    score of a clone that has learned the label.

    At most one of `window`, `max_age` and `half_life` may be given; with none, everything is kept.

    Parameters
    ----------
    classifier
        Any binary classifier, or a pipeline that ends in one. It is cloned, and itself never
        trained. Labels are True and False, or 1 and 0.
    folds
        Number K of folds, at least 2.
    window
        Keep only the last `window` calibration observations of each fold.
    max_age, half_life
        As `VennAbersClassifier` has them.
    max_pending
        How many ids may wait for their label. With one more the oldest is dropped, and counted in
        `dropped`.

    Attributes
    ----------
    learners
        The K clones.
    unmatched, dropped
        As `VennAbersClassifier` has them.

    Raises
    ------
    ParameterError
        If an option makes no sense.

    Notes
    -----
    **Guarantee.** None (see `abers.CrossVennAbers`), and the clones keep learning.

    **Folds.** The id decides the fold, by a hash that is the same everywhere; ids are strings or
    whole numbers. Labels without an id go around the folds in turn.

    **Labels that come later**, scores that are no numbers, and keywords are as in
    `VennAbersClassifier`.

    References
    ----------
    Vovk, Petej & Fedorova (2015), Large-scale probabilistic predictors with and without
    guarantees of validity, section 4.

    Examples
    --------
    >>> from abers.learners import CrossVennAbersClassifier
    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> learner = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    >>> model = CrossVennAbersClassifier(learner, folds=3)
    >>> stream = ((x, y, {"id": i}) for i, (x, y) in enumerate(datasets.Phishing()))
    >>> evaluate.progressive_val_score(stream, model, metrics.LogLoss(), delay=50)
    LogLoss: 0.303728...
    """

    def __init__(  # noqa: PLR0913, PLR0917 - an option each, in the order of `CrossVennAbers`
        self,
        classifier: Classifier | Pipeline,
        folds: int = 5,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        max_pending: int = 100_000,
    ) -> None:
        self.classifier = classifier
        self.folds = folds
        self.window = window
        self.max_age = max_age
        self.half_life = half_life
        self.max_pending = max_pending
        self._start(CrossVennAbers(folds, window, max_age, half_life), max_pending)
        self.learners: list[Any] = [classifier.clone() for _ in range(folds)]

    def _score(self, x: Features, given: dict[str, Any]) -> list[float]:
        if given:
            given = self._forwarded("predict_proba_one", given)
        return [positive(learner.predict_proba_one(x, **given)) for learner in self.learners]

    def _probabilities(self, scores: list[float], time: float | None) -> Probabilities:
        p = self._calibrator.predict_one(scores, time).log
        return {False: 1.0 - p, True: p}

    def _intervals(self, scores: list[float], time: float | None) -> Intervals:
        interval = self._calibrator.predict_one(scores, time)
        return both(interval.low, interval.high)

    def _observe(self, x: Features, id_: Hashable | None, *rest: Any) -> Any:  # noqa: ANN401 - theirs
        self._calibrator.fold_of(id_)  # refuses an id that has no fold before it waits
        return super()._observe(x, id_, *rest)

    def _learn(  # noqa: PLR0913, PLR0917 - as it is inherited
        self,
        x: Features,
        y: bool,  # noqa: FBT001 - a label
        waiting: Waiting | None,
        id_: Hashable | None,
        weight: float,
        given: dict[str, Any],
    ) -> None:
        fold = self._calibrator.fold_of(id_)
        if waiting is not None:
            scores, time = waiting
            self._calibrator.learn_one(scores, y, fold=fold, weight=weight, time=time)
        for k, learner in enumerate(self.learners):
            if k != fold:
                learner.learn_one(x, y, **given)

    def _score_many(self, X: Any, given: dict[str, Any]) -> NDArray[Any]:  # noqa: ANN401, N803
        given = self._forwarded("predict_proba_many", given)
        columns = [
            positives(learner.predict_proba_many(X, **given), X) for learner in self.learners
        ]
        return np.column_stack(columns)

    def _probabilities_many(
        self, scores: NDArray[Any], times: NDArray[Any] | None
    ) -> dict[Target, NDArray[Any]]:
        p = cross_log_merge(*self._calibrator.predict_many(scores, times=times))
        return {False: 1.0 - p, True: p}

    def _learn_many(self, batch: Batch, given: dict[str, Any]) -> None:
        X, y = dataframe.into_frame(batch.X), dataframe.into_series(batch.y)  # noqa: N806
        folds = (self._calibrator.fold_of() + np.arange(len(X))) % self.folds
        told = {"folds": folds, "weights": batch.weights, "times": batch.times}
        self._calibrator.learn_many(batch.scores, y.to_numpy(), **told)
        for k, learner in enumerate(self.learners):
            rows = np.flatnonzero(folds != k).tolist()
            if rows:
                mine = {name: _rows(value, rows) for name, value in given.items()}
                learner.learn_many(X[rows].to_native(), y[rows].to_native(), **mine)


def _rows(given: Any, rows: list[int]) -> Any:  # noqa: ANN401 - a value for all rows, or one a row
    """Take rows of a series, or the value that stands for all."""
    return given if np.ndim(given) == 0 else dataframe.into_series(given)[rows].to_native()
