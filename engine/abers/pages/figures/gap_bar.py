"""The bar of a gap with its range, for a cell of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.pages.figures import paint
from abers.pages.figures.canvas import Box, Canvas
from abers.pages.figures.plot import waiting
from abers.pages.figures.scales import Scale, finite

if TYPE_CHECKING:
    from abers.pages.figures.data import GapData

__all__ = ["gap_bar"]

_HEIGHT, _MIDDLE = 26.0, 13.0
_INSET = 14.0  # room for an arrow next to a dot
_ARROW = 6.0  # from the end of the scale to an arrow
_LEAST = 1e-9  # limit of the scale
_CAP = 5.0  # of a range, above and below


def gap_bar(data: GapData, width: float) -> Canvas:
    """Draw a gap as a dot on its range; below 0, which is too high, is on the left."""
    gap = finite(data["gap"])
    if gap is None:
        return waiting(width, data["missing"], _HEIGHT)
    canvas = Canvas(width, _HEIGHT)
    limit = max(data["limit"], _LEAST)
    scale = Scale(-limit, limit, _INSET, width - _INSET)
    low, high = (scale.at(one) for one in data["tolerance"])
    canvas.rectangle(Box(low, 2, high, _HEIGHT - 2), paint.TOLERANCE)
    canvas.line((width / 2, 0), (width / 2, _HEIGHT), paint.MIDDLE)
    colour = paint.colour(data["which"])
    canvas.line(
        (scale.at(data["low"]), _MIDDLE),
        (scale.at(data["high"]), _MIDDLE),
        paint.stroked(colour, 2.4),
    )
    for value in (data["low"], data["high"]):
        _draw_end(canvas, scale, value, colour)
    canvas.dot((scale.at(gap), _MIDDLE), 4.6, f"{paint.filled(colour)} {paint.OUTLINE}")
    return canvas


def _draw_end(canvas: Canvas, scale: Scale, value: float, colour: str) -> None:
    """Draw a cap where a range ends, or an arrow where the scale ends before it."""
    x = scale.at(value)
    if scale.low <= value <= scale.high:
        canvas.line((x, _MIDDLE - _CAP), (x, _MIDDLE + _CAP), paint.stroked(colour, 2))
        return
    outward = -1 if value < 0 else 1
    base, tip = x + outward * _ARROW, x + outward * (_INSET - 1)
    canvas.line((x, _MIDDLE), (base, _MIDDLE), paint.stroked(colour, 2.4))
    arrow = [(tip, _MIDDLE), (base, _MIDDLE - _CAP), (base, _MIDDLE + _CAP)]
    canvas.shape(arrow, paint.filled(colour))
