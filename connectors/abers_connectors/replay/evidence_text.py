"""Sequential tests as text: what they test, and their status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring import event_time

if TYPE_CHECKING:
    from abers.monitoring import Evidence

__all__ = ["status_text"]


def status_text(test: Evidence) -> str:
    """Return the status of a test: quiet, active, or when it was triggered.

    Examples
    --------
    >>> from abers.monitoring import EDetector
    >>> detector = EDetector("change", average_run_length=10, cooldown=1)
    >>> status_text(detector.evidence())
    'quiet'
    >>> _ = detector.update([20.0], [1_364_792_400_000])
    >>> status_text(detector.evidence())
    'active'
    >>> _ = detector.update([0.5], [1_364_792_500_000])
    >>> status_text(detector.evidence())
    'triggered on 2013-04-01 05:00:00 UTC'
    """
    if test.status != "triggered" or test.last is None:
        return test.status
    when = event_time(test.last.first)
    return f"triggered {'at' if when.startswith('event time') else 'on'} {when}"
