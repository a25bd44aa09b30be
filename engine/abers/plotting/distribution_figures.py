"""Figures of predictive distributions: one as a band of CDFs, many as a fan.

Infinite values are drawn to the end of the axis, never left out. The steps of a CDF run on below
the first and above the last threshold, at the height of the mass that lies there, and an interval
without an end fills the figure up to its edge.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.exceptions import ParameterError
from abers.plotting._style import (
    LABEL,
    MAIN,
    OTHER,
    Drawing,
    FigureFunction,
    around,
    array,
    faint,
    figure,
    line,
    numbers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from abers.arrays import Floats

__all__ = ["band", "curve", "fan_chart", "interval_bars"]

_STEPS = {"line": {"width": 1, "shape": "hv"}, "hoverinfo": "skip"}
_FILLED = (0.12, 0.3)  # opacity, from the widest interval to the narrowest


@FigureFunction
def band(  # noqa: PLR0913 - the parts of a figure
    thresholds: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    merged: ArrayLike,
    *,
    label: float | None = None,
    name: str = "label",
) -> Drawing:
    """Draw a band between two step CDFs, and their merged CDF.

    Parameters
    ----------
    thresholds
        Array of shape (k,), ascending.
    lower, upper, merged
        Arrays of shape (k + 1,): each CDF before the first threshold, and from each one on.
    label
        The label, if it is known.
    name
        Name of the axis: what is predicted, with its unit.

    Raises
    ------
    ParameterError
        If the lengths of CDFs and thresholds do not match.

    Examples
    --------
    >>> drawn = band([1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0], [0.2, 0.5, 0.8], label=1.5)
    >>> [trace.name for trace in drawn.data]
    ['lower CDF', 'upper CDF', 'merged CDF', 'label']
    """
    steps = array(thresholds)
    low_cdf, high_cdf, own = (
        numbers(cdf, (len(steps) + 1,), called)
        for cdf, called in ((lower, "lower"), (upper, "upper"), (merged, "merged"))
    )
    drawn, low, high = _axes(name, steps, label)
    x = [low, *steps.tolist(), high]
    for cdf, called, fill in ((low_cdf, "lower CDF", None), (high_cdf, "upper CDF", "tonexty")):
        style = {"fill": fill, "fillcolor": faint(MAIN, 0.2)}
        drawn.add(line(x, _to_the_end(cdf), called, faint(MAIN, 0.6), **style, **_STEPS))
    shape = {"width": 2.5, "shape": "hv"}
    drawn.add(line(x, _to_the_end(own), "merged CDF", MAIN, line=shape))
    drawn.layout["annotations"] = [*_masses(own)]
    return _with_label(drawn, label)


@FigureFunction
def curve(
    places: ArrayLike, heights: ArrayLike, *, label: float | None = None, name: str = "label"
) -> Drawing:
    """Draw a continuous CDF through points.

    Parameters
    ----------
    places
        Array of shape (k,), ascending; at least one.
    heights
        Array of shape (k,): the CDF at these places.
    label, name
        As in `band`.

    Raises
    ------
    ParameterError
        If places and heights have different lengths.

    Examples
    --------
    >>> [trace.name for trace in curve([1.0, 2.0, 3.0], [0.1, 0.5, 0.9], label=1.5).data]
    ['CDF', 'label']
    """
    at = array(places)
    drawn, *_ = _axes(name, at, label)
    drawn.add(line(at.tolist(), numbers(heights, at.shape, "heights"), "CDF", MAIN))
    return _with_label(drawn, label)


@FigureFunction
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
) -> Drawing:
    """Draw central intervals of many predictions, the widest palest, and the labels.

    Parameters
    ----------
    x
        Array of shape (n,): the position of each prediction, a number such as its score.
    quantiles
        Array of shape (n, number of levels); values may be infinite.
    levels
        Levels of the quantiles, ascending and symmetric: for each q there is 1 - q.
    labels, scores
        Arrays of shape (n,): the labels and the scores of the model, if they are to be drawn.
    title, x_name, y_name
        Texts; those of axes include the unit.

    Raises
    ------
    ParameterError
        If the levels are not symmetric, or the arrays have different lengths.

    Examples
    --------
    >>> drawn = fan_chart([1, 2], [[0, 1, 2], [1, 2, 3]], [0.1, 0.5, 0.9], labels=[1.5, 1.0])
    >>> [trace.name for trace in drawn.data if trace.name]
    ['80 %', 'median', 'label']
    """
    parts = _Predictions.sorted(x, quantiles, levels, labels=labels, scores=scores)
    drawn = figure(title, x_name, y_name)
    for share, left, right, strength in _intervals(levels):
        style = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
        drawn.add(line(parts.x, parts.ends[left], "", MAIN, showlegend=False, **style))
        filled = {"fill": "tonexty", "fillcolor": faint(MAIN, strength)}
        drawn.add(line(parts.x, parts.ends[right], f"{share:.9g} %", MAIN, **filled, **style))
    if len(levels) % 2:
        drawn.add(line(parts.x, parts.ends[len(levels) // 2], "median", MAIN))
    if scores is not None:
        drawn.add(line(parts.x, parts.scores, "raw", line={"width": 1.5}))
    if labels is not None:
        drawn.add(_label_points(parts))
    return drawn.axes(y={"range": [parts.low, parts.high]})


@FigureFunction
def interval_bars(  # noqa: PLR0913 - the parts of a figure
    x: ArrayLike,
    quantiles: ArrayLike,
    levels: Sequence[float],
    labels: ArrayLike,
    *,
    title: str = "Predictions and labels",
    x_name: str = "observation",
    y_name: str = "label",
) -> Drawing:
    """Draw the central intervals of each prediction as bars, the widest palest, and its label.

    Unlike in `fan_chart`, nothing is drawn between two predictions, which need not be alike.

    Parameters
    ----------
    x, quantiles, levels, labels, title, x_name, y_name
        As in `fan_chart`.

    Raises
    ------
    ParameterError
        As in `fan_chart`.

    Examples
    --------
    >>> drawn = interval_bars([1, 2], [[0, 1, 2], [1, 2, 3]], [0.1, 0.5, 0.9], [1.5, 1.0])
    >>> [trace.name for trace in drawn.data]
    ['80 %', 'median', 'label']
    """
    parts = _Predictions.sorted(x, quantiles, levels, labels=labels)
    drawn = figure(title, x_name, y_name)
    drawn.layout["barmode"] = "overlay"
    gaps = (after - before for before, after in pairwise(parts.x) if after > before)
    width = min(gaps, default=1.0) / 2.0  # of x: bars stay apart at any size of the figure
    for share, left, right, strength in _intervals(levels):
        ends = zip(parts.ends[left], parts.ends[right], strict=True)
        drawn.add(
            {
                "type": "bar",
                "x": parts.x,
                "y": [high - low for low, high in ends],
                "base": parts.ends[left],
                "width": width,
                "name": f"{share:.9g} %",
                "marker": {"color": faint(MAIN, strength + 0.1), "line": {"width": 0}},
                "hoverinfo": "skip",
            }
        )
    if len(levels) % 2:
        marker = {"symbol": "line-ew-open", "size": 8, "color": MAIN, "line": {"width": 2}}
        middle = parts.ends[len(levels) // 2]
        drawn.add(line(parts.x, middle, "median", MAIN, mode="markers", marker=marker))
    return drawn.add(_label_points(parts)).axes(y={"range": [parts.low, parts.high]})


class _Predictions(NamedTuple):
    """Predictions in the order of x: quantiles by level; infinite ends become those of y."""

    x: list[float]
    ends: list[list[float]]
    labels: list[float]
    scores: list[float]
    low: float
    high: float

    @classmethod
    def sorted(
        cls,
        x: ArrayLike,
        quantiles: ArrayLike,
        levels: Sequence[float],
        *,
        labels: ArrayLike | None = None,
        scores: ArrayLike | None = None,
    ) -> _Predictions:
        """Sort predictions by x; a ParameterError if the arrays have different lengths."""
        at = array(x)
        order = np.argsort(at, kind="stable")
        values = numbers(quantiles, (len(at), len(levels)), "quantiles")[order]
        shown, raw = (
            np.empty(0) if column is None else numbers(column, at.shape, name)[order]
            for name, column in (("labels", labels), ("scores", scores))
        )
        low, high = around(np.concatenate([values.ravel(), shown, raw]))
        ends = np.clip(values, low, high).T.tolist()
        return cls(at[order].tolist(), ends, shown.tolist(), raw.tolist(), low, high)


def _label_points(parts: _Predictions) -> dict[str, Any]:
    marker = {"size": 6, "color": LABEL, "symbol": "circle"}
    return line(parts.x, parts.labels, "label", LABEL, mode="markers", marker=marker)


def _axes(name: str, x: Floats, label: float | None) -> tuple[Drawing, float, float]:
    """Return an empty figure of a CDF, and the ends of an x axis that holds `x` and the label."""
    low, high = around(x if label is None else np.append(x, label))
    drawn = figure("Predictive distribution", name, "cumulative probability")
    return drawn.axes(x={"range": [low, high]}, y={"range": [-0.02, 1.02]}), low, high


def _with_label(drawn: Drawing, label: float | None) -> Drawing:
    if label is not None:
        dotted = {"width": 2, "dash": "dot"}
        drawn.add(line([label, label], [0.0, 1.0], "label", OTHER, line=dotted))
    return drawn


def _to_the_end(cdf: Floats) -> list[float]:
    """Return the heights of a CDF at the left end, at each threshold, and at the right end."""
    return [*cdf.tolist(), float(cdf[-1])]


def _masses(merged: Floats) -> Iterator[dict[str, Any]]:
    """Yield the annotations of the mass beyond the ends of the axis, above the corners."""
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


def _intervals(levels: Sequence[float]) -> Iterator[tuple[float, int, int, float]]:
    """Yield the central intervals, widest first: per cent, columns of both ends, opacity."""
    last = len(levels) - 1
    filled = np.linspace(*_FILLED, max(len(levels) // 2, 1)).tolist()
    for left, level in enumerate(levels):
        if not math.isclose(level + levels[last - left], 1.0, abs_tol=1e-9):
            msg = f"levels={levels!r} are not symmetric; give 1 - q for each q"
            raise ParameterError(msg)
        if left < last - left:
            yield 100.0 * (1.0 - 2.0 * level), left, last - left, filled[left]
