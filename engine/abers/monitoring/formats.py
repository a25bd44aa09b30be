"""Numbers, dates and event times as a person reads them; see `Row` for what the numbers mean."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "NO_BREAK",
    "change",
    "count",
    "day",
    "decimals",
    "down",
    "duration",
    "event_time",
    "is_date",
    "loss",
    "moment",
    "number",
    "per_cent",
    "period",
    "probability",
    "signed",
    "significant",
    "span",
    "to_one",
    "up",
]

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


NO_BREAK = "\N{NO-BREAK SPACE}"
_MINUS, _DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
_DUST = 1e-9  # of a place, by which products may be off
_WIDE = 10.0  # points: a range so wide leaves no decimals
_MINUTE = 60_000  # milliseconds
_MOST_DECIMALS = 12
_LARGEST = 30  # power of ten
_PLAIN = 7  # digits of evidence that is written out
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def decimals(low: float, high: float) -> int:
    """Return the decimals of a number with this range: one, or none if it is wide."""
    return 0 if high - low >= _WIDE else 1


def number(value: float, places: int) -> str:
    """Return a number with so many decimals, or with more if it would be a 0 that it is not.

    What 12 decimals do not show is an error of arithmetic, and shown as 0.

    Examples
    --------
    >>> number(-12.34, 1), number(12_345.6, 0), number(0.04, 1), number(-1e-15, 1)
    ('−12.3', '12,346', '0.04', '0.0')
    """
    value = value if round(value, _MOST_DECIMALS) else 0.0
    while value and round(value, places) == 0.0:
        places += 1
    return f"{value:,.{places}f}".replace("-", _MINUS)


def signed(value: float, places: int) -> str:
    """Return a number with its sign.

    Examples
    --------
    >>> signed(1.06, 1), signed(-1.06, 1), signed(0.0, 1)
    ('+1.1', '−1.1', '0.0')
    """
    return f"+{number(value, places)}" if value > 0.0 else number(value, places)


def span(ends: Sequence[float], places: int, *, signs: bool = False) -> str:
    """Return a range.

    Examples
    --------
    >>> span((6.2, 18.1), 0), span((-0.46, 1.12), 1, signs=True)
    ('6 to 18', '−0.5 to +1.1')
    """
    return " to ".join((signed if signs else number)(end, places) for end in ends)


def per_cent(share: float, places: int | None = 1) -> str:
    """Return a share in per cent, with all its digits if no number of places is given.

    Examples
    --------
    >>> per_cent(0.3561, 0).replace(NO_BREAK, "_"), per_cent(0.0449).replace(NO_BREAK, "_")
    ('36_%', '4.5_%')
    >>> per_cent(0.1, None).replace(NO_BREAK, "_"), per_cent(0.00025, None).replace(NO_BREAK, "_")
    ('10_%', '0.025_%')
    """
    shown = f"{100.0 * share:.12g}" if places is None else number(100.0 * share, places)
    return f"{shown}{NO_BREAK}%"


def change(saved: float) -> str:
    """Return how a loss changed from the share of it that was saved.

    Examples
    --------
    >>> change(0.0449).replace(NO_BREAK, "_"), change(-0.002).replace(NO_BREAK, "_")
    ('4.5_% lower', '0.2_% higher')
    """
    return f"{per_cent(abs(saved))} {'lower' if saved >= 0.0 else 'higher'}"


def probability(value: float) -> str:
    """Return a probability at which groups meet: with two decimals, or more if it has them.

    Examples
    --------
    >>> probability(0.3), probability(0.004)
    ('0.30', '0.004')
    """
    return max(f"{value:.2f}", f"{value:.7f}".rstrip("0"), key=len)


def count(value: float) -> str:
    """Return a count.

    Examples
    --------
    >>> count(12_345)
    '12,345'
    """
    return f"{value:,.0f}"


def loss(value: float) -> str:
    """Return a log loss.

    Examples
    --------
    >>> loss(0.49731)
    '0.497'
    """
    return number(value, 3)


def significant(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, such as an error in the unit of the label.

    Examples
    --------
    >>> significant(4.3267), significant(0.0012345), significant(12_345.6)
    ('4.33', '0.00123', '12,346')
    """
    if not value:
        return number(value, 0)
    return number(value, max(digits - 1 - math.floor(math.log10(abs(value))), 0))


def down(value: float, places: int) -> str:
    """Return what a number is at least, so rounded towards 0, but to no 0 that it is not.

    Examples
    --------
    >>> down(3.79, 1), down(0.04, 1), down(0.079, 1)
    ('3.7', '0.04', '0.07')
    """
    while not (rounded := math.floor(value * 10**places) / 10**places) and places < _MOST_DECIMALS:
        places += 1
    return number(rounded, places) if rounded else number(value, 1)


def up(value: float, places: int) -> str:
    """Return what a number is at most, so rounded away from 0.

    Examples
    --------
    >>> up(3.71, 1), up(0.04, 1), up(2.0, 1)
    ('3.8', '0.1', '2.0')
    """
    return number(math.ceil(value * 10**places - _DUST) / 10**places, places)


def to_one(logarithm: float) -> str:
    """Return evidence as odds.

    Examples
    --------
    >>> [to_one(math.log(one)) for one in (3_123.4, 4e10, 1e40)]
    ['3,123 to 1', '4 · 10¹⁰ to 1', 'over 10³⁰ to 1']
    >>> [to_one(math.log(one)) for one in (0.25, 9.7e15)], to_one(math.inf)
    (['0.25 to 1', '1 · 10¹⁶ to 1'], 'over 10³⁰ to 1')
    """
    power = logarithm / math.log(10.0)
    if power > _LARGEST:
        return f"over 10{str(_LARGEST).translate(_SUPERSCRIPTS)} to 1"
    if power < _PLAIN:
        size = math.exp(logarithm)
        return f"{significant(size, 2 if size < 1.0 else 1)} to 1"
    whole = math.floor(power)
    leading = round(10 ** (power - whole))
    leading, whole = (1, whole + 1) if leading == 10 else (leading, whole)  # noqa: PLR2004
    return f"{leading} · 10{str(whole).translate(_SUPERSCRIPTS)} to 1"


def day(time: int, zone: str = "UTC") -> str:
    """Return the day of an event time, or its number if it is no date.

    Examples
    --------
    >>> day(1_385_000_000_000).replace(NO_BREAK, " "), day(1_700).replace(NO_BREAK, " ")
    ('21 Nov 2013', 'event time 1,700')
    """
    return _joined(_day(_at(time, zone))) if is_date(time) else _numbered(time)


def moment(time: int, zone: str = "UTC") -> str:
    """Return day, hour and minute of an event time, or its number if it is no date.

    Examples
    --------
    >>> moment(1_385_000_000_000).replace(NO_BREAK, " ")
    '21 Nov 2013, 02:13'
    """
    if not is_date(time):
        return _numbered(time)
    at = _at(time, zone)
    return _joined(f"{_day(at)}, {at:%H:%M}")


def period(start: int, until: int, zone: str = "UTC") -> str:
    """Return from when to when, with what both have in common once.

    Examples
    --------
    >>> def shown(start, until):
    ...     return period(start, until).replace(NO_BREAK, " ")
    >>> shown(1_382_918_400_000, 1_385_769_600_000), shown(1_385_769_600_000, 1_388_534_400_000)
    ('28 Oct – 30 Nov 2013', '30 Nov 2013 – 1 Jan 2014')
    >>> shown(1_385_769_600_000, 1_385_773_200_000), shown(1_385_769_600_000, 1_385_769_601_000)
    ('30 Nov 2013, 00:00 – 01:00', '30 Nov 2013, 00:00:00 – 00:00:01')
    >>> shown(3, 1_700), shown(5, 5)
    ('event times 3 – 1,700', 'event time 5')
    """
    if start == until:
        return moment(start, zone)
    if not (is_date(start) and is_date(until)):
        return _joined(f"event times {start:,} {_DASH} {until:,}")
    first, last = _at(start, zone), _at(until, zone)
    if first.date() == last.date():
        clock = "%H:%M:%S" if until - start < _MINUTE else "%H:%M"
        return _joined(f"{_day(first)}, {first:{clock}} {_DASH} {last:{clock}}")
    begin = _day(first)
    if first.year == last.year:
        begin = f"{first.day}" if first.month == last.month else f"{first.day} {first:%b}"
    return _joined(f"{begin} {_DASH} {_day(last)}")


def _at(time: int, zone: str) -> datetime:
    return datetime.fromtimestamp(time / 1000, ZoneInfo(zone))


def _day(at: datetime) -> str:
    return f"{at.day} {at:%b} {at.year}"


def _numbered(time: int) -> str:
    return _joined(f"event time {time:,}")


def _joined(text: str) -> str:
    return text.replace(" ", NO_BREAK)
