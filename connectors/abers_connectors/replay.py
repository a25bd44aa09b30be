"""The loop of a replay: predict, wait for the label, learn.

Governing rule: score at prediction time, pair at label time, never re-score. A
label is released after `delay` further observations have been predicted; the
metrics take the score and the prediction that waited with it. Labels still
waiting when the stream ends are released then.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from abers.exceptions import InputError, RecordError
from abers.monitoring import PrequentialScores
from abers_connectors.records import Prediction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers import VennAbers
    from abers_connectors.records import Observation, Scorer, Sink, Source

__all__ = ["Means", "Replay", "Summary"]


class Means(msgspec.Struct, frozen=True):
    """Mean scores of one view of the forecasts; None where there is nothing finite to say."""

    log_loss: float | None
    log_loss_infinite: int
    brier: float | None
    ece: float | None


class Summary(msgspec.Struct, frozen=True):
    """What a replay found; `raw` is None where the scores are not declared probabilities."""

    observations: int
    labels: int
    raw: Means | None
    calibrated: Means
    mean_width: float | None
    events_per_second: float


class _Waiting(NamedTuple):
    observation: Observation
    prediction: Prediction


class Replay:
    """The state of one replay: learner, calibrator, labels that wait, and scores.

    Parameters
    ----------
    source, scorer, sink
        Where observations, their scores, and predictions come from and go to.
    calibrator
        Learns each score with its label when the label is released.
    delay
        Number of further observations predicted before a label is released.
    """

    def __init__(
        self, source: Source, scorer: Scorer, calibrator: VennAbers, sink: Sink, *, delay: int
    ) -> None:
        self._source, self._scorer, self._sink = source, scorer, sink
        self._calibrator = calibrator
        self._timed = calibrator.max_age is not None or calibrator.half_life is not None
        self._delay = delay
        self._waiting: deque[_Waiting] = deque()
        self._observations = 0
        self._raw, self._calibrated = PrequentialScores(), PrequentialScores()
        self._width = 0.0

    def run(self, observations: Iterable[Observation]) -> None:
        """Predict every observation and learn every label.

        Parameters
        ----------
        observations
            Those of the source, perhaps watched on their way by a progress bar.

        Raises
        ------
        RecordError
            At the first record that cannot be used.
        """
        for observation in observations:
            self._predict(observation)
            if len(self._waiting) > self._delay:
                self._release()
        while self._waiting:
            self._release()

    def summary(self, seconds: float) -> Summary:
        """Give the prequential scores of a run.

        Parameters
        ----------
        seconds
            How long it took: nothing here looks at a clock.

        Returns
        -------
        Summary
            The scores, as far as labels have arrived.
        """
        labels = self._calibrated.count
        return Summary(
            observations=self._observations,
            labels=labels,
            raw=_means(self._raw) if self._scorer.probabilities else None,
            calibrated=_means(self._calibrated),
            mean_width=self._width / labels if labels else None,
            events_per_second=self._observations / seconds,
        )

    def _predict(self, observation: Observation) -> None:
        score = self._scorer.score(observation)
        time = observation.time if self._timed else None
        try:
            interval = self._calibrator.predict_one(score, time)
        except InputError as error:
            msg = f"{self._source.where(observation.position)}: {error}"
            raise RecordError(msg) from error
        prediction = Prediction(
            id=observation.id,
            time=observation.time,
            score=score,
            p0=interval.p0,
            p1=interval.p1,
            p=interval.log,
            n=len(self._calibrator),
        )
        self._sink.write(prediction)
        self._waiting.append(_Waiting(observation, prediction))
        self._observations += 1

    def _release(self) -> None:
        observation, prediction = self._waiting.popleft()
        label = observation.label
        if self._scorer.probabilities:
            self._raw.update(prediction.score, label)
        self._calibrated.update(prediction.p, label)
        self._width += prediction.p1 - prediction.p0
        time = observation.time if self._timed else None
        self._calibrator.learn_one(prediction.score, label, time=time)
        self._scorer.learn(observation)


def _means(scores: PrequentialScores) -> Means:
    if not scores.count:
        return Means(None, 0, None, None)
    log_loss = None if scores.infinite else scores.log_loss
    return Means(log_loss, scores.infinite, scores.brier, scores.ece)
