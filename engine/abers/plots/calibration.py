"""Whether predictions mean what they say, drawn: reliability, PIT values, coverage.

Governing rule: what a calibrated prediction would show is drawn too, and where chance alone may
carry it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.plots import drawings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from abers.plots._style import Figure

__all__ = ["coverage", "pit_histogram", "reliability"]


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
    return drawings.reliability(views, title=title).figure()


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
    return drawings.coverage(nominal, views, count, title=title).figure()


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
    return drawings.pit_histogram(counts, title=title).figure()
