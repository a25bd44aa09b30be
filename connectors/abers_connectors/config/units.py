"""Durations, times and counts as text, exact and without rounding."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from abers.stream.settings import LARGEST_TIME

__all__ = ["counted", "duration", "is_time", "milliseconds", "moment", "short_duration"]

_UNITS = {
    "d": (86_400_000, "day"),
    "h": (3_600_000, "hour"),
    "m": (60_000, "minute"),
    "s": (1000, "second"),
    "ms": (1, "millisecond"),
}
# int() refuses thousands of digits, and far fewer are too large already.
_DURATION_PATTERN = re.compile(rf"(\d{{1,60}})({'|'.join(_UNITS)})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_time(value: object) -> bool:
    """Return whether this is a whole number of milliseconds, up to `LARGEST_TIME`."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_TIME


def milliseconds(value: object) -> int | None:
    """Read a duration; return None for anything else.

    >>> milliseconds("5m"), milliseconds(250), milliseconds("soon")
    (300000, 250, None)
    """
    if isinstance(value, str) and (found := _DURATION_PATTERN.fullmatch(value)):
        value = int(found[1]) * _UNITS[found[2]][0]
    return value if isinstance(value, int) and is_time(value) else None


def duration(span: int) -> str:
    """Write a duration in its largest whole unit.

    >>> duration(604_800_000), duration(60_000), duration(1_500), duration(0)
    ('7 days', '1 minute', '1,500 milliseconds', '0 seconds')
    """
    if span == 0:
        return "0 seconds"
    size, unit = next((size, unit) for size, unit in _UNITS.values() if span % size == 0)
    return counted(span // size, unit)


def short_duration(span: int) -> str:
    """Write a duration as configurations do, in its largest whole unit.

    >>> short_duration(604_800_000), short_duration(10), short_duration(0)
    ('7d', '10ms', '0s')
    """
    units = {short: size for short, (size, _) in _UNITS.items() if span % size == 0}
    short = next(iter(units)) if span else "s"
    return f"{span // _UNITS[short][0]}{short}"


def counted(number: int, noun: str) -> str:
    """Write a number and its noun.

    >>> counted(1, "record"), counted(2_000, "record")
    ('1 record', '2,000 records')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def moment(time: int) -> str:
    """Write a time in milliseconds since 1970 as RFC 3339, if the calendar has it.

    >>> moment(1_700_000_000_000), moment(2**62)
    ('2023-11-14T22:13:20.000Z', '4611686018427387904 ms')
    """
    try:
        found = _EPOCH + timedelta(milliseconds=time)
    except OverflowError:
        return f"{time} ms"
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")
