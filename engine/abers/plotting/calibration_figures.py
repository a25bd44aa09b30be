"""Figures of calibration: reliability, coverage and PIT values.

Each figure also shows what calibrated predictions would look like, and the range that chance alone
explains.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.arrays import ONE
from abers.plotting._style import (
    COLOURS,
    MAIN,
    REFERENCE,
    Drawing,
    FigureFunction,
    array,
    dash,
    faint,
    figure,
    line,
    numbers,
)
from abers.validation import labelled_forecasts, row_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats

__all__ = ["corp", "coverage", "pit_histogram", "reliability"]

_MARKERS = {"calibrated": "circle", "raw": "diamond", "forecasts": "circle"}
_BINS = 10
_CHANCE = 2.0  # standard errors on either side
_SQUARE = {"range": [-0.02, 1.02], "dtick": 0.2}
_DOTTED = {"dash": "dot", "width": 1.5}


@FigureFunction
def reliability(
    y: ArrayLike,
    p: ArrayLike | Mapping[str, ArrayLike],
    *,
    weight: ArrayLike | None = None,
    title: str = "Reliability",
) -> Drawing:
    """Draw the share of label 1 against the mean forecast, in ten bins of equal width.

    Error bars are two standard errors on either side.

    Parameters
    ----------
    y
        Array of shape (n,): labels, 0 or 1.
    p
        Array of shape (n,): probabilities of label 1; or several of these arrays by name. "raw" and
        "calibrated" have a fixed style.
    weight
        Array of shape (n,): how much each row counts, 0 or more. Error bars are those of
        (sum of w)² / (sum of w²) rows of equal weight.
    title
        Title of the figure.

    Raises
    ------
    LabelError, ScoreError, WeightError, ParameterError
        If a label is neither 0 nor 1, a forecast is not a probability, a weight is negative or not
        finite, or lengths differ.

    Examples
    --------
    >>> drawn = reliability([0, 1, 1, 0], [0.25, 0.75, 0.75, 0.75])
    >>> drawn.data[1].x, [round(share, 3) for share in drawn.data[1].y]
    ((0.25, 0.75), [0.0, 0.667])
    """
    drawn = figure(title, "mean forecast of label 1", "share of label 1")
    drawn.add(_diagonal())
    for name, column in (p if isinstance(p, Mapping) else {"forecasts": p}).items():
        labels, forecasts = labelled_forecasts(y, column)
        rows = np.ones(len(labels)) if weight is None else row_weights(weight, len(labels)) / ONE
        forecast, share, count, worth = _bins(labels, forecasts, rows)
        hover = "forecast %{x:.3f}, came %{y:.3f} of %{customdata:,.0f}"
        shown = {"customdata": count.tolist(), "hovertemplate": hover}
        errors = _bars(share, worth, name)
        drawn.add(_points(forecast, share, name, 8, error_y=errors, **shown))
    return drawn.axes(x=_SQUARE, y=_SQUARE)


def _bins(
    labels: Floats, forecasts: Floats, weights: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean forecast, share of label 1, weight and what it is worth of each bin with any.

    The bins are closed on the left, the last on both sides. A weight is worth as many rows as have
    the same standard error with equal weights.
    """
    bins = np.minimum((forecasts * _BINS).astype(np.int64), _BINS - 1)
    columns = (weights * forecasts, weights * labels, weights, weights**2)
    sums = [np.bincount(bins, one, _BINS) for one in columns]
    expected, ones, count, squares = (one[sums[2] > 0] for one in sums)
    return expected / count, ones / count, count, count**2 / squares


@FigureFunction
def corp(
    views: Mapping[str, tuple[ArrayLike, ArrayLike]],
    bands: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
    counts: Mapping[str, ArrayLike] | None = None,
    *,
    title: str = "Reliability",
) -> Drawing:
    """Draw CORP reliability diagrams over their consistency bands, and histograms below.

    Parameters
    ----------
    views
        By name ("raw", "calibrated"): forecasts, and the recalibrated probability of each. A name
        with a comma, such as "raw, 2024", has the colour of what stands before it.
    bands
        By some of these names: forecasts, and the lower and the upper end of the band at each.
    counts
        By the same names, the numbers of forecasts in equal bins of [0, 1]; by default there is no
        histogram.
    title
        Title of the figure.

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for probabilistic
    classifiers.

    Examples
    --------
    >>> view, band = ([0.1, 0.9], [0.2, 0.9]), ([0.1, 0.9], [0.0, 0.8], [0.2, 1.0])
    >>> drawn = corp({"calibrated": view}, {"calibrated": band})
    >>> [trace.name for trace in drawn.data]
    ['calibrated', 'calibrated', 'as it should be', 'calibrated']
    """
    drawn = figure(title, "forecast probability", "share that came true")
    for name, band in bands.items():
        forecast, *ends = (array(column).tolist() for column in band)
        style: dict[str, Any] = {"line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        filled: dict[str, Any] = {"fill": "tonexty", "fillcolor": faint(COLOURS[name], 0.15)}
        drawn.add(line(forecast, ends[0], name, **style))
        drawn.add(line(forecast, ends[1], name, **filled, **style))
    drawn.add(_diagonal())
    for name, columns in views.items():
        forecast, share = map(array, columns)
        hover = "forecast %{x:.3f}, should be %{y:.3f}"
        drawn.add(_points(forecast, share, name, 5, hovertemplate=hover))
    return _histogram(drawn.axes(x=_SQUARE, y=_SQUARE), counts or {})


def _histogram(drawn: Drawing, counts: Mapping[str, ArrayLike]) -> Drawing:
    """Draw the shares of forecasts in equal bins of [0, 1], below the diagram."""
    if not counts:
        return drawn
    for name, column in counts.items():
        heights = array(column)
        n, total = len(heights), max(float(heights.sum()), 1.0)
        shares, step = heights / total, f"from %{{x:.2f}} to {1 / n:g} above for {1 / n:g}"
        colour = COLOURS.get(name.partition(",")[0], REFERENCE)
        drawn.add(
            {
                "type": "scatter",
                "mode": "lines",
                "line": {"shape": "hv", "color": colour, "width": 1.5, "dash": dash(name)},
                "fill": "none" if "," in name else "tozeroy",
                "fillcolor": faint(colour, 0.12),
                "x": (np.arange(n + 1) / n).tolist(),
                "y": [*shares.tolist(), float(shares[-1])],
                "customdata": [*heights.tolist(), float(heights[-1])],
                "yaxis": "y2",
                "name": name,
                "showlegend": False,
                "hovertemplate": f"%{{customdata:,}} predictions, %{{y:.1%}}, {step}",
            }
        )
    plain = {key: one for key, one in drawn.layout["yaxis"].items() if key not in _SQUARE}
    drawn.layout["yaxis2"] = plain | {
        "title": {"text": "share"},
        "domain": [0.0, 0.17],
        "rangemode": "tozero",
        "nticks": 3,
        "tickformat": ".0%",
    }
    drawn.layout["xaxis"]["anchor"] = "y2"
    return drawn.axes(y={"domain": [0.28, 1.0]})


@FigureFunction
def coverage(
    nominal: ArrayLike,
    views: Mapping[str, ArrayLike],
    count: int,
    *,
    title: str = "Coverage of the central intervals",
) -> Drawing:
    """Draw the coverage of intervals against their nominal coverage.

    Error bars are two standard errors on either side.

    Parameters
    ----------
    nominal
        Array of shape (k,): the nominal coverage.
    views
        By name ("raw", "calibrated"), arrays of shape (k,): the share of labels inside.
    count
        Number of labels.
    title
        Title of the figure.

    Raises
    ------
    ParameterError
        If a view does not have one share for each level.

    Examples
    --------
    >>> coverage([0.5, 0.9], {"calibrated": [0.52, 0.88]}, 1_000).data[1].y
    (0.52, 0.88)
    """
    levels = array(nominal)
    drawn = figure(title, "nominal coverage", "share of labels inside")
    drawn.add(_diagonal())
    for name, shares in views.items():
        inside = numbers(shares, levels.shape, f"coverage of {name}")
        errors = _bars(inside, np.full(inside.shape, max(count, 1)), name)
        drawn.add(_points(levels, inside, name, 9, error_y=errors))
    return drawn.axes(x=_SQUARE, y=_SQUARE)


@FigureFunction
def pit_histogram(counts: ArrayLike, *, title: str = "PIT histogram") -> Drawing:
    """Draw a histogram of the predictive CDF at the label (the PIT value), as densities.

    Calibrated predictions have density 1 everywhere; the band around it is two standard errors on
    either side.

    Parameters
    ----------
    counts
        Array of shape (bins,): the number of PIT values in each of the equal bins.
    title
        Title of the figure.

    Examples
    --------
    >>> pit_histogram([10, 30]).data[0].y
    (0.5, 1.5)
    """
    many = array(counts)
    bins, total = len(many), max(float(many.sum()), 1.0)
    chance = _CHANCE * ((bins - 1) / total) ** 0.5
    middles = (np.arange(bins) + 0.5) / bins
    drawn = figure(title, "predictive CDF at the label (PIT)", "density", bargap=0.06)
    drawn.add(
        {
            "type": "bar",
            "x": middles.tolist(),
            "y": (many * bins / total).tolist(),
            "width": 1.0 / bins,
            "name": "labels",
            "marker": {"color": faint(MAIN, 0.75), "line": {"color": MAIN, "width": 1}},
        }
    )
    drawn.add(line([0.0, 1.0], [1.0, 1.0], "as it should be", REFERENCE))
    for name, height in (("two standard errors", max(1.0 - chance, 0.0)), ("", 1.0 + chance)):
        dotted = line([0.0, 1.0], [height] * 2, name, REFERENCE, line=_DOTTED)
        drawn.add(dotted | {"showlegend": bool(name)})
    return drawn.axes(x={"range": [0.0, 1.0]}, y={"rangemode": "tozero"})


def _diagonal() -> dict[str, Any]:
    ends = [0.0, 1.0]
    return line(ends, ends, "as it should be", REFERENCE, line=_DOTTED, hoverinfo="skip")


def _points(x: Floats, y: Floats, name: str, size: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the trace of the points of a view, joined by a line."""
    if "," in name:  # of another time: no markers, which would hide those of the present
        return line(x.tolist(), y.tolist(), name, mode="lines", **more)
    marker = {"symbol": _MARKERS.get(name, "square"), "size": size}
    return line(x.tolist(), y.tolist(), name, mode="lines+markers", marker=marker, **more)


def _bars(share: Floats, count: Floats, name: str) -> dict[str, object]:
    """Return error bars of shares, two standard errors on either side."""
    errors = _CHANCE * np.sqrt(share * (1.0 - share) / count)
    return {"array": errors.tolist(), "width": 3, "thickness": 1, "color": COLOURS.get(name)}
