"""The figures before plotly has them: see the functions of `abers.plots` of the same names.

Governing rule: what is drawn is made of nothing but numbers and words, so that it can be encoded
every second, and without plotly.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abers._arrays import unmasked
from abers.exceptions import ParameterError
from abers.plots._style import (
    COLOURS,
    LABEL,
    MAIN,
    OTHER,
    REFERENCE,
    Drawing,
    around,
    faint,
    figure,
    line,
    numbers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike

    from abers._arrays import Floats

__all__ = [
    "Drawing",
    "corp",
    "coverage",
    "evidence",
    "fan_chart",
    "pit_histogram",
    "reliability",
    "series",
]

_MARKERS = {"calibrated": "circle", "raw": "diamond"}
_CHANCE = 2.0  # standard errors on either side
_SQUARE = {"range": [-0.02, 1.02], "dtick": 0.2}
_FILLED = (0.12, 0.3)  # how much of the colour: from the widest interval to the narrowest


def reliability(
    views: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]], *, title: str
) -> Drawing:
    """Draw forecasts against what came."""
    drawn = figure(title, "mean forecast of label 1", "share of labels 1")
    drawn.add(_diagonal())
    for name, columns in views.items():
        forecast = np.asarray(unmasked(columns[0]), np.float64)
        share, count = (
            numbers(column, forecast.shape, f"{what} of {name}")
            for column, what in zip(columns[1:], ("share", "count"), strict=True)
        )
        some = count > 0
        forecast, share, count = forecast[some], share[some], count[some]
        drawn.add(
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
    return drawn.axes(x=_SQUARE, y=_SQUARE)


def corp(
    views: Mapping[str, tuple[ArrayLike, ArrayLike]],
    bands: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
    *,
    title: str,
) -> Drawing:
    """Draw CORP reliability diagrams over the bands in which they would lie.

    Parameters
    ----------
    views
        By name ("raw", "calibrated"): forecasts, and what they should have been.
    bands
        By the same names: forecasts, and the lower and the upper end of the band at each.
    title
        In words.
    """
    drawn = figure(title, "forecast of label 1", "recalibrated: share of labels 1")
    for name, band in bands.items():
        forecast, *ends = (np.asarray(unmasked(column), np.float64).tolist() for column in band)
        style: dict[str, Any] = {"line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        filled: dict[str, Any] = {"fill": "tonexty", "fillcolor": faint(COLOURS[name], 0.15)}
        drawn.add(line(forecast, ends[0], name, **style))
        drawn.add(line(forecast, ends[1], name, **filled, **style))
    drawn.add(_diagonal())
    for name, columns in views.items():
        forecast, share = (np.asarray(unmasked(column), np.float64).tolist() for column in columns)
        marker = {"symbol": _MARKERS.get(name, "square"), "size": 5}
        hover = "forecast %{x:.3f}, should be %{y:.3f}"
        mode = "lines+markers"
        drawn.add(line(forecast, share, name, mode=mode, marker=marker, hovertemplate=hover))
    return drawn.axes(x=_SQUARE, y=_SQUARE)


def evidence(
    labels: Sequence[int],
    heights: Sequence[float],
    alarm_line: float,
    alarms: Sequence[tuple[int, float]],
    *,
    title: str,
) -> Drawing:
    """Draw evidence over time, on a logarithmic scale, with the line at which it rings.

    Parameters
    ----------
    labels, heights
        Labels so far, and common logarithm of the evidence.
    alarm_line
        Likewise, of the line.
    alarms
        Where it rang.
    title
        In words.
    """
    drawn = figure(title, "labels so far", "evidence, powers of ten", showlegend=True)
    drawn.add(line(labels, heights, "evidence of a change", MAIN))
    ends = [labels[0], labels[-1]] if labels else []
    dashed = {"dash": "dash", "width": 2}
    drawn.add(line(ends, [alarm_line] * len(ends), "alarm line", OTHER, line=dashed))
    if alarms:
        marker = {"symbol": "star", "size": 12, "color": OTHER}
        x, y = ([one[at] for one in alarms] for at in (0, 1))
        drawn.add(line(x, y, "alarm", OTHER, mode="markers", marker=marker))
    return drawn.axes(y={"rangemode": "tozero"})


def coverage(
    nominal: ArrayLike, views: Mapping[str, ArrayLike], count: int, *, title: str
) -> Drawing:
    """Draw what intervals held against what they should have."""
    levels = np.asarray(unmasked(nominal), np.float64)
    drawn = figure(title, "nominal coverage", "share of labels inside")
    drawn.add(_diagonal())
    for name, shares in views.items():
        inside = numbers(shares, levels.shape, f"coverage of {name}")
        drawn.add(
            line(
                levels.tolist(),
                inside.tolist(),
                name,
                mode="lines+markers",
                marker={"symbol": _MARKERS.get(name, "square"), "size": 9},
                error_y=_bars(inside, np.full(inside.shape, max(count, 1)), name),
            )
        )
    return drawn.axes(x=_SQUARE, y=_SQUARE)


def pit_histogram(counts: ArrayLike, *, title: str) -> Drawing:
    """Draw where labels fell in their predictive distributions."""
    many = np.asarray(unmasked(counts), np.float64)
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
        dotted = {"dash": "dot", "width": 1.5}
        drawn.add(
            line([0.0, 1.0], [height] * 2, name, REFERENCE, line=dotted, showlegend=bool(name))
        )
    return drawn.axes(x={"range": [0.0, 1.0]}, y={"rangemode": "tozero"})


def series(
    x: Sequence[float],
    views: Mapping[str, Sequence[float | None]],
    *,
    title: str,
    y_name: str,
    x_name: str,
) -> Drawing:
    """Draw numbers that change in the course of a stream."""
    drawn = figure(title, x_name, y_name, hovermode="x unified", showlegend=True)
    return drawn.add(*(line(x, column, name) for name, column in views.items()))


def fan_chart(  # noqa: PLR0913 - the parts of a figure
    x: ArrayLike,
    quantiles: ArrayLike,
    levels: Sequence[float],
    *,
    labels: ArrayLike | None,
    scores: ArrayLike | None,
    title: str,
    x_name: str,
    y_name: str,
) -> Drawing:
    """Draw central intervals of many predictions, and the labels that came."""
    at = np.asarray(unmasked(x), np.float64)
    order = np.argsort(at, kind="stable")
    values = numbers(quantiles, (len(at), len(levels)), "quantiles")[order]
    points = {
        called: numbers(column, at.shape, name)[order]
        for called, name, column in (("raw", "scores", scores), ("label", "labels", labels))
        if column is not None
    }
    low, high = around(np.concatenate([values.ravel(), *points.values()]))
    ends = np.clip(values, low, high).T.tolist()
    drawn = figure(title, x_name, y_name)
    places = at[order].tolist()
    for share, left, right, strength in _intervals(levels):
        style = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
        drawn.add(line(places, ends[left], "", MAIN, showlegend=False, **style))
        filled = {"fill": "tonexty", "fillcolor": faint(MAIN, strength)}
        drawn.add(line(places, ends[right], f"{share:.9g} %", MAIN, **filled, **style))
    if len(levels) % 2:
        drawn.add(line(places, ends[len(levels) // 2], "median", MAIN))
    if "raw" in points:
        drawn.add(line(places, points["raw"].tolist(), "raw", line={"width": 1.5}))
    if "label" in points:
        style = {"mode": "markers", "marker": {"size": 5, "color": LABEL, "symbol": "circle"}}
        drawn.add(line(places, points["label"].tolist(), "label", LABEL, **style))
    return drawn.axes(y={"range": [low, high]})


def _intervals(levels: Sequence[float]) -> Iterator[tuple[float, int, int, float]]:
    """Give the central intervals, widest first: per cent, columns of both ends, how filled."""
    last = len(levels) - 1
    filled = np.linspace(*_FILLED, max(len(levels) // 2, 1)).tolist()
    for left, level in enumerate(levels):
        if not math.isclose(level + levels[last - left], 1.0, abs_tol=1e-9):
            msg = f"levels={levels!r} are not symmetric; give 1 - q beside each q"
            raise ParameterError(msg)
        if left < last - left:
            yield 100.0 * (1.0 - 2.0 * level), left, last - left, filled[left]


def _diagonal() -> dict[str, Any]:
    dotted = {"dash": "dot", "width": 1.5}
    return line([0.0, 1.0], [0.0, 1.0], "as it should be", REFERENCE, line=dotted, hoverinfo="skip")


def _bars(share: Floats, count: Floats, name: str) -> dict[str, object]:
    """Give what chance does to a share of so many."""
    errors = _CHANCE * np.sqrt(share * (1.0 - share) / count)
    return {"array": errors.tolist(), "width": 3, "thickness": 1, "color": COLOURS.get(name)}
