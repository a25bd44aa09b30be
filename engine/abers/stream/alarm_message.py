"""The sentences of an alarm: which predictions are off, since when, by how much, how surely."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring.answers import formats
from abers.monitoring.event_time import is_date
from abers.validation import shown

if TYPE_CHECKING:
    from abers.monitoring.e_processes import EProcess, OpenedIncident
    from abers.monitoring.evidence import Evidence

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
    >>> for sentence in alarm_message("m", "", process, opened, detector.evidence()).split(". "):
    ...     print(sentence)
    model 'm', 1 Apr 2013, 05:00 UTC: raw is too high
    Since 1 Apr 2013, 04:20: 400 labels, 180.2 promised, 123 came
    Evidence 2,000 to 1; alarm line 1,000 to 1
    If all probabilities are right, false alarms come once in 1,000 labels on average, at most.
    """
    subject = f"model {shown(model)}" + (f", segment {shown(segment)}" if segment else "")
    time, shift = opened.incident.first, opened.shift
    zone = " UTC" if is_date(time) else ""
    fault = "miscalibrated" if shift is None else process.faults[shift.direction]
    evidence, line = map(formats.to_one, (opened.incident.log_wealth, test.log_threshold))
    parts = (
        f"{subject}, {formats.moment(time)}{zone}: {process.subjects[opened.view]} {fault}.",
        "" if shift is None else shift.sentence(process.came),
        f"Evidence {evidence}; alarm line {line}.",
        test.guarantee,
    )
    return " ".join(filter(None, parts)).replace(formats.NO_BREAK, " ")
