"""Figures of numbers over time, from the windows of a stream."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from abers.monitoring.base import Figure
from abers.monitoring.event_time import event_time, is_date
from abers.monitoring.trail import FIRST_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers.monitoring.base import Monitor
    from abers.monitoring.measures import Number
    from abers.monitoring.windows import Window

__all__ = ["axis_dates", "figures_over_time", "missing_labels"]

M = TypeVar("M", bound="Monitor")
_Table: TypeAlias = "dict[tuple[str, str], Number]"


def figures_over_time(windows: Sequence[Window[M]]) -> list[Figure]:
    """Return a figure over time of each number that has a chart.

    Parameters
    ----------
    windows
        Such as `recent_windows` yields: a point each.

    Returns
    -------
    list of Figure
        A figure with a number that is never finite is left out, and so is a view of it.
    """
    if not windows:
        return []
    tables = [{(one.view, one.name): one for one in w.monitor.summary()} for w in windows]
    charts = [one for (view, _), one in tables[-1].items() if one.chart and view != "raw"]
    return [figure for one in charts for figure in _over_time(one, windows, tables)]


def _over_time(
    number: Number, windows: Sequence[Window[M]], tables: Sequence[_Table]
) -> Iterator[Figure]:
    """Yield the figure of a number over time, if a window has a value of it."""
    columns: dict[str, list[float | None]] = {}
    for view in ("raw", "calibrated") if number.view else ("",):
        values = [table.get((view, number.name)) for table in tables]
        column = [None if one is None else one.value for one in values]
        finite = [one if one is None or math.isfinite(one) else None for one in column]
        if any(one is not None for one in finite):
            columns[view or "calibrated"] = finite if view else column
    if not columns:
        return
    ends, sizes = [one.end for one in windows], [one.labels for one in windows]
    heading = f"{number.chart[0].upper()}{number.chart[1:]} over time"
    dates = axis_dates([one.last for one in windows])
    spans = [] if dates is None else [[event_time(w.first), event_time(w.last)] for w in windows]
    yield Figure(
        f"over-{number.name.removeprefix('mean_')}",
        heading,
        "series",
        {"x": ends, "views": columns, "y_name": number.unit, "dates": dates},
        f"Each point is the mean over the {max(sizes):,} labels before it, or as many as there "
        "were. Where the line is broken it is infinite or unknown."
        + (" Infinite losses are left out." if number.measure.finite else ""),
        ["labels so far", "over", *(["first", "last"] if spans else []), *columns],
        [
            [*row[:2], *(spans[at] if spans else []), *row[2:]]
            for at, row in enumerate(zip(ends, sizes, *columns.values(), strict=True))
        ],
        missing_labels(ends),
    )


def missing_labels(ends: Sequence[int]) -> int:
    """Return how many labels must come before there are two points, and so a line."""
    return max(FIRST_SIZE + 1 - ends[-1], 0) if ends else FIRST_SIZE + 1


def axis_dates(times: Sequence[int]) -> list[int] | None:
    """Return the event times of points for an axis of dates; None if one is a row number.

    Labels come late, so a time may be before that of the point before; the axis shows the latest.
    """
    return [*accumulate(times, max)] if times and all(map(is_date, times)) else None
