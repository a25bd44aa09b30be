"""A wrapper that calibrates K clones of a river classifier, each trained without its fold.

All K clones score an observation when it is predicted. Its label goes to the calibrator of its
fold, and to the K - 1 clones of the other folds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from river.utils import dataframe

from abers.calibration import ProtectedCrossVennAbers
from abers.exceptions import ParameterError
from abers.river.classifier import BinaryClassifier, both, positive, positives

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray
    from river.base import Classifier
    from river.compose import Pipeline

    from abers.base import Calibrator
    from abers.mathematics import Capabilities
    from abers.river._classifier_wrapper import Intervals, MiniBatch
    from abers.river._wrapper import Features, PendingScore

__all__ = ["CrossVennAbersClassifier"]


class CrossVennAbersClassifier(BinaryClassifier):
    """Calibrate a binary river classifier on all labels, with K clones trained on the other folds.

    Each observation belongs to one of K folds, and each of K clones of the classifier scores it.
    The calibrator of its fold learns its label with the score of that fold's clone, and the K - 1
    other clones learn its features and label. So every label serves training and calibration, and
    no calibrator sees a score of a clone that has learned the label. The calibrator is a
    `ProtectedCrossVennAbers`: it predicts a protected probability.

    Parameters
    ----------
    classifier
        Any binary classifier, or a pipeline that ends in one. Only its clones are trained. Labels
        are True and False, or 1 and 0.
    folds
        Number K of folds, at least 2.
    window
        Keep only the last `window` calibration observations of each fold.
    max_age, half_life, max_pending
        As in `VennAbersClassifier`.
    calibrator
        Another calibrator of `folds` folds, such as ``CrossVennAbers(5)``, which then predicts its
        merged probability.

    Attributes
    ----------
    calibrator
        As in `VennAbersClassifier`.
    learners
        The K clones.
    unmatched, dropped
        As in `VennAbersClassifier`.

    Raises
    ------
    ParameterError
        If `classifier` is no river classifier of two classes, there are fewer than 2 folds, or
        another option is invalid.

    Notes
    -----
    **Guarantee.** That of `VennAbersClassifier`, against the median of the probabilities of the K
    clones (see `ProtectedCrossVennAbers`). The interval has none.

    **Folds.** The id decides the fold, by a hash that is the same on every machine; ids are
    strings or integers. Labels without an id go to the folds in turn.

    **Delayed labels**, invalid scores and keywords are as in `VennAbersClassifier`.

    Examples
    --------
    >>> from abers.river import CrossVennAbersClassifier
    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> learner = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    >>> model = CrossVennAbersClassifier(learner, folds=3)
    >>> stream = ((x, y, {"id": i}) for i, (x, y) in enumerate(datasets.Phishing()))
    >>> evaluate.progressive_val_score(stream, model, metrics.LogLoss(), delay=50)
    LogLoss: 0.319610...
    """

    _kind = "a calibrator of K folds, such as CrossVennAbers()"

    def __init__(  # noqa: PLR0913, PLR0917 - an option each, in the order of `CrossVennAbers`
        self,
        classifier: Classifier | Pipeline,
        folds: int = 5,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        max_pending: int = 100_000,
        calibrator: Calibrator[Any, int, Any, Any] | None = None,
    ) -> None:
        self.classifier = classifier
        self.folds = folds
        self.window, self.max_age, self.half_life = window, max_age, half_life
        self.max_pending = max_pending
        self._choose(calibrator, lambda: ProtectedCrossVennAbers(folds, window, max_age, half_life))
        if self._calibrator.folds != folds:
            msg = f"calibrator has {self._calibrator.folds} folds; set folds to that"
            raise ParameterError(msg)
        self.learners: list[Any] = [classifier.clone() for _ in range(folds)]

    @staticmethod
    def _fits(able: Capabilities) -> bool:
        return able.task == "binary" and able.score == "folds"

    def _score(self, x: Features, keywords: dict[str, Any]) -> list[float]:
        keywords = self._forwarded.accepted("predict_proba_one", keywords)
        return [positive(learner.predict_proba_one(x, **keywords)) for learner in self.learners]

    def _intervals(self, scores: list[float], time: float | None, number: int | None) -> Intervals:
        interval = self._calibrator.predict_one(scores, time, number=number)
        if self._stateful:
            return both(interval.p0, interval.p1)
        return both(interval.low, interval.high)

    def _observe(self, x: Features, id_: Hashable | None, *rest: Any) -> Any:  # noqa: ANN401 - theirs
        self._calibrator.fold_of(id_)  # raises for an id that has no fold, before it is stored
        return super()._observe(x, id_, *rest)

    def _learn(  # noqa: PLR0913, PLR0917 - as it is inherited
        self,
        x: Features,
        y: bool,  # noqa: FBT001 - a label
        waiting: PendingScore | None,
        id_: Hashable | None,
        weight: float,
        keywords: dict[str, Any],
    ) -> None:
        """Let the calibrator of the fold learn, and then the clones of all other folds."""
        fold = self._calibrator.fold_of(id_)
        if waiting is not None:
            scores, time, number = waiting
            options = {"weight": weight, "time": time, "number": number}
            self._calibrator.learn_one(scores, y, fold=fold, **options)
        for k, learner in enumerate(self.learners):
            if k != fold:
                learner.learn_one(x, y, **keywords)

    def _score_many(self, X: Any, keywords: dict[str, Any]) -> NDArray[Any]:  # noqa: ANN401, N803
        return np.column_stack(
            [positives(self._ask_many(learner, X, keywords), X) for learner in self.learners]
        )

    def _learn_many(self, batch: MiniBatch, keywords: dict[str, Any]) -> None:
        X, y = dataframe.into_frame(batch.X), dataframe.into_series(batch.y)  # noqa: N806
        folds = (self._calibrator.fold_of() + np.arange(len(X))) % self.folds
        options = {"folds": folds, "weights": batch.weights, "times": batch.times}
        self._calibrator.learn_many(batch.scores, y.to_numpy(), **options)
        for k, learner in enumerate(self.learners):
            rows = np.flatnonzero(folds != k).tolist()
            if rows:
                mine = {name: _rows(value, rows) for name, value in keywords.items()}
                learner.learn_many(X[rows].to_native(), y[rows].to_native(), **mine)


def _rows(value: Any, rows: list[int]) -> Any:  # noqa: ANN401 - a value or a column
    """Return rows of a series, or the one value for all rows."""
    return value if np.ndim(value) == 0 else dataframe.into_series(value)[rows].to_native()
