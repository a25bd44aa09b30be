"""Event times and spans of event time as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["moment", "span"]

_FIRST_DATE = 100_000_000_000  # milliseconds: smaller event times are row numbers, not dates
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


def moment(time: int) -> str:
    """Return an event time in milliseconds as a date, or as a number where it is no date.

    Examples
    --------
    >>> moment(1_364_792_400_000), moment(1_234)
    ('2013-04-01 05:00:00 UTC', 'event time 1,234')
    """
    if time < _FIRST_DATE:
        return f"event time {time:,}"
    try:
        return f"{_EPOCH + timedelta(milliseconds=time):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return f"event time {time:,}"


def span(milliseconds: int) -> str:
    """Return a span of event time in the largest unit of which it has one.

    Examples
    --------
    >>> span(2_592_000_000), span(5_400_000), span(1)
    ('30 days', '1.5 hours', '0.001 seconds')
    """
    size, unit = next((one for one in _UNITS if milliseconds >= one[0]), _UNITS[-1])
    count = milliseconds / size
    return f"{count:.6g} {unit}{'' if count == 1 else 's'}"
