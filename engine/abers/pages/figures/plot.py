"""The plot of a figure: its area between two axes, the latest labels, and alarms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from abers.pages.figures import paint
from abers.pages.figures.canvas import LINE, Anchor, Box, Canvas, text_width
from abers.pages.figures.scales import Scale, finite, nice_ticks, number_text, widened
from abers.pages.figures.time_ticks import can_be_times, time_text, time_ticks

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AlongX", "Plot", "YAxis", "per_cent_axis", "waiting", "y_axis"]

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
