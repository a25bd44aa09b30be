"""Numbers of answers and verdicts, for metrics; sentences have the same on pages and terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring.forecast_groups import NOT_FOUND, TRUSTWORTHY
from abers.monitoring.measures import Measure, Number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers.monitoring.answers import Answer, Answers, CalibrationError, Period, Row
    from abers.monitoring.tested_view import VerdictSequence
    from abers.monitoring.verdict import LossDifference

__all__ = ["ANSWERS", "STATES", "VERDICTS", "answer_numbers", "verdict_numbers"]

STATES = ("no", "partly", "undecided", "yes", "waiting", "recovering")
"""States that an answer can have."""

_STATE = Measure(
    "answer", "", "boolean", "Whether the answer to a question about a model has this state."
)
_LABELS = Measure("now_labels", "", "labels", "Latest labels, which the answers are about.")
_WRONG = Measure(
    "now_wrong_labels", "", "labels", "Latest labels by which served promises are off at least."
)
_SHARES = (
    ("promised", Measure("now_promised_ratio", "", "ratio", "Promised share of a group.")),
    ("came", Measure("now_came_ratio", "", "ratio", "Share of a group that came.")),
)
_POINTS = (
    ("gap", Measure("now_gap_ratio", "", "ratio", "Share that came less the promised.")),
    ("low", Measure("now_gap_low_ratio", "", "ratio", "Lower end of the range of the gap.")),
    ("high", Measure("now_gap_high_ratio", "", "ratio", "Upper end of the range of the gap.")),
)
_ERRORS = (
    (
        "low",
        Measure("calibration_error_low_ratio", "", "ratio", "Calibration error at least."),
    ),
    (
        "high",
        Measure("calibration_error_high_ratio", "", "ratio", "Calibration error at most."),
    ),
)
_SAVED = (
    ("number", Measure("loss_saved_ratio", "", "ratio", "Loss saved by calibration, of all.")),
    ("low", Measure("loss_saved_low_ratio", "", "ratio", "Lower end of its range.")),
    ("high", Measure("loss_saved_high_ratio", "", "ratio", "Upper end of its range.")),
)
_PER_CENT = 100.0

ANSWERS = (_STATE, _LABELS, _WRONG, *(one for _, one in (*_SHARES, *_POINTS, *_ERRORS, *_SAVED)))
"""Numbers of the answers. What is not known, such as a gap before the first label, is left out.

The state of each question is a set: 1 for the state that it has, and 0 for all others. Groups are
the main rows: "all", "lower" and "upper", and of numbers "level-0.9". The range of the calibration
error is that of the latest labels, and of all after the warm-up: as "now" and "whole".
"""


def answer_numbers(answers: Answers) -> Iterator[Number]:
    """Yield the numbers of `ANSWERS`.

    Examples
    --------
    >>> from abers.monitoring import BinaryMonitor, CalibrationEProcess
    >>> monitor = BinaryMonitor(raw=True)
    >>> monitor.e_processes = [CalibrationEProcess(["raw", "calibrated"], grace_period=200)]
    >>> [one.labels for one in answer_numbers(monitor.answers()) if one.value == 1.0][0]
    {'question': 'model', 'state': 'waiting'}
    """
    for one in answers.answers:
        for state in STATES:
            labels = {"question": one.question, "state": state}
            yield Number(_STATE, float(one.state == state), labels=labels)
    if answers.now is not None:
        yield Number(_LABELS, answers.now.labels)
        yield Number(_WRONG, answers.wrong_by)
        yield from _of_now(answers.now)
        yield from _errors("now", answers.now)
    if answers.whole is not None:
        yield from _errors("whole", answers.whole)
    if "pays" in answers:
        pays = answers["pays"]
        yield from _known(_SAVED, pays, _PER_CENT, "", {})


def _of_now(now: Period) -> Iterator[Number]:
    for name, view in now.views.items():
        for row in view.main:
            labels = {"group": row.key}
            yield from _known(_SHARES, row, 1.0, name, labels)
            yield from _known(_POINTS, row, _PER_CENT, name, labels)


def _errors(name: str, period: Period) -> Iterator[Number]:
    """Yield the range of the calibration error of each view that has it."""
    for view, found in period.views.items():
        if found.error is not None:
            yield from _known(_ERRORS, found.error, 1.0, view, {"period": name})


def _known(
    measures: tuple[tuple[str, Measure], ...],
    found: Row | Answer | CalibrationError,
    unit: float,
    view: str,
    labels: dict[str, str],
) -> Iterator[Number]:
    """Yield the fields that are known, divided by a unit."""
    for name, measure in measures:
        value = getattr(found, name)
        if value is not None:
            yield Number(measure, value / unit, view, labels=labels)


_TRUSTWORTHY = Measure(
    "verdict_trustworthy", "", "boolean", "Whether the forecasts are within the tolerance."
)
_OUTSIDE = Measure(
    "verdict_outside", "", "boolean", "Whether the forecasts are outside the tolerance."
)
_RATIO = Measure(
    "verdict_observed_ratio", "", "ratio", "Labels that came, divided by the promised number."
)
_SAVED_BY_VERDICT = Measure(
    "calibration_saved_nats", "", "nats", "Mean log loss that calibration saved a label."
)
_PARTS_TRUSTWORTHY = Measure(
    "verdict_parts_trustworthy", "", "parts", "Parts, such as classes, within the tolerance."
)
_PARTS_OUTSIDE = Measure(
    "verdict_parts_outside", "", "parts", "Parts, such as classes, outside the tolerance."
)
VERDICTS = (_TRUSTWORTHY, _OUTSIDE, _RATIO, _SAVED_BY_VERDICT, _PARTS_TRUSTWORTHY, _PARTS_OUTSIDE)
"""Numbers of each verdict, with what the forecasts are as the label "forecasts".

Of parts only their number is counted, with what they are as the label "parts": names of classes
come from the configuration of a model, and there may be many.
"""


def verdict_numbers(
    sequences: Sequence[VerdictSequence], losses: LossDifference | None
) -> list[Number]:
    """Return the numbers of `VERDICTS`, for the summary of a monitor."""
    found = []
    parts: dict[tuple[str, str, str], list[str]] = {}
    for one in sequences:
        if one.words.part:
            key = (one.view, one.words.subject, one.words.parts)
            parts.setdefault(key, []).append(one.brief()[0])
            continue
        (status, ratio), labels = one.brief(), {"forecasts": one.words.subject}
        trustworthy = status == TRUSTWORTHY
        outside = not trustworthy and status != NOT_FOUND
        values = ((_TRUSTWORTHY, trustworthy), (_OUTSIDE, outside), (_RATIO, ratio))
        found += [Number(measure, value, one.view, labels=labels) for measure, value in values]
    for (view, subject, kind), found_of in parts.items():
        labels = {"forecasts": subject, "parts": kind}
        inside, undecided = map(found_of.count, (TRUSTWORTHY, NOT_FOUND))
        counts = (_PARTS_TRUSTWORTHY, inside), (_PARTS_OUTSIDE, len(found_of) - inside - undecided)
        found += [Number(measure, number, view, labels=labels) for measure, number in counts]
    if losses is not None:
        found.append(Number(_SAVED_BY_VERDICT, losses.mean))
    return found
