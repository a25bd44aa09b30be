"""The sentences of an alarm: which predictions are off, since when, by how much, how surely."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from abers.monitoring.event_time import event_time
from abers.validation import shown

if TYPE_CHECKING:
    from abers.monitoring.e_processes import EProcess, OpenedIncident
    from abers.monitoring.evidence import Evidence
    from abers.monitoring.shift import Shift

__all__ = ["alarm_message"]


def alarm_message(
    model: str, segment: str, process: EProcess, opened: OpenedIncident, test: Evidence
) -> str:
    """Return the message of an alarm.

    Parameters
    ----------
    model, segment
        Of the e-process.
    process
        The e-process.
    opened
        The incident that opened.
    test
        The evidence of its test.

    Examples
    --------
    >>> from abers.monitoring import CalibrationEProcess, EDetector, OpenedIncident, Shift
    >>> process, detector = CalibrationEProcess(), EDetector("change", average_run_length=1_000)
    >>> ((_, incident),) = detector.update([2000.0], [1_364_792_400_000])
    >>> shift = Shift(1_364_790_000_000, 400, "labels 1", 123.0, 180.25, 9.5)
    >>> opened = OpenedIncident(0, "raw", "change", incident, shift)
    >>> for part in alarm_message("m", "", process, opened, detector.evidence()).split(", "):
    ...     print(part)
    model 'm': the raw scores are too high: since about 2013-04-01 04:20:00 UTC
    123 labels 1 came where 180.2 were expected (0.682 times)
    of 400 labels. The evidence of a change is 10^3.3
    the threshold 10^3.0. If nothing is wrong
    the mean distance from one alarm to the next is at least 1,000 observations.
    """
    whose = f"model {shown(model)}" + (f", segment {shown(segment)}" if segment else "")
    return (
        f"{whose}: the {process.subjects[opened.view]} are {_size(process, opened.shift)}. "
        f"The evidence of a change is {_power(opened.incident.log_wealth)}, "
        f"the threshold {_power(test.log_threshold)}. {test.guarantee}"
    )


def _size(process: EProcess, shift: Shift | None) -> str:
    """Return direction and size: labels since the estimated beginning of the change."""
    if shift is None:
        return "miscalibrated"
    ratio = f" ({shift.observed / shift.expected:.3g} times)" if shift.expected else ""
    labels = f"{shift.labels:,} label{'' if shift.labels == 1 else 's'}"
    return (
        f"{process.faults[shift.direction]}: since about {event_time(shift.since)}, "
        f"{shift.observed:,.0f} {shift.outcome} came where {shift.expected:,.1f} were expected"
        f"{ratio}, of {labels}"
    )


def _power(logarithm: float) -> str:
    if math.isinf(logarithm):
        return "infinite, as a label came that had the probability 0"
    return f"10^{logarithm / math.log(10.0):.1f}"
