"""Style of all figures, and figures as plain data or as plotly's.

Each figure has one definition, a function that returns a `Drawing`. As a `FigureFunction` it
returns plotly's figure.

Style of all figures: colours, axes, lines. A figure has a transparent background, and each of its
colours has a contrast of 3 or more with white and with near black, so it can be read on a light and
on a dark page. Lines differ by dash, marker or name as well as by colour.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from functools import update_wrapper
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeAlias

import numpy as np

from abers.arrays import unmasked
from abers.exceptions import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike

    from abers.arrays import Floats

__all__ = [
    "COLOURS",
    "LABEL",
    "MAIN",
    "OTHER",
    "PALETTE",
    "REFERENCE",
    "Drawing",
    "Figure",
    "FigureFunction",
    "around",
    "array",
    "dash",
    "faint",
    "figure",
    "line",
    "numbers",
]

P = ParamSpec("P")
Figure: TypeAlias = Any
"""A plotly figure; plotly's own types say no more."""


@dataclass
class Drawing:
    """A figure as plain data, which plotly's script can draw.

    plotly checks every number of a figure, which takes a hundred times as long as all the rest. A
    page that is drawn every second encodes drawings instead.

    Parameters
    ----------
    data, layout
        The traces and the layout, in plotly's terms.
    """

    data: list[dict[str, Any]] = field(default_factory=list)
    layout: dict[str, Any] = field(default_factory=dict)

    def add(self, *traces: dict[str, Any]) -> Self:
        """Add traces."""
        self.data += traces
        return self

    def axes(self, *, x: dict[str, Any] | None = None, y: dict[str, Any] | None = None) -> Self:
        """Add options of the axes."""
        self.layout["xaxis"] |= x or {}
        self.layout["yaxis"] |= y or {}
        return self

    def figure(self) -> Figure:
        """Return plotly's figure; a MissingExtraError if plotly is not installed."""
        try:
            plotly = import_module("plotly.graph_objects")  # slow, so only where it is needed
        except ImportError as error:
            msg = "figures need plotly, which is not installed; run: pip install 'abers[plots]'"
            raise MissingExtraError(msg) from error
        return plotly.Figure(data=self.data, layout=self.layout)


class FigureFunction(Generic[P]):
    """A function that draws a figure: a call returns plotly's, `drawing` returns a `Drawing`."""

    def __init__(self, drawing: Callable[P, Drawing]) -> None:
        self.drawing = drawing
        update_wrapper(self, drawing)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Figure:
        """Draw the figure with plotly."""
        return self.drawing(*args, **kwargs).figure()


# Colours of Okabe and Ito, which people who confuse red and green can distinguish: those dark
# enough for white and light enough for black, the blue a little lighter than theirs.
MAIN, OTHER, LABEL = "#2585BF", "#D55E00", "#009E73"
INK, REFERENCE = "#737D88", "#808080"
PALETTE = (MAIN, LABEL, "#8A6FC8", "#A07800", "#CC5599", "#0F8F9E", "#9A7B4F", "#5F8A1E")
"""Colours of lines that have no fixed style, in their order."""

COLOURS = {"calibrated": MAIN, "raw": OTHER, "forecasts": MAIN}
_DASHES = {"calibrated": "solid", "raw": "dash"}
_GRID = "rgba(128, 128, 128, 0.25)"
_MARGIN = 0.06  # of the width of the data, on either side


def figure(title: str, x: str, y: str, **more: Any) -> Drawing:  # noqa: ANN401 - in plotly's terms
    """Return an empty figure with a title, names of axes that include the unit, and more layout."""
    axis = {"gridcolor": _GRID, "linecolor": _GRID, "zeroline": False, "automargin": True}
    layout: dict[str, Any] = {
        "template": "none",
        "title": {"text": title, "x": 0.0, "xref": "paper", "font": {"size": 16}},
        "xaxis": {"title": {"text": x, "standoff": 6}, **axis},
        "yaxis": {"title": {"text": y, "standoff": 8}, "hoverformat": ".4~g", **axis},
        "font": {"color": INK, "family": "system-ui, sans-serif", "size": 13},
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "legend": {
            "orientation": "h",
            "yref": "container",
            "y": 0.0,
            "yanchor": "bottom",
            "traceorder": "normal",
        },
        "margin": {"l": 72, "r": 16, "t": 56, "b": 100},
        "hovermode": "closest",
    }
    return Drawing([], layout | more)


def line(
    x: Iterable[float],
    y: Iterable[float | None],
    name: str,
    colour: str | None = None,
    **more: Any,  # noqa: ANN401 - in plotly's terms
) -> dict[str, Any]:
    """Return the trace of a line; lines named "raw" or "calibrated" have a fixed style.

    A single number has a marker, because it makes no line.
    """
    view = name.partition(",")[0]
    style = {"color": colour or COLOURS.get(view, INK), "dash": dash(name)}
    shape = style | {"width": 2} | more.pop("line", {})
    column = [*y]
    known = sum(value is not None and math.isfinite(value) for value in column)
    mode = "lines" if known > 1 else "lines+markers"
    drawn = {"type": "scatter", "x": [*x], "y": column, "name": name, "line": shape, "mode": mode}
    return drawn | more


def dash(name: str) -> str:
    """Return the dash of a line: dotted for a view at another time, such as "raw, 2024"."""
    return "dot" if "," in name else _DASHES.get(name, "solid")


def faint(colour: str, share: float) -> str:
    """Return a transparent colour for a filled area."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {share:g})"


def array(values: ArrayLike) -> Floats:
    """Return values as an array of doubles, where masked values are NaN."""
    return np.asarray(unmasked(values), np.float64)


def numbers(values: ArrayLike, shape: tuple[int, ...], name: str) -> Floats:
    """Return values as an array of this shape; a ParameterError if they have another."""
    found = array(values)
    if found.shape != shape:
        msg = f"{name} has shape {found.shape}, not {shape}; give one for each of the others"
        raise ParameterError(msg)
    return found


def around(values: Floats) -> tuple[float, float]:
    """Return the range of an axis that holds all finite values and a margin."""
    finite = values[np.isfinite(values)]
    low, high = (float(np.min(finite)), float(np.max(finite))) if len(finite) else (0.0, 0.0)
    margin = _MARGIN * high - _MARGIN * low or max(abs(low), 1.0) * _MARGIN
    most = sys.float_info.max
    return max(low - margin, -most), min(high + margin, most)
