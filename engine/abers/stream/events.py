"""What goes into the processor and what comes out of it.

Governing rule: an event is immutable and knows its event time, in whole
milliseconds; the field order of an output is that of the wire, schema version 1.
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
    """Something to be predicted.

    Attributes
    ----------
    id
        What its label will call it; unique within the model.
    time
        Event time, in milliseconds.
    model
        Whose prediction it is.
    score
        The model's score, if it comes with the event: a number, or of several classes a mapping
        from class to number.
    x
        The features, if a learner scores them.
    segment
        Part of the stream within the model that is calibrated apart.
    recorded
        When the record was written, in milliseconds, where the transport knows.
    extra
        Fields that are passed through to the prediction.
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
        Those of the observation.
    time
        Event time of the label, in milliseconds.
    value
        The outcome: 0 or 1, one of several classes, or a number.
    recorded
        When the record was written, in milliseconds, where the transport knows.
    """

    id: str
    time: int
    model: str = "default"
    value: Any = None
    recorded: int | None = None


class Prediction(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=1):
    """What is said of an observation before its label is known.

    Attributes
    ----------
    id, time, model, score, segment, extra
        Those of the observation.
    p0, p1, p
        The Venn-Abers interval and its log-loss merge.
    n
        Number of labels the calibrator held when it answered.
    """

    id: str
    time: int
    model: str
    score: float
    p0: float
    p1: float
    p: float
    n: int
    segment: str = ""
    extra: dict[str, Any] | None = None


class Outcome(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=1):
    """A label, beside the prediction it settles, as that was issued.

    Attributes
    ----------
    id, model, segment
        Those of the observation.
    time
        Event time of the label.
    predicted
        Event time of the observation.
    label
        The outcome.
    score, p0, p1, p
        Those of the prediction.
    """

    id: str
    time: int
    model: str
    predicted: int
    label: int
    score: float
    p0: float
    p1: float
    p: float
    segment: str = ""


class MultiClassPrediction(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=1
):
    """What is said of an observation of several classes; all by class.

    Attributes
    ----------
    id, time, model, score, segment, extra
        Those of the observation.
    p, low, high
        The probabilities, which sum to 1, and the interval of each before they were made to.
    n
        Number of labels the calibrator held when it answered.
    """

    id: str
    time: int
    model: str
    score: dict[str, float]
    p: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    n: int
    segment: str = ""
    extra: dict[str, Any] | None = None


class MultiClassOutcome(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=1
):
    """A label, beside the prediction of several classes that it settles.

    Attributes
    ----------
    id, model, segment
        Those of the observation.
    time
        Event time of the label.
    predicted
        Event time of the observation.
    label
        The class that came.
    score, p, low, high
        Those of the prediction.
    """

    id: str
    time: int
    model: str
    predicted: int
    label: str
    score: dict[str, float]
    p: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    segment: str = ""


class RegressionPrediction(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=1
):
    """What is said of an observation whose label is a number.

    Attributes
    ----------
    id, time, model, score, segment, extra
        Those of the observation.
    quantiles
        By level, of the merged predictive distribution.
    low, high
        By level, the smallest and the largest that a distribution of the band has there. One
        that is infinite, since too few labels are held to bound it, is null on the wire.
    n
        Number of labels the calibrator held when it answered.
    mean
        Of the merged distribution, where whole distributions are judged or told.
    cdf
        The band as `PredictiveDistribution.to_dict` gives it, where it is told.
    """

    id: str
    time: int
    model: str
    score: float
    quantiles: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    n: int
    segment: str = ""
    extra: dict[str, Any] | None = None
    mean: float | None = None
    cdf: dict[str, list[float | None]] | None = None


class RegressionOutcome(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=1
):
    """A label that is a number, beside the prediction that it settles.

    Attributes
    ----------
    id, model, segment
        Those of the observation.
    time
        Event time of the label.
    predicted
        Event time of the observation.
    label
        The number that came.
    score, quantiles, low, high, mean
        Those of the prediction.
    crps
        Of the merged distribution, where whole distributions are judged or told.
    """

    id: str
    time: int
    model: str
    predicted: int
    label: float
    score: float
    quantiles: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    segment: str = ""
    mean: float | None = None
    crps: float | None = None


class DeadLetter(msgspec.Struct, frozen=True, gc=False):
    """An event that changed nothing, since it cannot be used.

    Attributes
    ----------
    reason
        A short name, one of a fixed set: what the counters go by.
    detail
        A sentence: what is wrong, and how to mend it.
    event
        The event as it came; a label that had waited is without `recorded`.
    row
        Its row in the call that brought it; None for a label that waited in vain
        for its observation.
    """

    reason: str
    detail: str
    event: Event
    row: int | None


class Alarm(msgspec.Struct, frozen=True, gc=False):
    """The predictions of a calibrator no longer mean what they say: an episode opened.

    Attributes
    ----------
    model, segment
        Those of the calibrator.
    test
        Name of the test; see `abers.monitoring.Evidence`.
    number
        1 for the first episode of the calibrator.
    time
        Event time of the observation at which it rang, in milliseconds.
    log_wealth, line
        Natural logarithms of the evidence, and of that at which it rings.
    sentence
        What happened, and how often it would without a reason.
    """

    model: str
    segment: str
    test: str
    number: int
    time: int
    log_wealth: float
    line: float
    sentence: str


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
