"""Drawing of any kind of figure as SVG, and of the icons before the word of an answer.

The colours are variables of the page, so that a figure follows its light and its dark set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers.pages.figures import paint
from abers.pages.figures.canvas import Box, Canvas
from abers.pages.figures.plot import (
    Plot,
    Scale,
    drawn,
    finite,
    number_text,
    per_cent_axis,
    waiting,
    widened,
)
from abers.pages.figures.reliability import intervals, reliability, shares

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers.pages.figures.data import Column, GapData, OverTimeData, SparkData

__all__ = ["draw", "gap_bar", "over_time", "sign", "spark"]

_FULL = '<circle cx="10" cy="10" r="9" fill="currentColor"/>'
_RING = '<circle cx="10" cy="10" r="8" fill="none" stroke="currentColor" stroke-width="2"'
_ON_CARD = 'fill="none" stroke="var(--card)"'

_SHAPES = {
    "yes": f'{_FULL}<path d="M5.6 10.4l3 3 5.8-6.4" {_ON_CARD} stroke-width="2.2"/>',
    "no": (
        '<path d="M6.3 1h7.4L19 6.3v7.4L13.7 19H6.3L1 13.7V6.3z" fill="currentColor"/>'
        f'<path d="M6.6 6.6l6.8 6.8M13.4 6.6l-6.8 6.8" {_ON_CARD} stroke-width="2.2"/>'
    ),
    "partly": (
        '<path d="M10 1.5L19.3 18.5H.7z" fill="currentColor"/>'
        f'<path d="M10 7v5.5M10 14.3v2" {_ON_CARD} stroke-width="2.2"/>'
    ),
    "undecided": (
        f'{_RING} stroke-dasharray="3.2 2.2"/>'
        '<path d="M5.5 10h9" stroke="currentColor" stroke-width="2.2"/>'
    ),
    "waiting": (
        f'{_RING}/><path d="M10 5v5.3l3.6 2" fill="none" stroke="currentColor" stroke-width="2"/>'
    ),
    "recovering": (
        f'{_FULL}<path d="M5 12.5l3.5-4 2.5 2.5 4-5M15 6v3.5M15 6h-3.5" '
        f'{_ON_CARD} stroke-width="1.8"/>'
    ),
}


def sign(state: str) -> str:
    """Return the icon of an answer, which readers of the screen pass over.

    Parameters
    ----------
    state
        ``"yes"``, ``"no"``, ``"partly"``, ``"undecided"``, ``"waiting"`` or ``"recovering"``.

    Returns
    -------
    str
        An ``<svg>`` element in the colour of the text around it.
    """
    if state not in _SHAPES:
        msg = f"unknown state {state!r}; use {', '.join(_SHAPES)}"
        raise ValueError(msg)
    return f'<svg viewBox="0 0 20 20" aria-hidden="true">{_SHAPES[state]}</svg>'


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


_TALL, _SMALL = 44.0, 24.0
_NARROW = 150.0  # a cell of a table
_SPARK_INSET = 4.0
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
    along = Scale(*widened(xs), _SPARK_INSET, canvas.width - _SPARK_INSET)
    return along, Scale(*widened(ys), canvas.height - _SPARK_INSET, _SPARK_INSET)


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


_KINDS: dict[str, tuple[Callable[[Any, float], Canvas], float]] = {
    "over_time": (over_time, 520),
    "reliability": (reliability, 520),
    "gap": (gap_bar, 230),
    "spark": (spark, 300),
    "intervals": (intervals, 520),
    "shares": (shares, 520),
}


def draw(kind: str, data: Mapping[str, Any], *, label: str, width: float | None = None) -> str:
    """Draw a figure as one element of HTML.

    Parameters
    ----------
    kind
        ``"over_time"``, ``"reliability"``, ``"gap"``, ``"spark"``, ``"intervals"`` or ``"shares"``.
    data
        The dictionary of this kind in `abers.pages.figures.data`.
    label
        What people hear who cannot see the figure.
    width
        Pixels of the place of the figure, where its texts have 12.5 pixels. None is the width on a
        screen: 520, 300 for a line, 230 for a gap. On a telephone charts have 330.

    Returns
    -------
    str
        An ``<svg>`` element. Without points it states how many labels are needed.
    """
    if kind not in _KINDS:
        msg = f"unknown figure {kind!r}; use {', '.join(_KINDS)}"
        raise ValueError(msg)
    drawing, usual = _KINDS[kind]
    return drawing(data, usual if width is None else width).svg(label)
