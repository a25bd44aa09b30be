"""A river classifier of two classes with a Venn-Abers calibrator.

Governing rule: the score is the learner's probability of True, and 1/2 while it knows no label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from river.utils import dataframe

from abers._shown import shown
from abers.calibration import VennAbers, log_merge
from abers.exceptions import LabelError
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

__all__ = ["BinaryClassifier", "VennAbersClassifier", "both", "positive", "positives"]


class BinaryClassifier(CalibratedClassifier):
    """What the wrappers of classifiers of two classes have in common."""

    @property
    def _multiclass(self) -> bool:
        return False

    def _label(self, y: Any) -> bool:  # noqa: ANN401 - checked here
        try:
            return _LABELS[y]
        except (KeyError, TypeError):
            msg = (
                f"label {shown(y)} is not True or False; map the positive class to True and the "
                "other to False, or use VennAbersMultiClassifier"
            )
            raise LabelError(msg) from None


class VennAbersClassifier(BinaryClassifier):
    """Calibrate a binary river classifier while it learns.

    Beside the classifier stands a `VennAbers` calibrator, which learns the scores (the probability
    of True) with which observations were predicted, and answers a score by a pair of
    probabilities.

    At most one of `window`, `max_age` and `half_life` may be given; with none, everything is kept.

    Parameters
    ----------
    classifier
        Any binary classifier, or a pipeline that ends in one. Labels are True and False, or 1 and
        0.
    window
        Keep only the last `window` calibration observations.
    max_age
        Keep only those whose event time, the keyword `time`, is at most `max_age` before the
        newest time seen.
    half_life
        Let the weight of an observation halve every `half_life` of event time.
    max_pending
        How many ids may wait for their label. With one more the oldest is dropped, and counted in
        `dropped`.

    Attributes
    ----------
    unmatched
        Number of labels whose id was not waiting: they taught the classifier alone.
    dropped
        Number of ids that were dropped because more than `max_pending` waited.

    Raises
    ------
    ParameterError
        If an option makes no sense.

    Notes
    -----
    **Guarantee.** None while the classifier learns: the one of `VennAbers` holds for a scorer
    fixed before the calibration data.

    **Labels that come later.** Without an id, `learn_one` scores the features with the classifier
    as it is before it learns them. That is the score of the prediction only if nothing was
    learned in between. With ``predict_proba_one(x, id=…)`` and ``learn_one(x, y, id=…)`` the
    score of the prediction is learned, however late the label.

    **A score that is no number** is refused by a ScoreError, in prediction and in learning.

    **Keywords.** `id` and `time` are for the wrapper; `w` goes to both; others are handed on to
    the classifier where its signature takes them.

    References
    ----------
    Vovk & Petej (2014), Venn-Abers predictors, section 4.

    Examples
    --------
    >>> from abers.learners import VennAbersClassifier
    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> learner = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    >>> model = VennAbersClassifier(learner, window=10_000)
    >>> stream = ((x, y, {"id": i}) for i, (x, y) in enumerate(datasets.Phishing()))
    >>> evaluate.progressive_val_score(stream, model, metrics.LogLoss(), delay=50)
    LogLoss: 0.301309...
    >>> x, _ = next(iter(datasets.Phishing()))
    >>> {label: round(p, 3) for label, p in model.predict_proba_one(x).items()}
    {False: 0.021, True: 0.979}
    >>> [round(end, 3) for end in model.predict_proba_one(x, with_interval=True)[True]]
    [0.979, 1.0]
    """

    def __init__(
        self,
        classifier: Classifier | Pipeline,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        max_pending: int = 100_000,
    ) -> None:
        self.classifier = classifier
        self.window = window
        self.max_age = max_age
        self.half_life = half_life
        self.max_pending = max_pending
        self._start(VennAbers(window, max_age, half_life), max_pending)

    def _score(self, x: Features, given: dict[str, Any]) -> float:
        if given:
            given = self._forwarded("predict_proba_one", given)
        return positive(self.classifier.predict_proba_one(x, **given))

    def _probabilities(self, scores: float, time: float | None) -> Probabilities:
        p = self._calibrator.predict_one(scores, time).log
        return {False: 1.0 - p, True: p}

    def _intervals(self, scores: float, time: float | None) -> Intervals:
        return both(*self._calibrator.predict_one(scores, time))

    def _score_many(self, X: Any, given: dict[str, Any]) -> NDArray[Any]:  # noqa: ANN401, N803
        return positives(
            self.classifier.predict_proba_many(X, **self._forwarded("predict_proba_many", given)), X
        )

    def _probabilities_many(
        self, scores: NDArray[Any], times: NDArray[Any] | None
    ) -> dict[Target, NDArray[Any]]:
        p = log_merge(*self._calibrator.predict_many(scores, times=times))
        return {False: 1.0 - p, True: p}

    def _learn_many(self, batch: Batch, given: dict[str, Any]) -> None:
        labels = dataframe.into_series(batch.y).to_numpy()
        told = {"weights": batch.weights, "times": batch.times}
        self._calibrator.learn_many(batch.scores, labels, **told)
        self.classifier.learn_many(batch.X, batch.y, **given)


_LABELS = {False: False, True: True}  # 0, 1, 1.0 and numpy's truth values are equal and hash alike


def positive(probabilities: Probabilities) -> float:
    """Probability of True: 0 if other labels alone are known, 1/2 if none is."""
    return probabilities.get(True, 0.0) if probabilities else 0.5


def positives(probabilities: Any, like: Any) -> NDArray[Any]:  # noqa: ANN401 - dataframes
    """Probability of True in each row: its column is True, or "True" where names are strings."""
    frame = dataframe.into_frame(probabilities)
    columns = [str(name) for name in frame.columns]
    if not columns:
        return np.full(len(dataframe.into_frame(like)), 0.5)
    if "True" not in columns:
        return np.zeros(len(frame))
    return dataframe.to_numpy(frame)[:, columns.index("True")]


def both(low: float, high: float) -> Intervals:
    """Intervals of both labels from that of True."""
    return {False: (1.0 - high, 1.0 - low), True: (low, high)}
