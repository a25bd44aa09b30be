"""The figure of the weights of methods over time."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from abers.pages.figures import paint
from abers.pages.figures.canvas import LINE, Box, Canvas, shortened, text_width
from abers.pages.figures.plot import Plot, waiting, y_axis
from abers.pages.figures.scales import drawn, finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.pages.figures.data import SharesData

__all__ = ["shares"]

_AREA = 200.0  # height of the stacked areas with their axis
_BELOW_AREA = 28.0
_ROW = LINE + 4
_PATCH, _PATCH_GAP, _BETWEEN, _MARGIN = 18.0, 5.0, 16.0, 8.0
_THICK = 17.0  # an area that has room for its number
_OTHERS = "others"
_PER_CENT = "\N{NO-BREAK SPACE}%"


class _Method(NamedTuple):
    name: str
    weights: list[float]


def shares(data: SharesData, width: float) -> Canvas:
    """Draw the weights as stacked and numbered areas, the first name lowest, and a legend."""
    picked = [one for one in drawn(len(data["x"])) if finite(data["x"][one]) is not None]
    whole = [_whole(data, one) for one in picked]
    methods = _largest(data["names"], [one for one in whole if one])
    if not methods or not methods[0].weights:
        return waiting(width, data["missing"])
    legend = _Legend(methods, width)
    canvas = Canvas(width, _AREA + legend.height)
    below = legend.height + _BELOW_AREA
    xs = [data["x"][one] for one in picked]
    plot = Plot(canvas, xs, data["zone"], y_axis(0, 100, _PER_CENT), below)
    plot.draw_y_ticks()
    plot.draw_x_ticks()
    _draw_areas(plot, xs, [one is not None for one in whole], methods)
    legend.draw(canvas)
    return canvas


def _whole(data: SharesData, index: int) -> list[float] | None:
    """Return the weights at one place, or None if one of them is missing."""
    cells = [finite(column[index]) for column in data["shares"]]
    known = [max(0.0, one) for one in cells if one is not None]
    return known if len(known) == len(cells) else None


def _largest(names: list[str], rows: Sequence[list[float]]) -> list[_Method]:
    """Return the methods with the largest weights; together the others are the last."""
    methods = [_Method(name, [row[one] for row in rows]) for one, name in enumerate(names)]
    if len(methods) <= paint.METHODS:
        return methods
    order = sorted(range(len(methods)), key=lambda one: -sum(methods[one].weights))
    kept = sorted(order[: paint.METHODS - 1])
    left = [methods[one].weights for one in order[paint.METHODS - 1 :]]
    others = [sum(weights) for weights in zip(*left, strict=True)]
    return [*(methods[one] for one in kept), _Method(_OTHERS, others)]


def _draw_areas(plot: Plot, xs: list[float], whole: list[bool], methods: list[_Method]) -> None:
    """Draw an area for each method on those before it, with gaps where weights are missing."""
    rows = zip(*(one.weights for one in methods), strict=True)
    tops = [[0.0, *accumulate(row)] for row in rows]
    for number, method in enumerate(methods):
        left = iter(tops)
        edges: list[tuple[float, float, float] | None] = []
        for x, known in zip(xs, whole, strict=True):
            if not known:
                edges.append(None)
                continue
            top = next(left)
            bottom, end = (plot.rise.at(100 * one) for one in top[number : number + 2])
            edges.append((plot.along.scale.at(x), end, bottom))
        plot.canvas.area(edges, f"{paint.filled(f'm{number + 1}')} {paint.EDGE}", method.name)
        _draw_number(plot, number + 1, edges)


def _draw_number(plot: Plot, number: int, edges: list[tuple[float, float, float] | None]) -> None:
    """Write the number of a method where its area is thickest, if it has room there."""
    first, last = plot.along.scale.start + _THICK / 2, plot.along.scale.end - _THICK / 2
    inner = [one for one in edges if one and first <= one[0] <= last]
    x, top, bottom = max(inner, key=lambda one: one[2] - one[1], default=(0.0, 0.0, 0.0))
    if bottom - top >= _THICK:
        plot.canvas.text(str(number), x, (top + bottom) / 2 + 4, "middle", paint.ON_COLOUR)


class _Legend:
    """Names with their latest weights, in rows that are as long as the figure is wide."""

    def __init__(self, methods: list[_Method], width: float) -> None:
        most = width - 2 * _MARGIN - _PATCH - _PATCH_GAP
        self._places: list[tuple[float, int, str]] = []
        x, row = _MARGIN, 0
        for method in methods:
            weight = f" {_weight_text(method.weights[-1])}"
            text = shortened(method.name, most - text_width(weight)) + weight
            wide = _PATCH + _PATCH_GAP + text_width(text)
            if x > _MARGIN and x + wide > width - _MARGIN:
                x, row = _MARGIN, row + 1
            self._places.append((x, row, text))
            x += wide + _BETWEEN
        self.height = (row + 1) * _ROW + 4

    def draw(self, canvas: Canvas) -> None:
        """Draw a patch with the number of each method, and its text."""
        for number, (x, row, text) in enumerate(self._places, 1):
            y = _AREA + row * _ROW + LINE
            patch = Box(x, y - LINE + 3, x + _PATCH, y + 3)
            canvas.rectangle(patch, paint.filled(f"m{number}"))
            canvas.text(str(number), x + _PATCH / 2, y, "middle", paint.ON_COLOUR)
            canvas.text(text, x + _PATCH + _PATCH_GAP, y)


def _weight_text(weight: float) -> str:
    """Write a weight in per cent, never as a 0 that is not 0."""
    shown = f"{100 * weight:.0f}"
    return f"{'< 1' if shown == '0' and weight > 0 else shown}{_PER_CENT}"
