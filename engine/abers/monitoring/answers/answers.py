"""The three answers about a model, with all that they are made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from abers.monitoring import formats
from abers.monitoring.answers.period import Period, Point, now_of, points_of, whole_of
from abers.monitoring.answers.rows import RIGHT, distance
from abers.monitoring.formats import is_date

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.answers.period import Saved
    from abers.monitoring.answers.rows import Row, Sums, View

__all__ = [
    "CLASSES",
    "INTERVALS",
    "TWO_CLASSES",
    "Answer",
    "Answers",
    "Wording",
    "answers_of",
    "open_answer",
    "pays_answer",
    "saved_range",
    "state_of",
    "view_answer",
    "waiting_answer",
    "with_incident",
]

YES, NO, PARTLY, NOT_KNOWN = "yes", "no", "partly", "undecided"
WAITING, RECOVERING = "waiting", "recovering"


class Answer(Struct, frozen=True, kw_only=True):
    """The answer to a question about a model.

    Attributes
    ----------
    question
        "model": is my model telling the truth? "calibrated": are the calibrated probabilities
        right? "pays": does calibration pay?
    state
        "yes", "no", "partly", "undecided", "waiting" or "recovering".
    sentence
        What was found, in one short sentence.
    group
        Name of the row that the number is about; None if it is about all, or about no row.
    number, low, high, unit
        The number and its range, in "points" or "%"; or None.
    labels, of
        Number of labels of the number, and of the period.
    then
        What else a reader should know, such as what the whole stream says; may be empty.
    since
        Event time at which the fault of an open incident began: that of its last alarm, and
        without an alarm of the labels that show it. None without an incident.
    """

    question: str
    state: str
    sentence: str
    group: str | None = None
    number: float | None = None
    unit: str = "points"
    low: float | None = None
    high: float | None = None
    labels: int = 0
    of: int = 0
    then: str = ""
    since: int | None = None


class Wording(NamedTuple):
    """What sentences call the labels that came, and the groups."""

    came: str = "came"
    fewer: str = "too high"
    more: str = "too low"
    subject: str = ""

    def group(self, row: Row) -> str:
        """Return what a sentence calls a row; nothing if it is all of two classes."""
        if row.key == "all":
            return self.subject
        return f"{self.subject} {row.name}".lstrip()

    def way(self, points: float) -> str:
        """Return what a row with its gap on this side is."""
        return self.fewer if points < 0.0 else self.more


TWO_CLASSES = Wording()
CLASSES = Wording("right", subject="first choice")
INTERVALS = Wording("inside", "too narrow", "too wide", "intervals of")


def waiting_answer(question: str, came: int, least: int) -> Answer:
    """Return the answer before the first label counts."""
    sentence = f"{formats.count(came)} of {formats.count(least)} labels."
    if came >= least:
        sentence = "No label after the warm-up counts yet: an earlier prediction waits for its own."
    return Answer(question=question, state=WAITING, sentence=sentence, labels=came, of=least)


def open_answer(question: str, reason: str, of: int = 0) -> Answer:
    """Return the answer to a question that nothing can decide."""
    return Answer(question=question, state=NOT_KNOWN, sentence=reason, of=of)


def view_answer(question: str, view: View, whole: View, wording: Wording, of: int) -> Answer:
    """Return the answer about a view: the first that holds."""
    state, row = state_of(view)
    then = "" if view == whole else f"Whole stream: {_brief(whole, wording)}."
    return Answer(
        question=question,
        state=state,
        sentence=_sentence(state, row, wording, of),
        group=None if row.key == "all" else row.name,
        labels=row.labels,
        of=of,
        then=then,
        number=row.gap,
        low=row.low,
        high=row.high,
    )


def with_incident(answer: Answer, view: View, since: int, zone: str) -> Answer:
    """Return an answer while an incident is open: recovering if the main rows are right now."""
    answer = replace(answer, since=since)
    if any(row.status != RIGHT for row in view.main):
        return answer
    latest = f"the latest {formats.count(answer.of)} labels"
    sentence = f"The fault of {formats.day(since, zone)} is not seen in {latest}."
    return replace(answer, state=RECOVERING, sentence=sentence)


def state_of(view: View) -> tuple[str, Row]:
    """Return the state of a view, and the row that shows it best."""
    main = view.main
    off = [row for row in view.rows if row.status.startswith("too")]
    leaning = [row for row in view.rows if row.status.startswith("leans")]
    if any(row.main for row in off):
        return NO, _worst([row for row in off if row.main])
    if all(row.status == RIGHT for row in main) and not off:
        return YES, main[0]
    if off:
        return PARTLY, _worst(off)
    if leaning:
        return PARTLY, _worst([row for row in leaning if row.main] or leaning)
    return NOT_KNOWN, max((row for row in main if row.status != RIGHT), key=_beyond)


def _worst(rows: list[Row]) -> Row:
    """Return the row of all, or that by which most labels are off at least."""
    return max(rows, key=lambda row: (row.key == "all", distance(row) * row.labels))


def _ends(row: Row) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the two ends of the range, each with that of the tolerance."""
    low, high, tolerated, tolerable = row.low, row.high, row.tolerance_low, row.tolerance_high
    return (low or 0.0, tolerated or 0.0), (high or 0.0, tolerable or 0.0)


def _largest(row: Row) -> tuple[float, float]:
    """Return the end of the range that is farthest beyond the tolerance, and that of this."""
    (low, tolerated), (high, tolerable) = _ends(row)
    return (low, tolerated) if tolerated - low > high - tolerable else (high, tolerable)


def _beyond(row: Row) -> float:
    end, tolerance = _largest(row)
    return abs(end) - abs(tolerance)


def _sentence(state: str, row: Row, wording: Wording, of: int) -> str:
    gap, low, high = row.gap or 0.0, row.low or 0.0, row.high or 0.0
    places = formats.decimals(low, high)
    promised, came = (formats.per_cent(share or 0.0, places) for share in (row.promised, row.came))
    shares = f"promised {promised}, {wording.came} {came}"
    if state == YES:
        return f"{_begun(shares)}."
    if state == NOT_KNOWN:
        end, tolerance = _largest(row)
        group = f"{wording.group(row)}: up" if wording.group(row) else "up"
        size = formats.number(abs(end), places)
        tolerated = formats.number(abs(tolerance), 1)
        return (
            f"No fault found; {group} to {size} points {wording.way(end)} is possible "
            f"(tolerance {tolerated})."
        )
    group = f"{wording.group(row)}: {shares}" if wording.group(row) else shares
    labels = formats.count(row.labels)
    counted = labels if row.labels == of else f"{labels} of {formats.count(of)}"
    return f"{_begun(group)}: {_size(gap, low, high, wording)}, in {counted} labels."


def _size(gap: float, low: float, high: float, wording: Wording) -> str:
    """Return how far a row is off, and the range of that."""
    places = formats.decimals(low, high)
    ends = (-high, -low) if gap < 0.0 else (low, high)
    size = formats.number(abs(gap), places)
    return f"{size} points {wording.way(gap)} (range {formats.span(ends, places)})"


def _brief(view: View, wording: Wording) -> str:
    """Return what a view says, in a few words."""
    state, row = state_of(view)
    if state == YES:
        return "right"
    if state == NOT_KNOWN:
        return "no fault found"
    group = f"{wording.group(row)}: " if wording.group(row) else ""
    return f"{group}{_size(row.gap or 0.0, row.low or 0.0, row.high or 0.0, wording)}"


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


def pays_answer(whole: Saved, of: int, now: Saved, latest: int) -> Answer:
    """Return whether calibration pays: by the range of the loss that it saved."""
    state = NOT_KNOWN
    if whole.nats_low is not None and whole.nats_low > 0.0:
        state = YES
    elif whole.nats_high is not None and whole.nats_high < 0.0:
        state = NO
    if whole.saved is None or whole.raw is None or whole.calibrated is None:
        return Answer(question="pays", state=state, sentence=_infinite(whole), labels=of, of=of)
    saved, low, high = (
        None if one is None else 100.0 * one for one in (whole.saved, whole.low, whole.high)
    )
    losses = f"Log loss {formats.loss(whole.calibrated)} instead of {formats.loss(whole.raw)}"
    sure = saved_range(state, whole)
    return Answer(
        question="pays",
        state=state,
        sentence=f"{losses}: {formats.change(whole.saved)}, {sure}.",
        number=saved,
        unit="%",
        low=low,
        high=high,
        labels=of,
        of=of,
        then=_lately(now, latest) if latest < of else "",
    )


def saved_range(state: str, saved: Saved) -> str:
    """Return how much was saved for sure: the nearer end where it is certain, else the range."""
    certain = saved.low if state == YES else saved.high if state == NO else None
    if certain is not None:
        return f"at least {formats.down(100.0 * abs(certain), 1)}{formats.NO_BREAK}%"
    if saved.low is None or saved.high is None:
        return f"no range, as {_certain(saved)}"
    return f"range {formats.change(saved.low)} to {formats.change(saved.high)}"


def _certain(saved: Saved) -> str:
    """Return of how many predictions it has no limit what they may save, or cost."""
    named = _named(("raw", saved.certain_raw), ("calibrated", saved.certain_calibrated))
    return f"{named} had a probability of 0 or 1"


def _named(*counts: tuple[str, int]) -> str:
    """Return how many predictions there are of each view that has some."""
    return " and ".join(
        f"{formats.count(n)} {view} {'prediction' if n == 1 else 'predictions'}"
        for view, n in counts
        if n
    )


def _infinite(saved: Saved) -> str:
    counts = (("raw", saved.infinite_raw), ("calibrated", saved.infinite_calibrated))
    views = [view for view, n in counts if n]
    if not views:
        return "No loss to compare: every label was certain in advance."
    losses = f"{' and '.join(views)} log {'losses are' if views[1:] else 'loss is'} infinite"
    return f"The {losses}: {_named(*counts)} gave what came the probability 0."


def _lately(now: Saved, labels: int) -> str:
    if now.saved is None:
        return ""
    ends = ""
    if now.low is not None and now.high is not None:
        ends = f" (range {formats.change(now.low)} to {formats.change(now.high)})"
    latest = f"Latest {formats.count(labels)} labels"
    return f"{latest}: {formats.change(now.saved)}{ends}."


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
        several partitions, or its labels are numbers.
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
