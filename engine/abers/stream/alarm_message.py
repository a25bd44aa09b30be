"""The sentences of an alarm: which predictions are off, since when, and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring.event_time import event_time
from abers.validation import shown

if TYPE_CHECKING:
    from abers.monitoring.e_processes import EProcess, OpenedIncident
    from abers.monitoring.evidence import Evidence
    from abers.monitoring.shift import Shift

__all__ = ["alarm_message"]

_ONES = "labels 1"  # two classes: "came" alone says it


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
    model 'm': the raw scores are too high. Since 2013-04-01 04:20:00 UTC: 400 labels
    180.2 promised
    123 came. If nothing is wrong
    false alarms are at least 1,000 observations apart on average.
    """
    name = f"model {shown(model)}" + (f", segment {shown(segment)}" if segment else "")
    return (
        f"{name}: the {process.subjects[opened.view]} are {_size(process, opened.shift)}. "
        f"{test.guarantee}"
    )


def _size(process: EProcess, shift: Shift | None) -> str:
    """Return direction and size: labels since the estimated beginning of the change."""
    if shift is None:
        return "miscalibrated"
    labels = f"{shift.labels:,} label{'' if shift.labels == 1 else 's'}"
    counted = "" if shift.outcome == _ONES else f" ({shift.outcome})"
    return (
        f"{process.faults[shift.direction]}. Since {event_time(shift.since)}: {labels}, "
        f"{shift.expected:,.1f} promised, {shift.observed:,.0f} came{counted}"
    )
