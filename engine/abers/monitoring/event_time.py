"""Event times in words: dates where they are milliseconds since 1970, and row numbers otherwise."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["event_time", "is_date"]

_FIRST_DATE = 100_000_000_000  # milliseconds, in 1973: smaller event times are row numbers


def is_date(time: int) -> bool:
    """Return whether an event time is a date, in milliseconds since 1970, and no row number.

    Examples
    --------
    >>> is_date(1_700_000_000_000), is_date(1_700)
    (True, False)
    """
    return time >= _FIRST_DATE


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
