"""A wrapper that calibrates a binary river classifier.

The score is the classifier's probability of True, or 1/2 before its first label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from river.utils import dataframe

from abers.calibration import ProtectedVennAbers
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
    from numpy.typing import NDArray
    from river.base import Classifier
    from river.compose import Pipeline

    from abers.base import Calibrator
    from abers.mathematics import Capabilities
    from abers.river._wrapper import Features

    BinaryCalibrator: TypeAlias = Calibrator[float, int, Any, Any]

__all__ = ["BinaryClassifier", "VennAbersClassifier", "both", "positive", "positives"]


class BinaryClassifier(CalibratedClassifier):
    """Base class of the wrappers of binary classifiers."""

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

    def _probabilities(
        self,
        scores: Any,  # noqa: ANN401 - one or one a fold
        time: float | None,
        number: int | None,
    ) -> Probabilities:
        p = self._served(self._calibrator.predict_one(scores, time, number=number))
        return {False: 1.0 - p, True: p}

    def _probabilities_many(
        self, scores: NDArray[Any], times: NDArray[Any] | None
    ) -> dict[Target, NDArray[Any]]:
        p = self._served(self._calibrator.predict_many(scores, times=times))
        return {False: 1.0 - p, True: p}

    def _served(self, prediction: Any) -> Any:  # noqa: ANN401 - of one observation or many
        """Return the probability of True of a prediction."""
        name = _PROBABILITIES.get(self._calibrator.capabilities.answer)
        return prediction if name is None else getattr(prediction, name)


class VennAbersClassifier(BinaryClassifier):
    """Calibrate a binary river classifier while it learns.

    The classifier's scores (the probability of True) go through a `ProtectedVennAbers` calibrator.
    It learns the scores of past predictions with their labels, and maps a new score to a protected
    probability and a Venn-Abers interval. If labels come late, pass the same `id` to the
    prediction and to `learn_one`.

    Parameters
    ----------
    classifier
        Any binary river classifier, or a pipeline that ends in one. Labels are True or False.
    window, max_age, half_life
        How the calibrator forgets, as in `VennAbers`; the keyword `time` is the event time. At
        most one may be set.
    max_pending
        The largest number of pending ids. One more drops the oldest, and `dropped` counts it.
    calibrator
        Another binary calibrator, such as ``VennAbers(window=10_000)``, which then predicts its
        merged probability. It learns in place, as `classifier` does, and has its own rule of
        forgetting.

    Attributes
    ----------
    calibrator
        The calibrator that learns. If it is protected it has `price`, `expert_weights` and
        `expert_losses`.
    unmatched, dropped
        Numbers of labels without a pending score of their id, which only the model learned, and of
        ids that were dropped because more than `max_pending` were pending.

    Raises
    ------
    ParameterError
        If `classifier` is not a river classifier, or another option is invalid.

    Warns
    -----
    MissingIdWarning
        Once, if a label without an id is for an earlier prediction than the last.

    Notes
    -----
    **Guarantee.** With ids, the log loss of the probability exceeds that of the classifier's own,
    clipped to [1e-6, 1 - 1e-6], by at most `calibrator.price` in total (see `ProtectedVennAbers`),
    over the labels that came while their ids were pending. This holds on any stream, with any
    delays and lost labels, and while the classifier learns. The interval has no guarantee while the
    classifier learns: that of `VennAbers` holds for a scorer that is fixed before the calibration
    data.

    **Delayed labels.** With ``predict_proba_one(x, id=…)`` and ``learn_one(x, y, id=…)`` the
    calibrator learns the score of the prediction, however late the label arrives; `expire_one(id)`
    says that it will not arrive. Without an id a prediction changes nothing, and `learn_one` scores
    the features with the classifier as it is before it learns them, predicts, and learns the label
    at once. The guarantee then holds only if each label comes before the next prediction;
    otherwise these are not the predictions that were served. So pass ids to
    `evaluate.progressive_val_score` with a delay, as below. Mini-batches have no ids, and no
    guarantee.

    **Invalid scores.** A score that is not a probability raises a ScoreError, in prediction and in
    learning; with another calibrator, a score that is not a finite number.

    **Keywords.** `id` and `time` are for the wrapper; `w` goes to both; others are passed to the
    classifier where its signature takes them, and one that it never takes is a ParameterError.

    Examples
    --------
    >>> from abers.river import VennAbersClassifier
    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> learner = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    >>> model = VennAbersClassifier(learner)
    >>> stream = ((x, y, {"id": i}) for i, (x, y) in enumerate(datasets.Phishing()))
    >>> evaluate.progressive_val_score(stream, model, metrics.LogLoss(), delay=50)
    LogLoss: 0.307667...
    >>> x, _ = next(iter(datasets.Phishing()))
    >>> {label: round(p, 3) for label, p in model.predict_proba_one(x).items()}
    {False: 0.008, True: 0.992}
    >>> [round(end, 3) for end in model.predict_proba_one(x, with_interval=True)[True]]
    [0.979, 1.0]
    """

    _kind = "a calibrator of one score and two labels, such as VennAbers()"

    def __init__(  # noqa: PLR0913, PLR0917 - an option each, in the order of `VennAbers`
        self,
        classifier: Classifier | Pipeline,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        max_pending: int = 100_000,
        calibrator: BinaryCalibrator | None = None,
    ) -> None:
        self.classifier = classifier
        self.window, self.max_age, self.half_life = window, max_age, half_life
        self.max_pending = max_pending
        self._choose(calibrator, lambda: ProtectedVennAbers(window, max_age, half_life))

    @staticmethod
    def _fits(able: Capabilities) -> bool:
        return able.task == "binary" and able.score in {"number", "probability"}

    def _score(self, x: Features, keywords: dict[str, Any]) -> float:
        return positive(super()._score(x, keywords))

    def _intervals(self, scores: float, time: float | None, number: int | None) -> Intervals:
        prediction = self._calibrator.predict_one(scores, time, number=number)
        if self._calibrator.capabilities.answer == "probability":
            return both(prediction, prediction)
        return both(prediction.p0, prediction.p1)

    def _score_many(self, X: Any, keywords: dict[str, Any]) -> NDArray[Any]:  # noqa: ANN401, N803
        return positives(self._ask_many(self.classifier, X, keywords), X)

    def _learn_many(self, batch: MiniBatch, keywords: dict[str, Any]) -> None:
        labels = dataframe.into_series(batch.y).to_numpy()
        options = {"weights": batch.weights, "times": batch.times}
        self._calibrator.learn_many(batch.scores, labels, **options)
        self.classifier.learn_many(batch.X, batch.y, **keywords)


# Names of the probability that is predicted; a calibrator of one probability has none.
_PROBABILITIES = {"protected": "probability", "interval": "merged", "folds": "merged"}


# 0, 1, 1.0 and numpy's booleans are equal to these, and hash alike.
_LABELS = {False: False, True: True}


def positive(probabilities: Probabilities) -> float:
    """Return the probability of True: 0 if only other labels are known, 1/2 if none is."""
    return probabilities.get(True, 0.0) if probabilities else 0.5


def positives(probabilities: Any, like: Any) -> NDArray[Any]:  # noqa: ANN401 - dataframes
    """Return the probability of True in each row, from the column True or "True"."""
    frame = dataframe.into_frame(probabilities)
    columns = [str(name) for name in frame.columns]
    if not columns:
        return np.full(len(dataframe.into_frame(like)), 0.5)
    if "True" not in columns:
        return np.zeros(len(frame))
    return dataframe.to_numpy(frame)[:, columns.index("True")]


def both(low: float, high: float) -> Intervals:
    """Return the intervals of both labels from that of True."""
    return {False: (1.0 - high, 1.0 - low), True: (low, high)}
