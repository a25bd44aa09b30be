"""The figure of promised and came over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.pages.figures import paint
from abers.pages.figures.canvas import Box, Canvas
from abers.pages.figures.plot import Plot, per_cent_axis, waiting
from abers.pages.figures.scales import drawn, finite, number_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.pages.figures.data import Column, OverTimeData

__all__ = ["over_time"]

_FEW = 60  # windows; their dots do not meet
_RAW, _CALIBRATED = paint.stroked("raw", 2.2, "7 4"), paint.stroked("cal", 2.2)
_PER_CENT = "\N{NO-BREAK SPACE}%"


def over_time(data: OverTimeData, width: float) -> Canvas:
    """Draw came as dots with their 95 % band, and raw and calibrated promises as lines."""
    shown = _Windows(data)
    known = shown.known()
    if not known:
        return waiting(width, data["missing"])
    canvas = Canvas(width, min(310.0, 130 + width // 3))
    now = finite(data["now"])
    marks = [*data["x"], *data["ends"], *data["alarms"], *([] if now is None else [now])]
    plot = Plot(canvas, marks, data["zone"], per_cent_axis(known))
    spans = _spans(plot, now, data["reference"])
    for _, span, ink in spans:
        canvas.rectangle(span, ink)
    plot.draw_y_ticks()
    plot.draw_x_ticks()
    shown.draw(plot)
    plot.draw_alarms(data["alarms"])
    plot.name_alarms(data["alarms"])
    for words, span, _ in spans:
        plot.name(span, words)
    return canvas


def _spans(
    plot: Plot, now: float | None, reference: tuple[float, float] | None
) -> list[tuple[str, Box, str]]:
    """Return the parts that are shaded: their names, places and paints."""
    spans = [] if now is None else [("now", plot.span(now), paint.NOW)]
    if reference is not None:
        spans.append(("reference", plot.span(*reference), paint.REFERENCE))
    return [one for one in spans if one[1].left < one[1].right]


class _Windows:
    """The windows that are drawn, in per cent."""

    def __init__(self, data: OverTimeData) -> None:
        picked = drawn(len(data["x"]))
        self._x = [finite(data["x"][one]) for one in picked]
        self._labels = [data["labels"][one] for one in picked]
        self._came = _per_cent(data["came"], picked)
        self._low, self._high = _per_cent(data["low"], picked), _per_cent(data["high"], picked)
        self._raw = _per_cent(data["raw"], picked)
        self._calibrated = _per_cent(data["calibrated"], picked)
        self._open = data["open"]

    def known(self) -> list[float]:
        """Return all values that stand at a place."""
        columns = (self._came, self._low, self._high, self._raw, self._calibrated)
        return [
            y
            for column in columns
            for x, y in zip(self._x, column, strict=True)
            if x is not None and y is not None
        ]

    def draw(self, plot: Plot) -> None:
        """Draw band, lines and dots, the dots last."""
        x_at, y_at = plot.along.scale.at, plot.rise.at

        def points(column: list[float | None]) -> list[tuple[float, float] | None]:
            pairs = zip(self._x, column, strict=True)
            return [None if x is None or y is None else (x_at(x), y_at(y)) for x, y in pairs]

        ends = zip(points(self._high), points(self._low), strict=True)
        plot.canvas.area(
            [None if not high or not low else (*high, low[1]) for high, low in ends], paint.BAND
        )
        plot.canvas.curve(points(self._raw), _RAW)
        plot.canvas.curve(points(self._calibrated), _CALIBRATED)
        came = points(self._came)
        plot.canvas.curve(came, paint.CAME_LINE)
        radius = 2.9 if len(came) <= _FEW else 1.5
        for index, point in enumerate(came):
            if point:
                hollow = self._open and index == len(came) - 1
                ink = paint.CAME_OPEN if hollow else paint.CAME
                plot.canvas.dot(point, radius, ink, self._title(index))

    def _title(self, index: int) -> str:
        low, high = self._low[index], self._high[index]
        range_text = "" if low is None or high is None else f" ({low:.1f} to {high:.1f})"
        promised = [
            f", {name} {column[index]:.1f}{_PER_CENT}"
            for name, column in (("raw", self._raw), ("calibrated", self._calibrated))
            if column[index] is not None
        ]
        came = f"came {self._came[index]:.1f}{_PER_CENT}{range_text}"
        return f"{number_text(self._labels[index])} labels: {came}{''.join(promised)}"


def _per_cent(column: Column, picked: Sequence[int]) -> list[float | None]:
    values = [finite(column[one]) for one in picked]
    return [None if one is None else 100 * one for one in values]
