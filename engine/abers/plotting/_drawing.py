"""Figures as plain data, and as plotly's figures.

Each figure has one definition, a function that returns a `Drawing`. As a `FigureFunction` it
returns plotly's figure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import update_wrapper
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeAlias

from abers.exceptions import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Drawing", "Figure", "FigureFunction"]

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
