"""Event times and spans as text, `abers.monitoring.formats`."""

from __future__ import annotations

import pytest

from abers.monitoring.formats import duration, event_time


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (-5, "event time -5"),
        (9_999_999_999, "event time 9,999,999,999"),
        (10_000_000_000, "1970-04-26 17:46:40 UTC"),
        (17_280_000_000, "1970-07-20 00:00:00 UTC"),
        (1 << 62, "event time 4,611,686,018,427,387,904"),
    ],
)
def test_event_time(time: int, text: str) -> None:
    """A time is a date from April 1970 on, as far as the calendar goes; else it is a number."""
    assert event_time(time) == text


@pytest.mark.parametrize(
    ("time", "text"),
    [(86_400_000, "1 day"), (129_600_000, "1.5 days"), (60_000, "1 minute"), (2, "0.002 seconds")],
)
def test_duration(time: int, text: str) -> None:
    """A span is written in the largest unit of which it has one."""
    assert duration(time) == text
