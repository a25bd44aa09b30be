"""Figures of promised against came, of intervals, and of shares."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from abers.pages.figures import paint
from abers.pages.figures.canvas import LINE, Box, Canvas, shortened, text_width
from abers.pages.figures.plot import (
    AlongX,
    Plot,
    Scale,
    drawn,
    finite,
    number_text,
    waiting,
    y_axis,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.pages.figures.data import IntervalBand, IntervalsData, ReliabilityData, SharesData

__all__ = ["intervals", "reliability", "shares"]

_LEFT, _RIGHT, _TOP = 52.0, 14.0, 10.0
_SQUARE = 0.9  # height of the area for its width
_COUNTS, _BARS, _BELOW = 46.0, 44.0, 42.0  # heights of what is below the area
_TICKS = [one / 100 for one in range(0, 101, 20)]
_CURVE = 40  # parts of the edges of the tolerance
_TENTHS = 10
_PER_CENT = "\N{NO-BREAK SPACE}%"
_DOT = 5.2


class _Group(NamedTuple):
    promised: float
    came: float
    low: float | None
    high: float | None
    title: str


def reliability(data: ReliabilityData, width: float) -> Canvas:
    """Draw groups as dots with ranges over the tolerance, and the cases by tenths below."""
    groups = _groups(data)
    if not groups:
        return waiting(width, data["missing"])
    side = _SQUARE * (width - _LEFT - _RIGHT)
    below = _COUNTS + _BARS if data["tenths"] else 0.0
    canvas = Canvas(width, _TOP + side + below + _BELOW)
    area = Box(_LEFT, _TOP, width - _RIGHT, _TOP + side)
    square = _Square(canvas, area, below, paint.colour(data["which"]))
    square.draw_axes()
    square.draw_tolerance(data["tolerance"])
    square.draw_isotonic(data["isotonic_x"], data["isotonic_y"])
    for group in groups:
        square.draw_group(group)
    square.draw_sides()
    if data["tenths"]:
        square.draw_tenths(data["tenths"])
    return canvas


def _groups(data: ReliabilityData) -> list[_Group]:
    """Return the groups that have both a promise and labels."""
    found = []
    for index, name in enumerate(data["names"]):
        columns = (data["promised"], data["came"], data["low"], data["high"])
        promised, came, low, high = (finite(column[index]) for column in columns)
        if promised is not None and came is not None:
            shares = f"promised {100 * promised:.1f}{_PER_CENT}, came {100 * came:.1f}{_PER_CENT}"
            title = f"{name}: {number_text(data['cases'][index])} cases, {shares}"
            found.append(_Group(promised, came, low, high, title))
    return found


class _Square:
    """The area of came against promised, and the bars below it."""

    def __init__(self, canvas: Canvas, area: Box, below: float, colour: str) -> None:
        self._canvas, self._area, self._colour = canvas, area, colour
        self._along = Scale(0, 1, area.left, area.right)
        self._rise = Scale(0, 1, area.bottom, area.top)
        self._base = area.bottom + below

    def draw_axes(self) -> None:
        """Draw hairlines with their texts, and the texts of the axis along below the bars."""
        area = self._area
        for tick in _TICKS:
            text, x, y = f"{100 * tick:.0f}{_PER_CENT}", self._along.at(tick), self._rise.at(tick)
            self._canvas.line((area.left, y), (area.right, y), paint.GRID)
            self._canvas.text(text, area.left - 6, y + 4, "end")
            x = min(x, self._canvas.width - text_width(text) / 2)
            self._canvas.text(text, x, self._base + LINE + 4, "middle")
        middle = (area.left + area.right) / 2
        self._canvas.text("promised probability", middle, self._base + 2 * LINE + 6, "middle")

    def draw_tolerance(self, odds: float) -> None:
        """Fill between odds that are a factor lower and higher, and draw the diagonal."""
        edges = []
        for part in range(_CURVE + 1):
            p = part / _CURVE
            low, high = p / (p + (1 - p) * odds), p * odds / (p * odds + 1 - p)
            edges.append((self._along.at(p), self._rise.at(high), self._rise.at(low)))
        self._canvas.area(edges, paint.TOLERANCE)
        area = self._area
        self._canvas.line((area.left, area.bottom), (area.right, area.top), paint.DIAGONAL)

    def draw_isotonic(self, xs: list[float], ys: list[float]) -> None:
        """Draw a thin line that goes to the next place before it goes up."""
        steps: list[tuple[float, float]] = []
        for index in drawn(len(xs)):
            x, y = self._along.at(xs[index]), self._rise.at(ys[index])
            if steps and y != steps[-1][1]:
                steps.append((x, steps[-1][1]))
            steps.append((x, y))
        self._canvas.curve(steps, f'{paint.stroked(self._colour, 1.3)} opacity="0.6"')

    def draw_group(self, group: _Group) -> None:
        """Draw the dot of a group on its range."""
        x, y = self._along.at(group.promised), self._rise.at(group.came)
        top = y if group.high is None else self._rise.at(group.high)
        bottom = y if group.low is None else self._rise.at(group.low)
        self._canvas.line((x, top), (x, bottom), paint.stroked(self._colour, 2.2))
        ink = f"{paint.filled(self._colour)} {paint.OUTLINE}"
        self._canvas.dot((x, y), _DOT, ink, group.title)
        self._canvas.keep_free(Box(x - _DOT, min(top, y - _DOT), x + _DOT, max(bottom, y + _DOT)))

    def draw_sides(self) -> None:
        """Name the two sides of the diagonal, where no dot is in the way."""
        area = self._area
        self._canvas.text("promised too little", area.left + 12, area.top + 26, "start", paint.INK)
        self._canvas.text("promised too much", area.right - 8, area.bottom - 14, "end", paint.INK)

    def draw_tenths(self, cases: list[int]) -> None:
        """Draw a bar for the cases of each tenth, and its number where it has room."""
        most = max(1, *cases)
        bars = []
        for tenth, count in enumerate(cases):
            left, right = (self._along.at(one / _TENTHS) for one in (tenth, tenth + 1))
            bars.append(Box(left, self._base - _BARS * count / most, right - 1, self._base))
            title = (
                f"{tenth / _TENTHS:.1f} to {(tenth + 1) / _TENTHS:.1f}: {number_text(count)} cases"
            )
            self._canvas.rectangle(bars[-1], paint.filled(self._colour, 0.55), title)
        self._canvas.text("cases", self._area.left - 6, self._base, "end")
        for tenth in sorted(range(len(cases)), key=lambda one: -cases[one]):
            self._draw_count(number_text(cases[tenth]), bars[tenth], bars)

    def _draw_count(self, text: str, bar: Box, bars: list[Box]) -> None:
        """Write a number above all bars that it crosses, on one of two lines."""
        middle, half = (bar.left + bar.right) / 2, text_width(text) / 2
        crossed = [
            one.top for one in bars if one.left < middle + half and middle - half < one.right
        ]
        y = min(crossed) - 4
        for height in (y, y - LINE):
            if self._canvas.text(text, middle, height, "middle"):
                if height < bar.top - LINE:
                    self._canvas.line((middle, bar.top - 2), (middle, height + 3), paint.MIDDLE)
                return


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


_AREA = 200.0  # height of the stacked areas with their axis
_BELOW_AREA = 28.0
_ROW = LINE + 4
_PATCH, _PATCH_GAP, _BETWEEN, _MARGIN = 18.0, 5.0, 16.0, 8.0
_THICK = 17.0  # an area that has room for its number
_OTHERS = "others"


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
