"""Events and outputs of a processor.

An event is immutable and has an event time, in whole milliseconds. The fields of an output have the
order of the wire, schema version 1.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

__all__ = [
    "Alarm",
    "DeadLetter",
    "Event",
    "Label",
    "MultiClassOutcome",
    "MultiClassPrediction",
    "Observation",
    "Outcome",
    "Output",
    "Prediction",
    "RegressionOutcome",
    "RegressionPrediction",
]


class Observation(msgspec.Struct, frozen=True, gc=False):
    """An observation, which is to be predicted.

    Attributes
    ----------
    id
        Identifier, which its label repeats; unique within the model.
    time
        Event time, in milliseconds.
    model
        Name of the model.
    score
        Score of the model, if the event has one: a number, or with several classes a dict from
        class to number.
    x
        Features, if a learner scores them.
    segment
        Part of the stream of the model that has a calibrator of its own.
    recorded
        When the record was written, in milliseconds, if the transport knows.
    extra
        Fields that the prediction repeats.
    """

    id: str
    time: int
    model: str = "default"
    score: Any = None
    x: dict[str, Any] | None = None
    segment: str = ""
    recorded: int | None = None
    extra: dict[str, Any] | None = None


class Label(msgspec.Struct, frozen=True, gc=False):
    """The outcome of an observation, which may arrive before or after it.

    Attributes
    ----------
    id, model
        As of the observation.
    time
        Event time of the label, in milliseconds.
    value
        The outcome: 0 or 1, one of several classes, or a number.
    recorded
        When the record was written, in milliseconds, if the transport knows.
    """

    id: str
    time: int
    model: str = "default"
    value: Any = None
    recorded: int | None = None


class _OutputStruct(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=1
):
    """The first fields of predictions and outcomes; the tag is the version of the schema."""

    id: str
    time: int
    model: str


class Prediction(_OutputStruct, frozen=True):
    """The prediction of an observation, before its label is known.

    Attributes
    ----------
    id, time, model, score, segment, extra
        As of the observation.
    p0, p1, p
        The Venn-Abers interval, and the probability: its log-loss merge, or the protected one,
        which may lie outside.
    n_labels
        Number of labels that the calibrator kept when it predicted.
    """

    score: float
    p0: float
    p1: float
    p: float
    n_labels: int
    segment: str = ""
    extra: dict[str, Any] | None = None


class Outcome(_OutputStruct, frozen=True):
    """A label, with the prediction that it settles as that was issued.

    Attributes
    ----------
    id, model, segment
        As of the observation.
    time
        Event time of the label.
    prediction_time
        Event time of the observation.
    label
        The outcome.
    score, p0, p1, p
        As of the prediction.
    assumed
        Whether the label did not come, and is assumed, see `Settings.unlabelled`.
    late
        Whether the label came after another was assumed; then it is not learned.
    """

    prediction_time: int
    label: int
    score: float
    p0: float
    p1: float
    p: float
    segment: str = ""
    assumed: bool = False
    late: bool = False


class MultiClassPrediction(_OutputStruct, frozen=True):
    """The prediction of an observation of several classes; all by class.

    Attributes
    ----------
    id, time, model, score, segment, extra
        As of the observation.
    p, low, high
        Probabilities, which sum to 1, and the interval of each before they were normalized. A
        protected probability is often outside.
    n_labels
        Number of labels that the calibrator kept when it predicted.
    """

    score: dict[str, float]
    p: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    n_labels: int
    segment: str = ""
    extra: dict[str, Any] | None = None


class MultiClassOutcome(_OutputStruct, frozen=True):
    """A label, with the prediction of several classes that it settles.

    Attributes
    ----------
    id, model, segment
        As of the observation.
    time
        Event time of the label.
    prediction_time
        Event time of the observation.
    label
        The class.
    score, p, low, high
        As of the prediction.
    assumed
        Whether the label did not come, and is assumed, see `Settings.unlabelled`.
    late
        Whether the label came after another was assumed; then it is not learned.
    """

    prediction_time: int
    label: str
    score: dict[str, float]
    p: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    segment: str = ""
    assumed: bool = False
    late: bool = False


class RegressionPrediction(_OutputStruct, frozen=True):
    """The prediction of an observation with a label that is a number.

    Attributes
    ----------
    id, time, model, score, segment, extra
        As of the observation.
    quantiles
        Quantiles of the merged predictive distribution, by level.
    low, high
        Smallest and largest quantile of the distributions of the band, by level. An infinite one,
        which too few labels bound, is null on the wire.
    n_labels
        Number of labels that the calibrator kept when it predicted.
    mean
        Mean of the merged distribution, with `distributions` "scored" or "full".
    cdf
        The band as of `PredictiveDistribution.to_dict`, with `distributions` "full".
    interval_low, interval_high
        Ends of the interval of `coverage`; the label may be either of them. If it is empty, these
        are infinity and -infinity. An infinite end is null on the wire.
    """

    score: float
    quantiles: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    n_labels: int
    segment: str = ""
    extra: dict[str, Any] | None = None
    mean: float | None = None
    cdf: dict[str, list[float | None]] | None = None
    interval_low: float | None = None
    interval_high: float | None = None


class RegressionOutcome(_OutputStruct, frozen=True):
    """A label that is a number, with the prediction that it settles.

    Attributes
    ----------
    id, model, segment
        As of the observation.
    time
        Event time of the label.
    prediction_time
        Event time of the observation.
    label
        The number.
    score, quantiles, low, high, mean, interval_low, interval_high
        As of the prediction.
    crps
        CRPS of the merged distribution, with `distributions` "scored" or "full".
    covered
        Whether the interval of `coverage` covers the label.
    """

    prediction_time: int
    label: float
    score: float
    quantiles: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    segment: str = ""
    mean: float | None = None
    crps: float | None = None
    interval_low: float | None = None
    interval_high: float | None = None
    covered: bool | None = None


class DeadLetter(msgspec.Struct, frozen=True, gc=False):
    """An event that cannot be used.

    Attributes
    ----------
    reason
        A short name, one of `REASONS`; there is a counter of each.
    detail
        What is wrong, and how to fix it.
    event
        The event as it came; a label that had waited is without `recorded`.
    row
        Its row in the batch; None for an unmatched label (timed out).
    """

    reason: str
    detail: str
    event: Event
    row: int | None


class Alarm(msgspec.Struct, frozen=True, gc=False):
    """An alarm: the predictions of a calibrator are miscalibrated, an incident opened.

    Attributes
    ----------
    model, segment
        Model and segment of the calibrator.
    view
        The miscalibrated view: the "raw" scores, or the "calibrated" predictions, which are served.
    test
        Name of the test; see `abers.monitoring.Evidence`.
    episode
        1 for the first incident of the view.
    time
        Event time of the observation at which it triggered, in milliseconds.
    log_wealth, log_threshold
        Natural logarithms of the evidence, and of the threshold.
    message
        What happened, since when, by how much, and how often it would happen by chance.
    fault
        What the predictions are, such as "too high" or "too narrow".
    since
        Event time of the first label since the fault probably began; None without an estimate.
    labels
        Number of labels since then.
    outcome
        What is counted, such as "labels 1".
    promised, came
        Sum of the probabilities of that outcome over these labels, and how many had it; None if
        there is no estimate.
    """

    model: str
    segment: str
    view: str
    test: str
    episode: int
    time: int
    log_wealth: float
    log_threshold: float
    message: str
    fault: str = ""
    since: int | None = None
    labels: int = 0
    outcome: str = ""
    promised: float | None = None
    came: float | None = None


Event: TypeAlias = Observation | Label
Output: TypeAlias = (
    Prediction
    | MultiClassPrediction
    | RegressionPrediction
    | Outcome
    | MultiClassOutcome
    | RegressionOutcome
    | DeadLetter
)
