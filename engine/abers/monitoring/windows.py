"""Scores and other numbers over time, in bounded memory, and their figures.

All windows of a stream but the last are equally long; when there are too many of them, every two
neighbours become one. So the past is kept at the resolution of the present, and the result depends
neither on batches nor on a random choice.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from abers.backends import core
from abers.monitoring.base import Figure
from abers.monitoring.formats import event_time, is_date
from abers.serialization import CopiedWhole, count, require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers._core import WindowCounter
    from abers.arrays import Integers
    from abers.monitoring.base import Monitor
    from abers.monitoring.measures import Number, ScoredRows

__all__ = [
    "FIRST_SIZE",
    "Totals",
    "Trail",
    "Window",
    "WindowedMonitor",
    "axis_dates",
    "figures_over_time",
    "joined_windows",
    "missing_labels",
    "recent_windows",
]

FIRST_SIZE = 40
"""Labels in the first windows: few enough for a short stream, and enough to cost little."""


class _Point(Protocol):
    @property
    def labels(self) -> int:
        """Number of labels so far."""


P = TypeVar("P", bound=_Point)


class Trail(CopiedWhole, Generic[P]):
    """Points of a stream, at most one for each window of labels.

    Parameters
    ----------
    joined
        Joins two points of one window, the earlier first.
    most
        Largest number of windows. With more labels each window becomes twice as long.

    Attributes
    ----------
    points
        In the order of the stream.
    size
        Number of labels in a window.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Height(NamedTuple):
    ...     labels: int
    ...     height: float
    >>> trail = Trail(lambda a, b: Height(b.labels, max(a.height, b.height)), most=2)
    >>> for labels, height in ((40, 1.0), (80, 3.0), (120, 2.0)):
    ...     trail.note(Height(labels, height))
    >>> trail.points
    [Height(labels=80, height=3.0), Height(labels=120, height=2.0)]
    """

    def __init__(self, joined: Callable[[P, P], P], most: int) -> None:
        self.points: list[P] = []
        self._joined, self._most, self.size = joined, most, FIRST_SIZE

    def reach(self, labels: int) -> None:
        """Make the windows long enough for so many labels."""
        if labels > self.size * self._most:
            while labels > self.size * self._most:
                self.size *= 2
            points, self.points = self.points, []
            for one in points:
                self.points = self._joined_to(self.points, one)

    def note(self, point: P) -> None:
        """Add a point behind all others."""
        self.reach(point.labels)
        self.points = self._joined_to(self.points, point)

    def lacks(self, labels: int) -> bool:
        """Return whether there is no point yet in the window of so many labels."""
        return not self.points or self.points[-1].labels <= (labels - 1) // self.size * self.size

    def with_last(self, point: P) -> list[P]:
        """Return the points, and one behind them that is not added."""
        return self._joined_to(self.points, point)

    def load(self, points: Sequence[P]) -> None:
        """Restore the points of an empty trail; a ValueError if they cannot be some."""
        labels = [one.labels for one in points]
        require(labels == sorted({*labels}) and min(labels, default=1) > 0, "labels of a history")
        for one in points:
            self.note(one)
        require(len(self.points) == len(points), "windows of a history")

    def _joined_to(self, points: Sequence[P], point: P) -> list[P]:
        if points and self._window(points[-1]) == self._window(point):
            return [*points[:-1], self._joined(points[-1], point)]
        return [*points, point]

    def _window(self, point: P) -> int:
        return (point.labels - 1) // self.size


_NO_TIMES = int(np.iinfo(np.int64).max), int(np.iinfo(np.int64).min)
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
    first, last
        Smallest and largest event time of the observations in it.
    monitor
        Monitor of its predictions.
    """

    end: int
    labels: int
    first: int
    last: int
    monitor: M


class Totals(NamedTuple):
    """Totals of a monitor at the end of a window.

    Attributes
    ----------
    labels
        Number of predictions that had been scored.
    first, last
        Smallest and largest event time of the observations in the window.
    totals
        Totals of the monitor, and of those with it, by name, as `pack` encodes them.
    """

    labels: int
    first: int
    last: int
    totals: Any


class WindowedMonitor(CopiedWhole, Generic[M]):
    """Totals of a monitor at the ends of consecutive windows: a window lies between two of them.

    So windows cost next to nothing while the monitor takes predictions.

    Parameters
    ----------
    monitor
        Restores a monitor from its totals, and those of any with it, by name.
    most
        Largest number of windows, an even number.
    pack, unpack
        Encode the totals of a monitor in less memory, and decode them.

    Examples
    --------
    >>> import numpy as np
    >>> from abers.monitoring import BinaryForecasts, ScoredRows, task_monitor
    >>> labels, times = np.arange(96) % 2.0, np.arange(96)
    >>> forecasts = {"calibrated": BinaryForecasts(np.full(96, 0.5), labels)}
    >>> monitor = task_monitor("binary", raw=False)
    >>> windowed = WindowedMonitor(lambda totals: task_monitor("binary", totals, raw=False))
    >>> windowed.update(monitor, ScoredRows(labels, forecasts), times)
    True
    >>> windows = windowed.windows(monitor)
    >>> [(one.end, one.labels, one.first, one.last) for one in windows]
    [(40, 40, 0, 39), (80, 40, 40, 79), (96, 16, 80, 95)]
    >>> [one.monitor.calibrated.brier for one in windows]
    [0.25, 0.25, 0.25]
    """

    def __init__(
        self,
        monitor: Callable[[Any], M],
        most: int = 64,
        *,
        pack: Callable[[Any], Any] = dict,
        unpack: Callable[[Any], Any] = dict,
    ) -> None:
        self.most = most
        self._monitor, self._pack, self._unpack = monitor, pack, unpack
        self._trail = Trail(_wider, most)
        self._counter = core.WindowCounter(most)
        self._counter.size = self._trail.size

    @property
    def count(self) -> int:
        """Number of predictions scored."""
        return int(self._counter.count)

    @property
    def counter(self) -> WindowCounter:
        """Count and times of the present window, in the core."""
        counter: WindowCounter = self._counter
        return counter

    @property
    def last(self) -> int:
        """Largest event time so far, among the windows."""
        last, points = int(self._counter.last), self._trail.points
        return max(last, max((one.last for one in points), default=last))

    @property
    def size(self) -> int:
        """Number of predictions in a window."""
        return int(self._counter.size)

    def update(self, monitor: M, scored: ScoredRows, times: Integers) -> bool:
        """Add labelled predictions to the monitor, in their order.

        Parameters
        ----------
        monitor
            Monitor of all predictions so far.
        scored
            Predictions, at least one.
        times
            Array of shape (n,): event times of their observations.

        Returns
        -------
        bool
            Whether a window was completed.
        """
        done, completed = 0, False
        while done < len(scored):
            self._open()
            rows = slice(done, min(done + self.size - self.count % self.size, len(scored)))
            whole = rows == slice(0, len(scored))
            monitor.update(scored if whole else scored.take(rows))
            at: Any = times[rows]
            counter = self._counter
            counter.first = min(counter.first, int(at.min()))
            counter.last = max(counter.last, int(at.max()))
            counter.count += rows.stop - done
            done = rows.stop
            if self.count % self.size == 0:
                self.note(self._now(monitor))
                self._counter.first, self._counter.last = _NO_TIMES
                completed = True
        return completed

    def _open(self) -> None:
        """Make the windows long enough for one more prediction."""
        self._trail.reach(self.count + 1)
        self._counter.size = self._trail.size

    def note(self, end: Totals) -> None:
        """Add the end of a window, with totals as a monitor returns them, by name."""
        self._trail.note(end._replace(totals=self._pack(end.totals)))

    def _points(self) -> list[Totals]:
        """Return the ends of the windows, which are as long as those that the core counts."""
        self._trail.reach(self.count)
        return self._trail.points

    def windows(self, monitor: M) -> list[Window[M]]:
        """Return the windows in their order, up to this moment of the monitor."""
        points = self._points()
        if self.count and (not points or points[-1].labels < self.count):
            now = self._now(monitor)
            points = self._trail.with_last(now._replace(totals=self._pack(now.totals)))
        found, before = list[Window[M]](), dict[str, Any]()
        for labels, first, last, packed in points:
            totals = self._unpack(packed)
            between = _between(monitor, totals, before)
            done = found[-1].end if found else 0
            found.append(Window(labels, labels - done, first, last, self._monitor(between)))
            before = totals
        return found

    def state(self) -> tuple[int, int, int, list[Totals]]:
        """Return the state: what `load` takes."""
        counter = self._counter
        return self.count, counter.first, counter.last, self._points()

    def load(self, labels: int, first: int, last: int, points: Sequence[Totals]) -> None:
        """Restore a state that `state` returned, before the first label.

        Raises
        ------
        ValueError
            If it cannot be one.
        """
        counter = self._counter
        counter.count = count(labels, "labels of a history")
        self._trail.load(points)
        self._trail.reach(self.count)
        counter.size = self._trail.size
        require(all(one.first <= one.last for one in points), "times of windows")
        require(not points or points[-1].labels <= labels, "labels of a history")
        counter.first, counter.last = first, last

    def _now(self, monitor: M) -> Totals:
        totals = {name: one.totals() for name, one in monitor.each().items()}
        counter = self._counter
        return Totals(self.count, counter.first, counter.last, totals)


def _between(
    monitor: Monitor, later: Mapping[str, Any], earlier: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the totals of the predictions between two totals; a new monitor began empty."""
    return {
        name: one.difference(later[name], earlier[name]) if name in earlier else later[name]
        for name, one in monitor.each().items()
        if name in later
    }


def _wider(before: Totals, after: Totals) -> Totals:
    first, last = min(before.first, after.first), max(before.last, after.last)
    return after._replace(first=first, last=last)


def joined_windows(many: Sequence[Sequence[Window[M]]], most: int) -> list[Window[M]]:
    """Return the windows of several streams as those of one, in the order of their last times.

    Parameters
    ----------
    many
        Windows of each stream; at least one has some.
    most
        Largest number of windows to return, each of about as many predictions.
    """
    if len(many) == 1:
        return [*many[0]]
    windows = sorted((one for some in many for one in some), key=lambda one: (one.last, one.first))
    ends = [*accumulate(one.labels for one in windows)]
    groups: dict[int, list[Window[M]]] = {}
    for end, one in zip(ends, windows, strict=True):
        group = (end - one.labels) * most // ends[-1]
        groups.setdefault(group, []).append(one._replace(end=end))
    return [_joined(one) for one in groups.values()]


def recent_windows(windows: Sequence[Window[M]]) -> Iterator[Window[M]]:
    """Yield, for each window in order, the last tenth of the stream up to its end."""
    span = -(-len(windows) // _MEANS_OVER)
    for end in range(1, len(windows) + 1):
        yield _joined(windows[max(end - span, 0) : end])


def _joined(many: Sequence[Window[M]]) -> Window[M]:
    """Return consecutive windows as one."""
    if len(many) == 1:
        return many[0]
    return Window(
        many[-1].end,
        sum(one.labels for one in many),
        min(one.first for one in many),
        max(one.last for one in many),
        type(many[0].monitor).total([one.monitor for one in many]),
    )


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
