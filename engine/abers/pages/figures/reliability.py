"""The figure of came against promised."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from abers.pages.figures import paint
from abers.pages.figures.canvas import LINE, Box, Canvas, text_width
from abers.pages.figures.plot import waiting
from abers.pages.figures.scales import Scale, drawn, finite, number_text

if TYPE_CHECKING:
    from abers.pages.figures.data import ReliabilityData

__all__ = ["reliability"]

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
