"""Scores over time, in bounded memory.

Each window of a stream has a monitor of its own. All windows but the last are equally long; when
there are too many of them, every two neighbours become one. So the result depends neither on
batches nor on a random choice.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from abers.monitoring.base import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers.monitoring.base import Monitor
    from abers.monitoring.measures import Number
    from abers.monitoring.scored_rows import ScoredRows

__all__ = ["Window", "WindowedMonitor", "figures_over_time"]

_FIRST_WINDOW_PREDICTIONS = 5  # in the first window, so that a short stream has enough points
_MEANS_OVER = 10  # a point of a figure is a mean over one part of the stream in so many


M = TypeVar("M", bound="Monitor")


class Window(NamedTuple, Generic[M]):
    """Some consecutive windows of a stream as one.

    Attributes
    ----------
    end
        Number of predictions that had been scored at its end.
    labels
        Number of predictions in it.
    monitor
        Monitor of these.
    """

    end: int
    labels: int
    monitor: M


class WindowedMonitor(Generic[M]):
    """Monitors of consecutive windows of a stream.

    Parameters
    ----------
    monitor
        Makes an empty monitor.
    most
        Largest number of windows, an even number.

    Attributes
    ----------
    count
        Number of predictions scored.
    size
        Number of predictions in a window.

    Examples
    --------
    >>> import numpy as np
    >>> from abers.monitoring import BinaryForecasts, BinaryMonitor, ScoredRows
    >>> labels = np.arange(12) % 2.0
    >>> forecasts = {"calibrated": BinaryForecasts(np.full(12, 0.5), labels)}
    >>> windowed = WindowedMonitor(lambda: BinaryMonitor(raw=False))
    >>> windowed.update(ScoredRows(labels, forecasts))
    >>> [(one.end, one.labels, one.monitor.calibrated.brier) for one in windowed.windows()]
    [(5, 5, 0.25), (10, 5, 0.25), (12, 2, 0.25)]
    """

    def __init__(self, monitor: Callable[[], M], most: int = 256) -> None:
        self.count, self.size = 0, _FIRST_WINDOW_PREDICTIONS
        self._make, self._most = monitor, most
        self._monitors: list[M] = []

    def update(self, scored: ScoredRows) -> None:
        """Add predictions whose labels came, in their order; see `Monitor.update`."""
        done = 0
        while done < len(scored):
            if self.count == self.size * len(self._monitors):
                self._begin()
            free = self.size * len(self._monitors) - self.count
            rows = scored.take(slice(done, done + free))
            self._monitors[-1].update(rows)
            self.count += len(rows)
            done += len(rows)

    def _begin(self) -> None:
        """Begin a window; all others are full."""
        if len(self._monitors) == self._most:
            neighbours = zip(self._monitors[::2], self._monitors[1::2], strict=True)
            self._monitors = [_joined(pair) for pair in neighbours]
            self.size *= 2
        self._monitors.append(self._make())

    def windows(self, span: int = 1) -> Iterator[Window[M]]:
        """Yield, for each window in order, the last `span` windows up to its end as one."""
        for last in range(1, len(self._monitors) + 1):
            first = max(last - span, 0)
            end = min(last * self.size, self.count)
            yield Window(end, end - first * self.size, _joined(self._monitors[first:last]))

    def recent(self) -> Iterator[Window[M]]:
        """Yield, for each window in order, the last tenth of the stream up to its end."""
        span = -(-self.count // (_MEANS_OVER * self.size))
        yield from self.windows(max(span, 1))


_Table: TypeAlias = "dict[tuple[str, str], Number]"


def figures_over_time(windows: Sequence[Window[M]]) -> list[Figure]:
    """Return a figure over time of each number that has a chart.

    Parameters
    ----------
    windows
        Such as `WindowedMonitor.recent` yields: a point each.

    Returns
    -------
    list of Figure
        A figure whose number is never finite is left out, and so is such a view of it.
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
    yield Figure(
        f"over-{number.name.removeprefix('mean_')}",
        heading,
        "series",
        {"x": ends, "views": columns, "y_name": number.unit, "x_name": "labels so far"},
        f"Each point is the mean over the {max(sizes):,} labels before it, or as many as there "
        "were. Where the line is broken it is infinite or unknown."
        + (" Infinite losses are left out." if number.measure.finite else ""),
        ["labels so far", "over", *columns],
        [[*row] for row in zip(ends, sizes, *columns.values(), strict=True)],
    )


def _joined(many: Sequence[M]) -> M:
    return type(many[0]).total(many)
