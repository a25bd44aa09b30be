"""Scores over time, drawn.

Governing rule: a point stands where its last label came; nothing is drawn where nothing is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.plots._style import Figure, figure, line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["series"]


def series(
    x: Sequence[float],
    views: Mapping[str, Sequence[float | None]],
    *,
    title: str,
    y_name: str,
    x_name: str = "labels so far",
) -> Figure:
    """Draw numbers that change in the course of a stream.

    Parameters
    ----------
    x
        How far the stream was at each point.
    views
        By name ("raw", "calibrated") the numbers at these points; None where there is none.
    title, y_name, x_name
        In words; axes with their units.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure.

    Raises
    ------
    MissingExtraError
        If plotly is not installed.

    Examples
    --------
    >>> drawn = series([10, 20], {"raw": [0.7, 0.6], "calibrated": [0.5, None]},
    ...                title="Log loss", y_name="nats")
    >>> drawn.data[1].y
    (0.5, None)
    """
    drawn = figure(title, x_name, y_name)
    for name, numbers in views.items():
        drawn.add_trace(line(x, numbers, name))
    return drawn.update_layout(hovermode="x unified", showlegend=True)
