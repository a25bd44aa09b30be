"""The plot of a figure: its area between two axes, their scales, the latest labels, and alarms."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from abers.pages.figures import paint
from abers.pages.figures.canvas import LINE, Anchor, Box, Canvas, text_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "AlongX",
    "Plot",
    "Scale",
    "Ticks",
    "TimeTick",
    "YAxis",
    "can_be_times",
    "drawn",
    "finite",
    "nice_ticks",
    "number_text",
    "per_cent_axis",
    "time_text",
    "time_ticks",
    "waiting",
    "widened",
    "y_axis",
]

MOST_POINTS = 200
_LARGEST = 1e100  # differences and products of these numbers are finite
_RESOLUTION = 1e-9  # of a scale, relative to its numbers
_PLAIN = 1e9  # larger numbers have an exponent
_MOST_DECIMALS = 6


class Scale(NamedTuple):
    """A linear map of values between two ends to coordinates; values outside stay at the ends."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the coordinate of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)


class Ticks(NamedTuple):
    """Multiples of 1, 2 or 5 times a power of ten."""

    values: list[float]
    step: float
    decimals: int


def finite(value: float | None) -> float | None:
    """Return a number that can be drawn, or None for a gap."""
    if value is None or not math.isfinite(value):
        return None
    return min(_LARGEST, max(-_LARGEST, float(value)))


def widened(values: Iterable[float]) -> tuple[float, float]:
    """Return the least and the largest value, moved apart if a scale cannot lie between them."""
    all_values = [*values]
    low, high = min(all_values), max(all_values)
    least = max(abs(low), abs(high), 1.0) * _RESOLUTION
    return (low, high) if high - low > least else (low - least * 10, high + least * 10)


def nice_ticks(low: float, high: float, most: int) -> Ticks:
    """Return at most `most` + 1 round numbers from `low` to `high`."""
    least = (high - low) / most
    exponent = math.floor(math.log10(least))
    factor = next(
        (one for one in (1, 2, 5) if one * 10.0**exponent >= least * (1 - _RESOLUTION)), 10
    )
    step = factor * 10.0**exponent
    decimals = max(0, -exponent - (factor == 10))  # noqa: PLR2004 - 10 is 1 with the next exponent
    first = math.ceil(low / step - _RESOLUTION)
    last = math.floor(high / step + _RESOLUTION)
    return Ticks([one * step for one in range(first, last + 1)], step, decimals)


def number_text(value: float, decimals: int = 0) -> str:
    """Write a number with thousands and a minus sign."""
    plain = abs(value) < _PLAIN and decimals <= _MOST_DECIMALS
    text = f"{value:,.{decimals}f}" if plain else f"{value:.3g}"
    if not text.strip("-0.,"):
        return "0"
    return text.replace("-", "\N{MINUS SIGN}")


def drawn(length: int) -> Sequence[int]:
    """Return the indices to draw of `length` points: all, or some at equal distances."""
    if length <= MOST_POINTS:
        return range(length)
    return [one * (length - 1) // (MOST_POINTS - 1) for one in range(MOST_POINTS)]


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


_TICK_WIDTH = 62.0  # of a text below the axis, with its distance to the next
_TEXT_GAP = 6.0
_TOP, _BOTTOM, _RIGHT = 22.0, 28.0, 8.0
_INSET = 6.0  # of the first and the last mark
_MOST_ALARMS = 40
_Y_TICKS = 6
_FAR = 1.5  # spreads from 0 to the least value, where an axis need not begin at 0
_SAME = 5.0  # points above and below values that are all the same
_WHOLE = 100.0
_SLACK = 1e-9  # of a step
_EMPTY = 64.0  # height of a figure that has nothing to draw


class AlongX(NamedTuple):
    """Times or row numbers along a figure."""

    scale: Scale
    zone: str | None

    @classmethod
    def over(cls, values: Iterable[float], zone: str | None, start: float, end: float) -> AlongX:
        """Return the axis over some values; without a zone they are row numbers."""
        low, high = widened(one for one in map(finite, values) if one is not None)
        known = zone if zone is not None and can_be_times(low, high) else None
        return cls(Scale(low, high, start, end), known)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the values of the ticks and their texts."""
        scale = self.scale
        most = max(1, int((scale.end - scale.start) // _TICK_WIDTH))
        if self.zone is not None:
            return [*time_ticks(scale.low, scale.high, self.zone, most)]
        ticks = nice_ticks(scale.low, scale.high, most)
        return [(one, number_text(one, ticks.decimals)) for one in ticks.values]

    def text(self, value: float) -> str:
        """Write a time or a row number."""
        if self.zone is None:
            return number_text(value)
        return time_text(value, self.scale.high - self.scale.low, self.zone)


class YAxis(NamedTuple):
    """The ends of an axis, and the values of its ticks with their texts."""

    low: float
    high: float
    ticks: list[tuple[float, str]]


def y_axis(low: float, high: float, unit: str) -> YAxis:
    """Return the axis from one round number to another around two values."""
    low, high = widened((low, high))
    step = nice_ticks(low, high, _Y_TICKS).step
    low = math.floor(low / step + _SLACK) * step
    high = math.ceil(high / step - _SLACK) * step
    ticks = nice_ticks(low, high, _Y_TICKS + 2)
    return YAxis(
        low, high, [(one, number_text(one, ticks.decimals) + unit) for one in ticks.values]
    )


def per_cent_axis(values: list[float]) -> YAxis:
    """Return an axis for values in per cent, from 0 unless they are far from it."""
    low, high = min(values), max(values)
    if low == high:
        low, high = max(0.0, low - _SAME), min(max(_WHOLE, high), high + _SAME)
    if 0 <= low <= (high - low) * _FAR:
        low = 0.0
    return y_axis(low, high, "\N{NO-BREAK SPACE}%")


def waiting(width: float, missing: int, height: float = _EMPTY) -> Canvas:
    """Return a figure that has nothing to draw: it states how many labels are needed."""
    canvas = Canvas(width, height)
    text = f"{number_text(missing)} more {'label' if missing == 1 else 'labels'} needed"
    canvas.note(text if missing > 0 else "no labels")
    return canvas


class Plot:
    """A canvas with an area, a scale along it and another up it.

    Parameters
    ----------
    canvas
        Where to draw.
    xs, zone
        Values that lie on the axis along, and the zone if they are times.
    axis
        The axis up.
    bottom
        Room below the area, in pixels.
    """

    def __init__(
        self,
        canvas: Canvas,
        xs: Iterable[float],
        zone: str | None,
        axis: YAxis,
        bottom: float = _BOTTOM,
    ) -> None:
        self.canvas = canvas
        widest = max(text_width(text) for _, text in axis.ticks)
        left = _TEXT_GAP + 2 + min(widest, canvas.width / 3)
        self.area = Box(left, _TOP, canvas.width - _RIGHT, canvas.height - bottom)
        self.rise = Scale(axis.low, axis.high, self.area.bottom, self.area.top)
        self.along = AlongX.over(xs, zone, self.area.left + _INSET, self.area.right - _INSET)
        self._axis = axis

    def draw_y_ticks(self) -> None:
        """Draw a hairline for each tick of the axis up."""
        for value, text in self._axis.ticks:
            y = self.rise.at(value)
            self.canvas.line((self.area.left, y), (self.area.right, y), paint.GRID)
            self.canvas.text(text, self.area.left - _TEXT_GAP, y + 4, "end")

    def draw_x_ticks(self) -> None:
        """Draw the ticks of the axis along."""
        for value, text in self.along.ticks():
            self.draw_tick(self.along.scale.at(value), text)

    def draw_tick(self, x: float, text: str) -> None:
        """Draw a tick below the area if its text has room."""
        bottom = self.area.bottom
        if self.canvas.text(text, x, bottom + LINE + 4, "middle"):
            self.canvas.line((x, bottom), (x, bottom + 4), paint.TICK)

    def span(self, start: float, end: float | None = None) -> Box:
        """Return the part of the area from a value to another, or to its right side."""
        area, scale = self.area, self.along.scale
        right = area.right if end is None else scale.at(min(end, scale.high))
        return Box(scale.at(max(start, scale.low)), area.top, right, area.bottom)

    def name(self, span: Box, words: str) -> None:
        """Name a part of the area above it, or inside where alarms take that room."""
        half = text_width(words) / 2
        last = self.canvas.width - half
        middle = min(max((span.left + span.right) / 2, half), last)
        above, inside = span.top - _TEXT_GAP + 1, span.top + LINE
        for place in ((middle, above), (min(span.right, last), above), (middle, inside)):
            if self.canvas.text(words, *place, "middle", paint.INK):
                return

    def draw_alarms(self, alarms: list[float]) -> None:
        """Draw a line with a triangle for each of the latest alarms."""
        top = self.area.top
        for x, text in self._alarms(alarms):
            self.canvas.line((x, top), (x, self.area.bottom), paint.ALARM)
            triangle = [(x - 5, top - 9), (x + 5, top - 9), (x, top - 1)]
            self.canvas.shape(triangle, paint.ALARM_MARK, text)
            self.canvas.keep_free(Box(x - 5, top - 9, x + 5, top))

    def name_alarms(self, alarms: list[float]) -> None:
        """Write the times of alarms that have room, the latest first."""
        y, middle = self.area.top - _TEXT_GAP + 1, (self.area.left + self.area.right) / 2
        for x, text in reversed(self._alarms(alarms)):
            sides: list[tuple[float, Anchor]] = [(x + 8, "start"), (x - 8, "end")]
            for place, anchor in sides if x < middle else reversed(sides):
                if self.canvas.text(text, place, y, anchor, paint.ALARM_MARK):
                    break

    def _alarms(self, alarms: list[float]) -> list[tuple[float, str]]:
        """Return the places of the latest alarms with their texts."""
        known = [one for one in map(finite, alarms) if one is not None][-_MOST_ALARMS:]
        word = "alarm" if self.along.zone else "alarm at"
        return [(self.along.scale.at(one), f"{word} {self.along.text(one)}") for one in known]
