"""Numbers of verdicts, for metrics; sentences have the same on pages and in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring.findings import NOT_FOUND, TRUSTWORTHY
from abers.monitoring.measures import Measure, Number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.loss_difference import LossDifference
    from abers.monitoring.verdict_sequence import VerdictSequence

__all__ = ["VERDICTS", "verdict_numbers"]

_TRUSTWORTHY = Measure(
    "verdict_trustworthy", "", "boolean", "Whether the forecasts are within the tolerance."
)
_OUTSIDE = Measure(
    "verdict_outside", "", "boolean", "Whether the forecasts are outside the tolerance."
)
_RATIO = Measure(
    "verdict_observed_ratio", "", "ratio", "Outcomes of the verdict, divided by the expected."
)
_SAVED = Measure(
    "calibration_saved_nats", "", "nats", "Mean log loss that calibration saved an event."
)
_PARTS_TRUSTWORTHY = Measure(
    "verdict_parts_trustworthy", "", "parts", "Parts, such as classes, within the tolerance."
)
_PARTS_OUTSIDE = Measure(
    "verdict_parts_outside", "", "parts", "Parts, such as classes, outside the tolerance."
)
VERDICTS = (_TRUSTWORTHY, _OUTSIDE, _RATIO, _SAVED, _PARTS_TRUSTWORTHY, _PARTS_OUTSIDE)
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
        found.append(Number(_SAVED, losses.mean))
    return found
