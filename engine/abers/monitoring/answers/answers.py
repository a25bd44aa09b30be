"""The three answers about a model, with all that they are made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from abers.monitoring.answers import formats
from abers.monitoring.answers.answer import (
    CLASSES,
    INTERVALS,
    TWO_CLASSES,
    Answer,
    open_answer,
    pays_answer,
    view_answer,
    waiting_answer,
    with_incident,
)
from abers.monitoring.answers.period import Period, Point, now_of, points_of, whole_of
from abers.monitoring.event_time import is_date

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.answers.answer import Wording
    from abers.monitoring.answers.sums import Sums

__all__ = ["Answers", "answers_of"]

_QUESTIONS = ("model", "calibrated", "pays")
_TIMES = {"start", "until", "since"}
_NO_PROMISE = "Raw scores are no probabilities, so labels cannot contradict them."
_NO_LOSS = "Raw scores are no probabilities, so there is no loss to compare with."
_AS_IT_IS = "The raw probability is served as it is."


class Answers(Struct, frozen=True, kw_only=True):
    """Three answers about a model.

    Attributes
    ----------
    answers
        Is my model telling the truth? Are the calibrated probabilities right? Does calibration pay?
    now, whole
        The latest labels, and all after the warm-up; None before the first.
    over_time
        At most 64 points of the whole stream.
    warm_up
        Number of predictions in the warm-up, which no number counts; None if the model is in
        several partitions, and of numbers.
    tolerance
        Ratio of odds within which promises are right.

    Notes
    -----
    **Now.** A prediction counts p (1 - p) units. p is the served probability, with several classes
    that of the first choice, with intervals the share that the main level promises. A mark stands
    at each full 1,000 of their sum. Now begins after the last mark but one, so it has 1,000 to
    2,000 units; before the second mark it has all units after the warm-up. Its groups are fixed
    where it begins: the cut of the halves, and the tenths.

    **Guarantee.** The probability that any range of a view in a window ever misses the truth is at
    most 5 %, at any time the window is read. This holds for each window, not for all windows
    together. The truth of a group is the mean true probability over its labels, given all forecasts
    up to each and the labels of all predictions before it. Predictions without a label are left
    out, which is valid only if the lack of a label does not depend on its value. The ranges of
    several partitions hold together if labels of different partitions do not depend on each other,
    given what was known before.
    """

    answers: list[Answer]
    now: Period | None
    whole: Period | None
    over_time: list[Point]
    warm_up: int | None
    tolerance: float

    @property
    def wrong_by(self) -> float:
        """Number of the latest labels by which served predictions are off at least."""
        return 0.0 if self.now is None else [*self.now.views.values()][-1].wrong_by

    def __getitem__(self, question: str) -> Answer:
        """Return the answer to a question, or raise a KeyError that names the questions."""
        for one in self.answers:
            if one.question == question:
                return one
        asked = ", ".join(repr(one.question) for one in self.answers)
        msg = f"{question!r} is not answered here; the answers are to {asked}"
        raise KeyError(msg)

    def __contains__(self, question: str) -> bool:
        """Return whether a question is asked."""
        return any(one.question == question for one in self.answers)

    def record(self) -> dict[str, Any]:
        """Return all numbers with full precision, and times in UTC, as JSON has them."""
        found: dict[str, Any] = _dated(msgspec.to_builtins(self))
        return found | {"wrong_by": self.wrong_by}


def _dated(value: Any, name: str = "") -> Any:  # noqa: ANN401 - as JSON has it
    if isinstance(value, dict):
        return {key: _dated(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_dated(one) for one in value]
    if name in _TIMES and value is not None and is_date(value):
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds")
    return value


def answers_of(many: Sequence[Sums], zone: str = "UTC") -> Answers:
    """Return the answers about a model, from the sums of its partitions, at least one.

    Parameters
    ----------
    many
        Sums of each partition.
    zone
        Zone of the dates in sentences.
    """
    now, whole = now_of(many), whole_of(many)
    begun = [one for one in many if one.warm_up is not None and one.whole[0][4]]
    warm_up = begun[0].warm_up if len(begun) == len(many) == 1 else None
    answers = _waiting(many) if now is None or whole is None else _found(many, now, whole, zone)
    return Answers(
        answers=answers,
        now=now,
        whole=whole,
        over_time=points_of(many),
        warm_up=warm_up,
        tolerance=many[0].tolerance,
    )


def _waiting(many: Sequence[Sums]) -> list[Answer]:
    came, least = max(one.came for one in many), many[0].grace_period
    return [waiting_answer(question, came, least) for question in _QUESTIONS]


def _found(many: Sequence[Sums], now: Period, whole: Period, zone: str) -> list[Answer]:
    first = many[0]
    if first.of_numbers:
        return [
            open_answer("model", _single_number(now), now.labels),
            _view_answer(many, "calibrated", now, whole, INTERVALS, zone)
            if first.parts
            else open_answer("calibrated", "No central interval is served.", now.labels),
            open_answer("pays", _medians(now), now.labels),
        ]
    wording = CLASSES if first.several else TWO_CLASSES
    served = first.views[-1]
    model = open_answer("model", _NO_PROMISE, now.labels)
    if "raw" in first.views:
        model = _view_answer(many, "raw", now, whole, wording, zone)
    calibrated = _view_answer(many, served, now, whole, wording, zone)
    calibrated = msgspec.structs.replace(calibrated, question="calibrated")
    if len(first.views) == 1:
        reason = _AS_IT_IS if served == "raw" else _NO_LOSS
        return [model, calibrated, open_answer("pays", reason, whole.labels)]
    if now.losses is None or whole.losses is None:
        return [model, calibrated]
    return [model, calibrated, pays_answer(whole.losses, whole.labels, now.losses, now.labels)]


def _view_answer(  # noqa: PLR0913, PLR0917 - each is known to the caller
    many: Sequence[Sums], view: str, now: Period, whole: Period, wording: Wording, zone: str
) -> Answer:
    """Return the answer about a view, and what an open incident makes of it."""
    question = "model" if view == "raw" else "calibrated"
    found = view_answer(question, now.views[view], whole.views[view], wording, now.labels)
    open_ = [one.incidents[view] for one in many if view in one.incidents]
    if not open_:
        return found
    return with_incident(found, now.views[view], min(open_), zone)


def _single_number(now: Period) -> str:
    errors = now.errors
    promise = "A single number promises nothing that labels could contradict."
    if errors is None or errors.model is None:
        return promise
    return f"{promise} Its mean absolute error is {formats.significant(errors.model)}."


def _medians(now: Period) -> str:
    errors = now.errors
    if errors is None or errors.model is None or errors.median is None:
        return "There is no median to compare with the model's number; it adds intervals."
    median, model = map(formats.significant, (errors.median, errors.model))
    return (
        f"Mean absolute error of the median {median} instead of {model}; errors have no known "
        "largest size, so no range of the change is proven."
    )
