"""The small line of a gap, or of what is saved, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.pages.figures import paint
from abers.pages.figures.canvas import Box, Canvas
from abers.pages.figures.plot import waiting
from abers.pages.figures.scales import Scale, drawn, finite, widened

if TYPE_CHECKING:
    from abers.pages.figures.data import SparkData

__all__ = ["spark"]

_TALL, _SMALL = 44.0, 24.0
_NARROW = 150.0  # a cell of a table
_INSET = 4.0
_DOT = 3.4


def spark(data: SparkData, width: float) -> Canvas:
    """Draw a line over its tolerance and the line of 0, ending in a dot."""
    canvas = Canvas(width, _TALL if width > _NARROW else _SMALL)
    picked = drawn(len(data["x"]))
    pairs = [(finite(data["x"][one]), finite(data["y"][one])) for one in picked]
    known = [(x, y) for x, y in pairs if x is not None and y is not None]
    if not known:
        return waiting(width, data["missing"], canvas.height)
    along, rise = _scales(data, canvas, known)
    _draw_behind(data, canvas, along, rise)
    line = paint.stroked(paint.colour(data["which"]), 2)
    canvas.curve(
        [None if x is None or y is None else (along.at(x), rise.at(y)) for x, y in pairs], line
    )
    x, y = known[-1]
    canvas.dot((along.at(x), rise.at(y)), _DOT, paint.filled(paint.colour(data["which"])))
    return canvas


def _scales(
    data: SparkData, canvas: Canvas, known: list[tuple[float, float]]
) -> tuple[Scale, Scale]:
    """Return the scale along and the scale up, which has room for 0 and the tolerance."""
    now = finite(data["now"])
    xs = [*(x for x, _ in known), *_alarms(data), *([] if now is None else [now])]
    ys = [*(y for _, y in known), *(data["tolerance"] or ()), 0.0]
    along = Scale(*widened(xs), _INSET, canvas.width - _INSET)
    return along, Scale(*widened(ys), canvas.height - _INSET, _INSET)


def _alarms(data: SparkData) -> list[float]:
    return [one for one in map(finite, data["alarms"]) if one is not None]


def _draw_behind(data: SparkData, canvas: Canvas, along: Scale, rise: Scale) -> None:
    now = finite(data["now"])
    if now is not None:
        canvas.rectangle(Box(along.at(now), 0, canvas.width, canvas.height), paint.NOW)
    if data["tolerance"]:
        low, high = data["tolerance"]
        canvas.rectangle(Box(0, rise.at(high), canvas.width, rise.at(low)), paint.TOLERANCE)
    canvas.line((0, rise.at(0)), (canvas.width, rise.at(0)), paint.MIDDLE)
    for alarm in _alarms(data):
        x = along.at(alarm)
        canvas.line((x, 0), (x, canvas.height), paint.ALARM)
