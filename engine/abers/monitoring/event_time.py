"""Event times in words: dates where they are milliseconds since 1970, and row numbers otherwise."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["duration", "event_time", "is_date"]

# Milliseconds, in April 1970: smaller event times are row numbers, or seconds since 1970.
_FIRST_DATE = 10_000_000_000
_LAST_DATE = 253_402_300_800_000  # milliseconds: the calendar ends before
_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


def is_date(time: int) -> bool:
    """Return whether an event time is a date, in milliseconds since 1970, and no row number.

    Examples
    --------
    >>> is_date(1_700_000_000_000), is_date(1_700)
    (True, False)
    """
    return _FIRST_DATE <= time < _LAST_DATE


def event_time(time: int) -> str:
    """Return an event time in words.

    Examples
    --------
    >>> event_time(1_700_000_000_000), event_time(1_700)
    ('2023-11-14 22:13:20 UTC', 'event time 1,700')
    """
    if not is_date(time):
        return f"event time {time:,}"
    return f"{datetime.fromtimestamp(time / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def duration(milliseconds: int) -> str:
    """Return a span of event time in the largest unit that is not longer.

    Examples
    --------
    >>> duration(2_592_000_000), duration(5_400_000), duration(1)
    ('30 days', '1.5 hours', '0.001 seconds')
    """
    size, unit = next((one for one in _UNITS if milliseconds >= one[0]), _UNITS[-1])
    count = milliseconds / size
    return f"{count:.6g} {unit}{'' if count == 1 else 's'}"
