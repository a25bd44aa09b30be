"""Ticks along a time axis, at round local times, and the texts of times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

__all__ = ["TimeTick", "can_be_times", "time_text", "time_ticks"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_START = datetime(1, 1, 1)  # noqa: DTZ001 - a local time, and a Monday
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
# Times with local dates, and ticks around them, that are in the calendar.
_FIRST = (datetime(3, 1, 1, tzinfo=UTC) - _EPOCH) / timedelta(milliseconds=1)
_LAST = (datetime(9998, 1, 1, tzinfo=UTC) - _EPOCH) / timedelta(milliseconds=1)

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_MONTH = 2_629_746  # the mean, in seconds
_YEAR = 12  # months
_SECONDS = (
    *(1, 5, 15, 30),
    *(one * _MINUTE for one in (1, 5, 15, 30)),
    *(one * _HOUR for one in (1, 3, 6, 12)),
    *(one * _DAY for one in (1, 2, 4, 7, 14)),
)
_MONTH_STEPS = (
    1,
    2,
    3,
    6,
    *(_YEAR * one * ten for ten in (1, 10, 100, 1_000) for one in (1, 2, 5)),
)
_LONG, _SHORT = 366 * _DAY, 2 * _DAY


class TimeTick(NamedTuple):
    """A round local time, in milliseconds since 1970."""

    value: float
    text: str


def can_be_times(low: float, high: float) -> bool:
    """Return whether numbers from `low` to `high` are milliseconds of years in the calendar."""
    return low > _FIRST and high < _LAST


def time_ticks(low: float, high: float, zone: str, most: int) -> list[TimeTick]:
    """Return about `most` round times from `low` to `high`, by the finest step that allows it."""
    place = ZoneInfo(zone)
    span = (high - low) / 1_000
    first, last = _local(low, place), _local(high, place)
    last = max(last, first + timedelta(seconds=span))  # clocks may be set back in between
    step = next((one for one in _SECONDS if span / one <= most), None)
    if step:
        found = _by_seconds(first, last, step, place)
    else:
        months = (one for one in _MONTH_STEPS if span / _MONTH / one <= most)
        found = _by_months(first, last, next(months, _MONTH_STEPS[-1]), place)
    return [one for one in found if low <= one.value <= high]


def time_text(value: float, span: float, zone: str) -> str:
    """Write a time on an axis of `span` milliseconds as people name it there."""
    local = _local(value, ZoneInfo(zone))
    if span > _LONG * 1_000:
        return f"{_day(local)} {local.year}"
    return _day(local) if span >= _SHORT * 1_000 else f"{local:%H:%M}"


def _local(value: float, place: tzinfo) -> datetime:
    moment = _EPOCH + timedelta(milliseconds=value)
    return moment.astimezone(place).replace(tzinfo=None)


def _by_seconds(first: datetime, last: datetime, step: int, place: ZoneInfo) -> list[TimeTick]:
    second = timedelta(seconds=1)
    start, end = ((one - _START) // second for one in (first, last))
    multiples = range(start // step, end // step + 1)
    local = [_START + timedelta(seconds=one * step) for one in multiples]
    kept = [one for one in local if step >= _DAY or _exists(one, place)]
    return [TimeTick(_value(one, place), _clock_text(one, step)) for one in kept]


def _by_months(first: datetime, last: datetime, step: int, place: ZoneInfo) -> list[TimeTick]:
    start, end = (one.year * _YEAR + one.month - 1 for one in (first, last))
    multiples = range(-(-start // step) * step, end + 1, step)
    local = [datetime(one // _YEAR, one % _YEAR + 1, 1) for one in multiples]  # noqa: DTZ001
    return [TimeTick(_value(one, place), _month_text(one)) for one in local]


def _value(local: datetime, place: ZoneInfo) -> float:
    return (local.replace(tzinfo=place) - _EPOCH) / timedelta(milliseconds=1)


def _exists(local: datetime, place: ZoneInfo) -> bool:
    """Return whether clocks show a local time; they skip some when they are set forward."""
    return _local(_value(local, place), place) == local


def _clock_text(local: datetime, step: int) -> str:
    if step >= _DAY or (local.hour, local.minute, local.second) == (0, 0, 0):
        return _day(local)
    return f"{local:%H:%M:%S}" if step < _MINUTE else f"{local:%H:%M}"


def _day(local: datetime) -> str:
    return f"{local.day}\N{NO-BREAK SPACE}{_MONTHS[local.month - 1]}"


def _month_text(local: datetime) -> str:
    return str(local.year) if local.month == 1 else _MONTHS[local.month - 1]
