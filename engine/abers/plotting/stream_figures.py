"""Figures of a stream: scores over time, and the evidence of a change.

A point lies at the last label that it includes. Where nothing is known, nothing is drawn.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from abers.plotting._style import (
    COLOURS,
    MAIN,
    OTHER,
    PALETTE,
    Drawing,
    FigureFunction,
    figure,
    line,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["bars", "evidence", "series"]


_DASHES = ("solid", "dot", "dash", "dashdot", "longdash", "longdashdot", "solid", "dot")


@FigureFunction
def series(
    x: Sequence[float],
    views: Mapping[str, Sequence[float | None]],
    *,
    title: str,
    y_name: str,
    dates: Sequence[int] | None = None,
) -> Drawing:
    """Draw numbers that change over time.

    Parameters
    ----------
    x
        Number of labels so far at each point.
    views
        By name, the numbers at these points; None where one is unknown. "raw" and "calibrated"
        have a fixed style.
    title, y_name
        Texts; that of the axis includes the unit.
    dates
        Event time of each point, in milliseconds since 1970, for an axis of dates.

    Examples
    --------
    >>> drawn = series([10, 20], {"raw": [0.7, 0.6], "calibrated": [0.5, None]},
    ...                title="Log loss", y_name="nats")
    >>> drawn.data[1].y
    (0.5, None)
    """
    drawn = figure(title, "", y_name, hovermode="x unified", showlegend=True)
    others = (name for name in views if name not in COLOURS)
    styles = dict(zip(others, cycle(zip(PALETTE, _DASHES, strict=True)), strict=False))
    for name, column in views.items():
        colour, dash = styles.get(name, (None, None))
        drawn.add(line(x, column, name, colour, **({"line": {"dash": dash}} if dash else {})))
    return _over_time(drawn, x, dates)


def _over_time(drawn: Drawing, labels: Sequence[float], dates: Sequence[int] | None) -> Drawing:
    """Set the axis: dates, with the labels in hover texts, or the labels so far."""
    if dates is None:
        return drawn.axes(x={"title": {"text": "labels so far", "standoff": 6}})
    where = dict(zip(labels, dates, strict=True))
    for trace in drawn.data:
        hover = "%{y:.4~g} (%{customdata:,} labels so far)"
        trace |= {"customdata": trace["x"], "hovertemplate": hover}
        trace["x"] = [where[x] for x in trace["x"]]
    title = {"text": "event time (UTC)", "standoff": 6}
    return drawn.axes(x={"type": "date", "title": title, "hoverformat": "%Y-%m-%d %H:%M:%S"})


@FigureFunction
def bars(bars: Mapping[str, float], *, title: str, x_name: str, y_name: str) -> Drawing:
    """Draw a bar for each name, the first at the top.

    Parameters
    ----------
    bars
        By name, the length of each bar.
    title, x_name, y_name
        Texts; those of the axes include the units.

    Examples
    --------
    >>> weights = {"raw": 0.25, "platt": 0.75}
    >>> drawn = bars(weights, title="Weights", x_name="weight", y_name="method")
    >>> drawn.data[0].y
    ('raw', 'platt')
    """
    drawn = figure(title, x_name, y_name)
    trace = {"type": "bar", "orientation": "h", "marker": {"color": MAIN}}
    drawn.add(trace | {"x": [*bars.values()], "y": [*bars], "hoverinfo": "x+y"})
    title_beside_names = {"text": y_name, "standoff": 12}
    return drawn.axes(
        x={"rangemode": "tozero"}, y={"autorange": "reversed", "title": title_beside_names}
    )


@FigureFunction
def evidence(  # noqa: PLR0913 - the parts of a figure
    labels: Sequence[int],
    heights: Sequence[float],
    threshold: float,
    alarms: Sequence[tuple[int, float]],
    *,
    title: str = "Evidence of a change",
    dates: Sequence[int] | None = None,
) -> Drawing:
    """Draw the evidence of a change over time, on a logarithmic scale, with its alarms.

    Parameters
    ----------
    labels, heights
        Labels so far, and the common logarithm of the evidence.
    threshold
        Common logarithm of the threshold of an alarm.
    alarms
        Labels so far, or with dates the event time, and common logarithm of the evidence at each
        alarm.
    title
        Title of the figure.
    dates
        Event time of each point, in milliseconds since 1970, for an axis of dates.

    Examples
    --------
    >>> drawn = evidence([10, 20, 30], [0.1, 1.5, 4.2], 4.0, [(30, 4.2)])
    >>> [trace.name for trace in drawn.data]
    ['evidence of a change', 'threshold', 'alarm']
    """
    drawn = figure(title, "", "powers of ten", showlegend=True)
    drawn.add(line(labels, heights, "evidence of a change", MAIN))
    ends = [labels[0], labels[-1]] if labels else []
    dashed = {"dash": "dash", "width": 2}
    drawn.add(line(ends, [threshold] * len(ends), "threshold", OTHER, line=dashed))
    _over_time(drawn, labels, dates)
    if alarms:
        marker = {"symbol": "star", "size": 12, "color": OTHER}
        x, y = ([one[at] for one in alarms] for at in (0, 1))
        drawn.add(line(x, y, "alarm", OTHER, mode="markers", marker=marker))
    return drawn.axes(y={"rangemode": "tozero"})
