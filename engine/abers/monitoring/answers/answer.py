"""An answer about a model: yes, no, partly or undecided, in one sentence with one number."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from abers.monitoring.answers import formats
from abers.monitoring.answers.rows import RIGHT, distance

if TYPE_CHECKING:
    from abers.monitoring.answers.pays import Saved
    from abers.monitoring.answers.rows import Row, View

__all__ = [
    "CLASSES",
    "INTERVALS",
    "TWO_CLASSES",
    "Answer",
    "Wording",
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
