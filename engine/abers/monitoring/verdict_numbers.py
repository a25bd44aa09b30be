"""Numbers of verdicts, for metrics; sentences have the same on pages and in the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from abers.monitoring.findings import TRUSTWORTHY
from abers.monitoring.measures import Measure, Number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.loss_difference import LossDifference
    from abers.monitoring.verdict import Verdict

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
VERDICTS = (_TRUSTWORTHY, _OUTSIDE, _RATIO, _SAVED)
"""Numbers of each verdict, with what the forecasts are as the label "forecasts"."""


def verdict_numbers(verdicts: Sequence[Verdict], losses: LossDifference | None) -> list[Number]:
    """Return the numbers of `VERDICTS`, for the summary of a monitor."""
    found = [
        Number(measure, value, one.view, labels={"forecasts": one.words.subject})
        for one in verdicts
        for measure, value in (
            (_TRUSTWORTHY, one.status == TRUSTWORTHY),
            (_OUTSIDE, one.outside),
            (_RATIO, one.ratio.value if one.counted else math.nan),
        )
    ]
    if losses is not None:
        found.append(Number(_SAVED, losses.difference.value))
    return found
