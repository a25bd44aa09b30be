"""Predictive distributions drawn: one as a band of CDFs, many as a fan.

Governing rule: what is infinite is drawn to the end of the axis, never left out: the steps of a
CDF run on below the first and above the last threshold, at the height of the mass that lies there,
and an interval without an end fills the figure up to its edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers._arrays import unmasked
from abers.plots import drawings
from abers.plots._style import MAIN, OTHER, Drawing, Figure, around, faint, figure, line, numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from abers._arrays import Floats

__all__ = ["band", "curve", "fan_chart"]

_STEPS = {"line": {"width": 1, "shape": "hv"}, "hoverinfo": "skip"}


def band(  # noqa: PLR0913 - the parts of a figure
    thresholds: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    merged: ArrayLike,
    *,
    label: float | None = None,
    name: str = "label",
) -> Figure:
    """Draw a band of two step CDFs, filled, and the CDF that they are merged to.

    Parameters
    ----------
    thresholds
        Array of shape (k,), ascending.
    lower, upper, merged
        Arrays of shape (k + 1,): each CDF before the first threshold, and from each one on.
    label
        The label that came, if it did.
    name
        What is predicted, with its unit; the name of the axis.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure.

    Raises
    ------
    ParameterError
        If the CDFs are of another length than the thresholds have them.
    MissingExtraError
        If plotly is not installed.

    Examples
    --------
    >>> drawn = band([1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0], [0.2, 0.5, 0.8], label=1.5)
    >>> [trace.name for trace in drawn.data]
    ['lower CDF', 'upper CDF', 'merged CDF', 'label']
    """
    places = np.asarray(unmasked(thresholds), np.float64)
    low_cdf, high_cdf, own = (
        numbers(cdf, (len(places) + 1,), called)
        for cdf, called in ((lower, "lower"), (upper, "upper"), (merged, "merged"))
    )
    known = places if label is None else np.append(places, label)
    low, high = around(known)
    x = [low, *places.tolist(), high]
    drawn = _axes(name, low, high)
    for cdf, called, fill in ((low_cdf, "lower CDF", None), (high_cdf, "upper CDF", "tonexty")):
        style = {"fill": fill, "fillcolor": faint(MAIN, 0.2)}
        drawn.add(line(x, _to_the_end(cdf), called, faint(MAIN, 0.6), **style, **_STEPS))
    shape = {"width": 2.5, "shape": "hv"}
    drawn.add(line(x, _to_the_end(own), "merged CDF", MAIN, line=shape))
    drawn.layout["annotations"] = [*_masses(own)]
    return _with_label(drawn, label).figure()


def curve(
    places: ArrayLike, heights: ArrayLike, *, label: float | None = None, name: str = "label"
) -> Figure:
    """Draw a continuous CDF through some of its points.

    Parameters
    ----------
    places
        Array of shape (k,), ascending; at least one.
    heights
        Array of shape (k,): the CDF at these.
    label
        The label that came, if it did.
    name
        What is predicted, with its unit; the name of the axis.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure.

    Raises
    ------
    ParameterError
        If there is not a height for each place.
    MissingExtraError
        If plotly is not installed.

    Examples
    --------
    >>> [trace.name for trace in curve([1.0, 2.0, 3.0], [0.1, 0.5, 0.9], label=1.5).data]
    ['CDF', 'label']
    """
    at = np.asarray(unmasked(places), np.float64)
    low, high = around(at if label is None else np.append(at, label))
    drawn = _axes(name, low, high)
    drawn.add(line(at.tolist(), numbers(heights, at.shape, "heights"), "CDF", MAIN))
    return _with_label(drawn, label).figure()


def _axes(name: str, low: float, high: float) -> Drawing:
    drawn = figure("Predictive distribution", name, "cumulative probability")
    return drawn.axes(x={"range": [low, high]}, y={"range": [-0.02, 1.02]})


def _with_label(drawn: Drawing, label: float | None) -> Drawing:
    if label is not None:
        dotted = {"width": 2, "dash": "dot"}
        drawn.add(line([label, label], [0.0, 1.0], "label", OTHER, line=dotted))
    return drawn


def _to_the_end(cdf: Floats) -> list[float]:
    """Give the heights of a CDF at the left end, at each threshold, and at the right end."""
    return [*cdf.tolist(), float(cdf[-1])]


def _masses(merged: Floats) -> Iterator[dict[str, Any]]:
    """Write above the corners how much mass lies beyond the ends of the axis."""
    corners = {"below": (0.0, "left", merged[0]), "above": (1.0, "right", 1.0 - merged[-1])}
    for words, (x, side, mass) in corners.items():
        if mass > 0.0:
            yield {
                "text": f"{100.0 * mass:.2g} % {words} all thresholds",
                "x": x,
                "xref": "paper",
                "xanchor": side,
                "y": 1.0,
                "yref": "paper",
                "yanchor": "bottom",
                "showarrow": False,
            }


def fan_chart(  # noqa: PLR0913 - the parts of a figure
    x: ArrayLike,
    quantiles: ArrayLike,
    levels: Sequence[float],
    *,
    labels: ArrayLike | None = None,
    scores: ArrayLike | None = None,
    title: str = "Predictions and labels",
    x_name: str = "observation",
    y_name: str = "label",
) -> Figure:
    """Draw central intervals of many predictions, the widest palest, and the labels that came.

    Parameters
    ----------
    x
        Array of shape (n,): where each prediction stands, such as its score or its time.
    quantiles
        Array of shape (n, number of levels), which may be infinite.
    levels
        Of the quantiles, ascending and symmetric: for each q there is 1 - q.
    labels, scores
        Arrays of shape (n,): what came, and what the model said; neither is drawn if not given.
    title, x_name, y_name
        In words; axes with their units.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure.

    Raises
    ------
    ParameterError
        If the levels are not symmetric, or there is not one of everything for each `x`.
    MissingExtraError
        If plotly is not installed.

    Examples
    --------
    >>> drawn = fan_chart([1, 2], [[0, 1, 2], [1, 2, 3]], [0.1, 0.5, 0.9], labels=[1.5, 1.0])
    >>> [trace.name for trace in drawn.data if trace.name]
    ['80 %', 'median', 'label']
    """
    return drawings.fan_chart(
        x,
        quantiles,
        levels,
        labels=labels,
        scores=scores,
        title=title,
        x_name=x_name,
        y_name=y_name,
    ).figure()
