"""Scores over time, drawn.

Governing rule: a point stands where its last label came; nothing is drawn where nothing is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.plots import drawings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.plots._style import Figure

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
    return drawings.series(x, views, title=title, y_name=y_name, x_name=x_name).figure()
