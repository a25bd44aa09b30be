"""Monitor of tracked intervals: the share of labels that they cover, and its bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abers.monitoring._finite_mean import FiniteMean
from abers.monitoring.base import Figure, Monitor, consistency_bands
from abers.monitoring.measures import Measure, Number
from abers.serialization import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.base import BandMaker
    from abers.monitoring.scored_rows import ScoredRows
    from abers.monitoring.tracker import Tracker

__all__ = ["CoverageMonitor"]

_SHARE = "share of labels"
_COVERAGE = Measure(
    "tracked_coverage",
    "coverage of the tracked interval",
    _SHARE,
    "Share of the labels inside the tracked intervals.",
    brief="",
    gauge="",
)
_WIDTH = Measure(
    "tracked_width",
    "mean width of the tracked interval",
    "unit of the label",
    "Mean width of the tracked intervals; an empty one has the width 0.",
    brief="",
    gauge="",
)
_WHOLE = Measure(
    "tracked_whole",
    "tracked intervals without a limit",
    "ratio",
    "Share of the tracked intervals that are the whole support.",
    brief="",
    chart="",
    gauge="",
)
_EMPTY = Measure(
    "tracked_empty",
    "tracked intervals that are empty",
    "ratio",
    "Share of the tracked intervals that are empty.",
    brief="",
    chart="",
    gauge="",
)
_LEVEL = Measure(
    "tracked_level",
    "promised coverage",
    _SHARE,
    "Share of labels that the tracked intervals are to cover.",
    brief="",
    chart="",
)
_BOUND = Measure(
    "tracked_coverage_bound",
    "bound on the distance between the two",
    _SHARE,
    "Bound on the difference of the coverage of the tracked intervals and the promised coverage.",
    brief="",
    chart="",
)


class CoverageMonitor(Monitor):
    """Coverage and width of tracked intervals; how often they are the whole support, or empty.

    Attributes
    ----------
    labels
        Number of predictions scored.
    covered, whole, empty
        Number of intervals that covered their labels, that were the whole support, and that were
        empty.
    widths
        Mean of their widths.
    trackers
        Trackers that move the intervals: one; all for a total; none in a window.

    Notes
    -----
    With trackers, which `watch_tracker` adds, the coverage is theirs: that of observations that
    were predicted since the calibrator began, for which the bound holds. A window counts its rows,
    and has no bound.

    Examples
    --------
    >>> from abers.monitoring import ScoredRows, TrackedRows
    >>> from abers.regression import CoverageTracker
    >>> monitor, tracker = CoverageMonitor(), CoverageTracker(0.8, (0.0, 10.0))
    >>> monitor.watch_tracker(tracker)
    >>> interval = tracker.predict_one(4.0, 6.0, number=0)
    >>> tracker.learn_one(5.0, number=0)
    >>> yes, no = np.array([True]), np.array([False])
    >>> tracked = TrackedRows(0.8, yes, np.array([2.0]), no, no)
    >>> monitor.update(ScoredRows(np.array([5.0]), tracked=tracked))
    >>> [(one.name, one.value) for one in monitor.summary()[:3]]
    [('tracked_coverage', 1.0), ('tracked_level', 0.8), ('tracked_coverage_bound', 101.0)]
    """

    name = "coverage"
    measures = (_COVERAGE, _LEVEL, _BOUND, _WIDTH, _WHOLE, _EMPTY)

    def __init__(self) -> None:
        self.labels = self.covered = self.whole = self.empty = 0
        self.widths = FiniteMean()
        self.trackers: list[Tracker] = []

    def watch_tracker(self, tracker: Tracker) -> None:
        """Read the coverage and the bound of the tracker that moves the intervals."""
        self.trackers = [tracker]

    def update(self, scored: ScoredRows) -> None:
        """Add labelled predictions."""
        if (tracked := scored.tracked) is None:
            raise ValueError("tracked")
        self.labels += len(scored)
        self.covered += int(np.count_nonzero(tracked.covered))
        self.whole += int(np.count_nonzero(tracked.whole))
        self.empty += int(np.count_nonzero(tracked.empty))
        self.widths.update(tracked.widths)

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Add up monitors of different predictions, and their trackers."""
        whole = cls()
        for one in many:
            whole.labels += one.labels
            whole.covered += one.covered
            whole.whole += one.whole
            whole.empty += one.empty
            whole.widths.add(one.widths)
            whole.trackers += one.trackers
        return whole

    def summary(self) -> list[Number]:
        """Return coverage, width and shares; with trackers also the level and the bound."""
        return [
            *self._coverage(),
            Number(_WIDTH, self.widths.mean),
            Number(_WHOLE, _share(self.whole, self.labels)),
            Number(_EMPTY, _share(self.empty, self.labels)),
        ]

    def _coverage(self) -> list[Number]:
        if not self.trackers:
            return [Number(_COVERAGE, _share(self.covered, self.labels))]
        labels = sum(one.labels for one in self.trackers)
        off = math.fsum(one.slack + one.waited for one in self.trackers)
        return [
            Number(_COVERAGE, _share(sum(one.covered for one in self.trackers), labels)),
            Number(_LEVEL, self.trackers[0].level),
            Number(_BOUND, _share(off, labels)),
        ]

    def figures(self, bands: BandMaker = consistency_bands) -> list[Figure]:
        """Return the figure of what the intervals are and cover."""
        del bands
        if not self.labels:
            return []
        counts = {"covered": self.covered, "whole support": self.whole, "empty": self.empty}
        rows = [(one.label, one.value) for one in self.summary()]
        return [
            Figure(
                "tracked-interval",
                "Tracked interval",
                "bars",
                {
                    "bars": {name: number / self.labels for name, number in counts.items()},
                    "x_name": "share of tracked intervals",
                    "y_name": "what they are",
                },
                "Where hits and misses are too far from the level, the tracked interval is the "
                "whole support, or empty.",
                ["number", "value"],
                [[label, value if math.isfinite(value) else None] for label, value in rows],
            )
        ]

    def state(self) -> tuple[Any, ...]:
        """Return the counts, and the state of the mean width."""
        return (self.labels, self.covered, self.whole, self.empty, self.widths.state())

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the monitor with this state; see `Monitor.restore`."""
        labels, covered, whole, empty, widths = state
        monitor = cls()
        monitor.labels = count(labels, "labels")
        monitor.covered = count(covered, "covered", monitor.labels)
        monitor.whole = count(whole, "whole", monitor.labels)
        monitor.empty = count(empty, "empty", monitor.labels)
        monitor.widths.load(widths)
        return monitor


def _share(number: float, of: int) -> float:
    return number / of if of else math.nan
