"""The figure of the latest labels with their intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from abers.pages.figures import paint
from abers.pages.figures.canvas import Box, Canvas
from abers.pages.figures.plot import AlongX, Plot, waiting, y_axis
from abers.pages.figures.scales import finite

if TYPE_CHECKING:
    from abers.pages.figures.data import IntervalBand, IntervalsData

__all__ = ["intervals"]

_MOST_LABELS = 60
_OPACITIES = (0.18, 0.3, 0.5)  # from the widest interval to the narrowest
_BAR = 0.6  # of the distance from bar to bar
_WIDEST = 10.0
_TICK_WIDTH = 80.0
_OUTSIDE = 4.6  # radius


def intervals(data: IntervalsData, width: float) -> Canvas:
    """Draw bars of the intervals and a dot for each label, large and red if it is outside."""
    shown = _Labels(data)
    values = shown.values()
    if not values:
        return waiting(width, data["missing"])
    canvas = Canvas(width, min(290.0, 130 + width // 3))
    axis = y_axis(min(values), max(values), data["unit"])
    plot = Plot(canvas, range(len(shown)), None, axis)
    plot.draw_y_ticks()
    shown.draw(plot)
    times = AlongX.over(data["x"], data["zone"], plot.area.left, plot.area.right)
    for index in range(0, len(shown), max(1, round(_TICK_WIDTH / shown.distance(plot)))):
        plot.draw_tick(plot.along.scale.at(index), times.text(shown.x(index)))
    return canvas


class _Labels:
    """The labels that are drawn, at equal distances."""

    def __init__(self, data: IntervalsData) -> None:
        self._first = max(0, len(data["label"]) - _MOST_LABELS)
        self._data = data
        self._bands = sorted(data["bands"], key=lambda one: -one["level"])

    def __len__(self) -> int:
        return len(self._data["label"]) - self._first

    def x(self, index: int) -> float:
        """Return the time or the row number of a label."""
        return self._data["x"][self._first + index]

    def distance(self, plot: Plot) -> float:
        """Return the pixels from a label to the next."""
        scale = plot.along.scale
        return (scale.end - scale.start) / max(1, len(self) - 1)

    def values(self) -> list[float]:
        """Return all labels and ends of intervals that can be drawn."""
        ends = [one[side] for one in self._bands for side in ("low", "high")]
        columns = [self._data["label"], *ends]
        cells = [finite(cell) for column in columns for cell in column[self._first :]]
        return [one for one in cells if one is not None]

    def draw(self, plot: Plot) -> None:
        """Draw the bars, the widest first, and the dots on them."""
        half = min(_WIDEST, _BAR * self.distance(plot)) / 2
        for band, opacity in zip(self._bands, _OPACITIES, strict=False):
            for index in range(len(self)):
                ends = self._ends(band, index)
                if ends:
                    x, (bottom, top) = plot.along.scale.at(index), map(plot.rise.at, ends)
                    bar = Box(x - half, top, x + half, bottom)
                    plot.canvas.rectangle(bar, paint.filled("cal", opacity))
        for index in range(len(self)):
            self._draw_label(plot, index, min(2.8, half + 0.4))

    def _ends(self, band: IntervalBand, index: int) -> tuple[float, float] | None:
        """Return the ends of an interval, which may be infinite, or None for a gap."""
        low, high = (band[side][self._first + index] for side in ("low", "high"))
        if low is None or high is None or math.isnan(low) or math.isnan(high):
            return None
        return low, high

    def _draw_label(self, plot: Plot, index: int, radius: float) -> None:
        label = finite(self._data["label"][self._first + index])
        if label is None:
            return
        ends = self._ends(self._bands[0], index) if self._bands else None
        outside = ends is not None and not ends[0] <= label <= ends[1]
        point = (plot.along.scale.at(index), plot.rise.at(label))
        if outside:
            plot.canvas.dot(point, _OUTSIDE, f"{paint.ALARM_MARK} {paint.OUTLINE}", "outside")
        else:
            plot.canvas.dot(point, radius, paint.CAME)
