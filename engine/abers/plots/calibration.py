"""Whether predictions mean what they say, drawn: reliability, PIT values, coverage.

Governing rule: what a calibrated prediction would show is drawn too, and where chance alone may
carry it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.plots._style import COLOURS, MAIN, REFERENCE, Figure, faint, figure, line, numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from abers._arrays import Floats

__all__ = ["coverage", "pit_histogram", "reliability"]

_MARKERS = {"calibrated": "circle", "raw": "diamond"}
_CHANCE = 2.0  # standard errors on either side
_SQUARE = {"range": [-0.02, 1.02], "dtick": 0.2}


def reliability(
    views: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
    *,
    title: str = "Reliability",
) -> Figure:
    """Draw how often label 1 came against how probable it was called, bin by bin.

    Parameters
    ----------
    views
        By name ("raw", "calibrated"): arrays of shape (bins,) of the mean forecast, of the share
        of labels 1, and of how many forecasts there are. A bin without any is left out.
    title
        In words.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure; a bar is two standard errors to either side.

    Raises
    ------
    ParameterError
        If the arrays of a view are not equally long.
    MissingExtraError
        If plotly is not installed.

    Examples
    --------
    >>> drawn = reliability({"calibrated": ([0.1, 0.9], [0.2, 0.9], [10, 30])})
    >>> drawn.data[1].x, drawn.data[1].y
    ((0.1, 0.9), (0.2, 0.9))
    """
    drawn = figure(title, "mean forecast of label 1", "share of labels 1")
    drawn.add_trace(_diagonal())
    for name, columns in views.items():
        forecast = np.asarray(columns[0], np.float64)
        share, count = (
            numbers(column, forecast.shape, f"{what} of {name}")
            for column, what in zip(columns[1:], ("share", "count"), strict=True)
        )
        some = count > 0
        forecast, share, count = forecast[some], share[some], count[some]
        drawn.add_trace(
            line(
                forecast.tolist(),
                share.tolist(),
                name,
                mode="lines+markers",
                marker={"symbol": _MARKERS.get(name, "square"), "size": 8},
                error_y=_bars(share, count, name),
                customdata=count.tolist(),
                hovertemplate="forecast %{x:.3f}, came %{y:.3f} of %{customdata:,.0f}",
            )
        )
    return drawn.update_xaxes(**_SQUARE).update_yaxes(**_SQUARE)


def coverage(
    nominal: ArrayLike,
    views: Mapping[str, ArrayLike],
    count: int,
    *,
    title: str = "Coverage of the central intervals",
) -> Figure:
    """Draw how many labels fell into the intervals against how many should have.

    Parameters
    ----------
    nominal
        Array of shape (k,): the shares that the intervals are to hold.
    views
        By name ("raw", "calibrated") arrays of shape (k,): the shares that they held.
    count
        How many predictions were judged.
    title
        In words.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure; a bar is two standard errors to either side.

    Raises
    ------
    ParameterError
        If a view has not one share for each level.
    MissingExtraError
        If plotly is not installed.

    Examples
    --------
    >>> coverage([0.5, 0.9], {"calibrated": [0.52, 0.88]}, 1_000).data[1].y
    (0.52, 0.88)
    """
    levels = np.asarray(nominal, np.float64)
    drawn = figure(title, "nominal coverage", "share of labels inside")
    drawn.add_trace(_diagonal())
    for name, shares in views.items():
        inside = numbers(shares, levels.shape, f"coverage of {name}")
        drawn.add_trace(
            line(
                levels.tolist(),
                inside.tolist(),
                name,
                mode="lines+markers",
                marker={"symbol": _MARKERS.get(name, "square"), "size": 9},
                error_y=_bars(inside, np.full(inside.shape, max(count, 1)), name),
            )
        )
    return drawn.update_xaxes(**_SQUARE).update_yaxes(**_SQUARE)


def pit_histogram(counts: ArrayLike, *, title: str = "PIT histogram") -> Figure:
    """Draw how often the predictive CDF at the label fell into each of some equal bins.

    Parameters
    ----------
    counts
        Array of shape (bins,).
    title
        In words.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure, as densities: 1 everywhere is what calibrated predictions have, and the band
        around it is two standard errors to either side.

    Raises
    ------
    MissingExtraError
        If plotly is not installed.

    Examples
    --------
    >>> pit_histogram([10, 30]).data[0].y
    (0.5, 1.5)
    """
    many = np.asarray(counts, np.float64)
    bins, total = len(many), max(float(many.sum()), 1.0)
    chance = _CHANCE * ((bins - 1) / total) ** 0.5
    middles = (np.arange(bins) + 0.5) / bins
    drawn = figure(title, "predictive CDF at the label (PIT)", "density", bargap=0.06)
    drawn.add_bar(
        x=middles.tolist(),
        y=(many * bins / total).tolist(),
        width=1.0 / bins,
        name="labels",
        marker={"color": faint(MAIN, 0.75), "line": {"color": MAIN, "width": 1}},
    )
    drawn.add_trace(line([0.0, 1.0], [1.0, 1.0], "as it should be", REFERENCE))
    for name, height in (("two standard errors", 1.0 - chance), ("", 1.0 + chance)):
        dotted = {"dash": "dot", "width": 1.5}
        drawn.add_trace(
            line([0.0, 1.0], [height] * 2, name, REFERENCE, line=dotted, showlegend=bool(name))
        )
    return drawn.update_xaxes(range=[0.0, 1.0]).update_yaxes(rangemode="tozero")


def _diagonal() -> object:
    dotted = {"dash": "dot", "width": 1.5}
    return line([0.0, 1.0], [0.0, 1.0], "as it should be", REFERENCE, line=dotted, hoverinfo="skip")


def _bars(share: Floats, count: Floats, name: str) -> dict[str, object]:
    """Give what chance does to a share of so many."""
    errors = _CHANCE * np.sqrt(share * (1.0 - share) / count)
    return {"array": errors.tolist(), "width": 3, "thickness": 1, "color": COLOURS.get(name)}
