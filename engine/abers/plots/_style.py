"""What all figures share: colours, axes, and how plotly is found.

Governing rule: a figure has no paper of its own, and each of its colours has a contrast of 3 or
more with white and with near black, so that it can be read on a light and on a dark page. What a
colour tells is told by a dash, a marker or a name too.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from abers._arrays import unmasked
from abers.exceptions import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from abers._arrays import Floats

__all__ = [
    "COLOURS",
    "LABEL",
    "MAIN",
    "OTHER",
    "REFERENCE",
    "Drawing",
    "Figure",
    "around",
    "faint",
    "figure",
    "line",
    "numbers",
]

Figure: TypeAlias = Any
"""A plotly figure; plotly's own types say no more."""

# Those of Okabe and Ito that are dark enough for white and light enough for black (the blue a
# little lighter than theirs): people who confuse red and green tell them apart.
MAIN, OTHER, LABEL = "#2585BF", "#D55E00", "#009E73"
INK, REFERENCE = "#737D88", "#808080"
COLOURS = {"calibrated": MAIN, "raw": OTHER}
_DASHES = {"calibrated": "solid", "raw": "dash"}
_GRID = "rgba(128, 128, 128, 0.25)"
_MARGIN = 0.06  # of the width of the data, on either side


@dataclass
class Drawing:
    """A figure before plotly has it: what its scripts are given, and they draw.

    Plotly checks every number of a figure that it makes, which takes a hundred times as long as
    all the rest; so who draws every second encodes this.

    Parameters
    ----------
    data, layout
        The traces, and all else, as plotly calls them.
    """

    data: list[dict[str, Any]] = field(default_factory=list)
    layout: dict[str, Any] = field(default_factory=dict)

    def add(self, *traces: dict[str, Any]) -> Self:
        """Draw some more."""
        self.data += traces
        return self

    def axes(self, *, x: dict[str, Any] | None = None, y: dict[str, Any] | None = None) -> Self:
        """Say more of the axes."""
        self.layout["xaxis"] |= x or {}
        self.layout["yaxis"] |= y or {}
        return self

    def figure(self) -> Figure:
        """Make plotly's figure of it; plotly is imported only here, which takes a while.

        Raises
        ------
        MissingExtraError
            If it is not installed.
        """
        try:
            plotly = import_module("plotly.graph_objects")
        except ImportError as error:
            msg = "figures need plotly, which is not installed; run: pip install 'abers[plots]'"
            raise MissingExtraError(msg) from error
        return plotly.Figure(data=self.data, layout=self.layout)


def figure(title: str, x: str, y: str, **more: Any) -> Drawing:  # noqa: ANN401 - as plotly has them
    """Begin a figure with its title and the names of its axes.

    Parameters
    ----------
    title, x, y
        In words, axes with their units.
    more
        Of the layout, as plotly calls it.
    """
    axis = {"gridcolor": _GRID, "linecolor": _GRID, "zeroline": False, "automargin": True}
    layout: dict[str, Any] = {
        "template": "none",
        "title": {"text": title, "x": 0.0, "xref": "paper", "font": {"size": 16}},
        "xaxis": {"title": {"text": x, "standoff": 6}, **axis},
        "yaxis": {"title": {"text": y}, "hoverformat": ".4~g", **axis},
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
        "margin": {"l": 56, "r": 16, "t": 56, "b": 100},
        "hovermode": "closest",
    }
    return Drawing([], layout | more)


def line(
    x: Iterable[float],
    y: Iterable[float | None],
    name: str,
    colour: str | None = None,
    **more: Any,  # noqa: ANN401 - as plotly has them
) -> dict[str, Any]:
    """Draw a line; one that is called "raw" or "calibrated" always looks the same.

    Of one number there is no line, so it is drawn as a point.
    """
    style = {"color": colour or COLOURS.get(name, INK), "dash": _DASHES.get(name, "solid")}
    shape = style | {"width": 2} | more.pop("line", {})
    column = [*y]
    known = sum(value is not None and math.isfinite(value) for value in column)
    mode = "lines" if known > 1 else "lines+markers"
    drawn = {"type": "scatter", "x": [*x], "y": column, "name": name, "line": shape, "mode": mode}
    return drawn | more


def faint(colour: str, share: float) -> str:
    """Make a colour transparent, to fill with."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {share:g})"


def numbers(values: ArrayLike, shape: tuple[int, ...], name: str) -> Floats:
    """Take numbers that are drawn together with others.

    Raises
    ------
    ParameterError
        If they are of another shape than these have.
    """
    found = np.asarray(unmasked(values), np.float64)
    if found.shape != shape:
        msg = f"{name} has shape {found.shape}, not {shape}; give one for each of the others"
        raise ParameterError(msg)
    return found


def around(values: Floats) -> tuple[float, float]:
    """Find an axis that has room for all finite values, and a margin."""
    finite = values[np.isfinite(values)]
    low, high = (float(np.min(finite)), float(np.max(finite))) if len(finite) else (0.0, 0.0)
    margin = _MARGIN * high - _MARGIN * low or max(abs(low), 1.0) * _MARGIN
    most = sys.float_info.max
    return max(low - margin, -most), min(high + margin, most)
