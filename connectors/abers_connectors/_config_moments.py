"""Numbers and times in words.

Governing rule: what is exact stays exact; only the unit is chosen.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["counted", "duration", "moment"]

_UNITS = {86_400_000: "day", 3_600_000: "hour", 60_000: "minute", 1000: "second", 1: "millisecond"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def duration(milliseconds: int) -> str:
    """Write a duration in its largest whole unit.

    Examples
    --------
    >>> duration(604_800_000), duration(60_000), duration(1_500), duration(0)
    ('7 days', '1 minute', '1,500 milliseconds', '0 seconds')
    """
    if milliseconds == 0:
        return "0 seconds"
    size = next(size for size in _UNITS if milliseconds % size == 0)
    return counted(milliseconds // size, _UNITS[size])


def counted(number: int, what: str) -> str:
    """Write how many of something there are.

    Examples
    --------
    >>> counted(1, "record"), counted(2_000, "record")
    ('1 record', '2,000 records')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def moment(time: int) -> str:
    """Write a time, in milliseconds since 1970, as RFC 3339, if a calendar has it.

    Examples
    --------
    >>> moment(1_700_000_000_000), moment(2**62)
    ('2023-11-14T22:13:20.000Z', '4611686018427387904 ms')
    """
    try:
        found = _EPOCH + timedelta(milliseconds=time)
    except OverflowError:
        return f"{time} ms"
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")
