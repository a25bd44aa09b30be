"""Monitors of the intervals of `calibrator.coverage`: the share of labels that they cover.

An infinite loss is counted and not added, so that it does not hide the others. Terms are added in
their order, so that batches make no difference.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from abers.backends import core
from abers.monitoring.base import Figure, Monitor, consistency_bands
from abers.monitoring.measures import Measure, Number
from abers.serialization import count, number, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats
    from abers.monitoring.base import BandMaker
    from abers.monitoring.measures import ScoredRows, Tracker

__all__ = ["BandCoverageMonitor", "CoverageMonitor", "FiniteMean"]


class FiniteMean:
    """Mean of finite terms, from their sum and their number, and the number of infinite terms.

    Examples
    --------
    >>> losses = FiniteMean()
    >>> losses.update(np.array([1.0, np.inf, 2.0]))
    >>> losses.mean, losses.infinite
    (1.5, 1)
    """

    def __init__(self) -> None:
        self.total, self.count, self.infinite = 0.0, 0, 0

    @property
    def mean(self) -> float:
        """Mean of the finite terms; NaN before the first."""
        return self.total / self.count if self.count else math.nan

    def update(self, terms: Floats) -> None:
        """Add terms in their order."""
        finite = terms[np.isfinite(terms)]
        self.total = core.added(self.total, finite)
        self.count += len(finite)
        self.infinite += len(terms) - len(finite)

    def state(self) -> tuple[float, int, int]:
        """Return the state: what `load` takes."""
        return self.total, self.count, self.infinite

    def load(self, state: Sequence[Any]) -> None:
        """Restore a state; a ValueError if it cannot be one."""
        total, counted, infinite = state
        self.count, self.infinite = count(counted, "counts"), count(infinite, "counts")
        self.total = number(total, "sums", 0.0)
        require(self.count or not self.total, "sums")

    def add(self, other: Self) -> None:
        """Add the terms of another mean."""
        self.total += other.total
        self.count += other.count
        self.infinite += other.infinite


_SHARE, _UNIT = "share of labels", "unit of the label"
_COVERAGE = Measure(
    "tracked_coverage",
    "coverage of the promised interval",
    _SHARE,
    "Share of the labels inside the intervals of calibrator.coverage.",
    brief="",
    gauge="",
)
_WIDTH = Measure(
    "tracked_width",
    "mean width of the promised interval",
    _UNIT,
    "Mean width of these intervals where it is finite; an empty one has the width 0.",
    brief="",
    gauge="",
)
_SCORE = Measure(
    "tracked_score",
    "interval score of the promised interval",
    _UNIT,
    "Mean interval score of these intervals where it is finite; smaller is better.",
    brief="",
    chart="",
    gauge="",
    finite=True,
)
_WHOLE = Measure(
    "tracked_whole",
    "promised intervals without a limit",
    "ratio",
    "Share of these intervals that have an infinite end, or are the whole support.",
    brief="",
    chart="",
    gauge="",
)
_EMPTY = Measure(
    "tracked_empty",
    "promised intervals that are empty",
    "ratio",
    "Share of these intervals that are empty.",
    brief="",
    chart="",
    gauge="",
)
_LEVEL = Measure(
    "tracked_level",
    "promised coverage",
    _SHARE,
    "Share of labels that these intervals are to cover.",
    brief="",
    chart="",
)
_BOUND = Measure(
    "tracked_coverage_bound",
    "bound on the distance between the two",
    _SHARE,
    "Bound on the difference of the coverage of tracked intervals and the promised coverage.",
    brief="",
    chart="",
)


class CoverageMonitor(Monitor):
    """Coverage, width and score of tracked intervals; how often they are without a limit, or empty.

    Attributes
    ----------
    labels
        Number of predictions scored.
    level
        Share of labels that the intervals are to cover; NaN before the first.
    covered, whole, empty
        Number of intervals that covered their labels, that had no limit, and that were empty.
    widths, scores
        Means of their widths and of their interval scores.
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
    >>> tracked = TrackedRows(0.8, yes, np.array([2.0]), no, no, np.array([2.0]))
    >>> monitor.update(ScoredRows(np.array([5.0]), tracked=tracked))
    >>> [(one.name, one.value) for one in monitor.summary()[:3]]
    [('tracked_coverage', 1.0), ('tracked_level', 0.8), ('tracked_coverage_bound', 101.0)]
    """

    name = "coverage"
    measures: ClassVar[tuple[Measure, ...]] = (
        *(_COVERAGE, _LEVEL, _BOUND, _WIDTH, _SCORE, _WHOLE, _EMPTY),
    )
    _parts: ClassVar[dict[str, str]] = {
        "covered": "covered",
        "whole": "whole support",
        "empty": "empty",
    }
    _promise: ClassVar[str] = (
        "On any stream the coverage is within the bound of the promised one. Where hits and misses "
        "are too far from it, the interval is the whole support, or empty."
    )

    def __init__(self) -> None:
        self.labels = self.covered = self.whole = self.empty = 0
        self.level = math.nan
        self.widths, self.scores = FiniteMean(), FiniteMean()
        self.trackers: list[Tracker] = []

    def watch_tracker(self, tracker: Tracker) -> None:
        """Read the coverage and the bound of the tracker that moves the intervals."""
        self.trackers = [tracker]

    def update(self, scored: ScoredRows) -> None:
        """Add labelled predictions."""
        if (tracked := scored.tracked) is None:
            raise ValueError("tracked")
        self.level = tracked.level
        self.labels += len(scored)
        self.covered += int(np.count_nonzero(tracked.covered))
        self.whole += int(np.count_nonzero(tracked.whole))
        self.empty += int(np.count_nonzero(tracked.empty))
        self.widths.update(tracked.widths)
        self.scores.update(tracked.scores)

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Add up monitors of different predictions, and their trackers."""
        whole = cls()
        for one in many:
            whole.level = whole.level if math.isnan(one.level) else one.level
            whole.labels += one.labels
            whole.covered += one.covered
            whole.whole += one.whole
            whole.empty += one.empty
            whole.widths.add(one.widths)
            whole.scores.add(one.scores)
            whole.trackers += one.trackers
        return whole

    def summary(self) -> list[Number]:
        """Return coverage, level, width, score and shares; with trackers also the bound."""
        return [
            *self._coverage(),
            Number(_WIDTH, self.widths.mean),
            Number(_SCORE, self.scores.mean, infinite=self.scores.infinite),
            Number(_WHOLE, _share(self.whole, self.labels)),
            Number(_EMPTY, _share(self.empty, self.labels)),
        ]

    def _coverage(self) -> list[Number]:
        if not self.trackers:
            share = Number(_COVERAGE, _share(self.covered, self.labels))
            return [share, Number(_LEVEL, self.level)]
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
        rows = [(one.label, one.value) for one in self.summary()]
        shares = {name: getattr(self, of) / self.labels for of, name in self._parts.items()}
        return [
            Figure(
                "tracked-interval",
                "Interval with a promised coverage",
                "bars",
                {"bars": shares, "x_name": "share of intervals", "y_name": "what they are"},
                self._promise,
                ["number", "value"],
                [[label, value if math.isfinite(value) else None] for label, value in rows],
            )
        ]

    def state(self) -> tuple[Any, ...]:
        """Return the counts, the states of the means, and the level, 0 before there is one."""
        counts = (self.labels, self.covered, self.whole, self.empty)
        level = self.level if self.labels else 0.0
        return (*counts, self.widths.state(), self.scores.state(), level)

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the monitor with this state; see `Monitor.restore`."""
        labels, covered, whole, empty, widths, scores, level = state
        monitor = cls()
        monitor.labels = count(labels, "labels")
        monitor.covered = count(covered, "covered", monitor.labels)
        monitor.whole = count(whole, "whole", monitor.labels)
        monitor.empty = count(empty, "empty", monitor.labels)
        monitor.widths.load(widths)
        monitor.scores.load(scores)
        known = number(level, "level", 0.0)
        require(known < 1.0 and bool(known) == bool(monitor.labels), "level")
        monitor.level = known or math.nan
        return monitor

    @classmethod
    def difference(cls, later: Sequence[Any], earlier: Sequence[Any]) -> tuple[Any, ...]:
        """Return the totals between two totals of a stream; the level is that of its intervals."""
        *counts, level = later
        return (*super().difference(counts, earlier[:-1]), level if counts[0] > earlier[0] else 0.0)


class BandCoverageMonitor(CoverageMonitor):
    """The same of intervals of a band, which no tracker moves.

    Examples
    --------
    >>> from abers.monitoring import BandCoverageMonitor, ScoredRows, TrackedRows
    >>> monitor = BandCoverageMonitor()
    >>> yes, no = np.array([True, True]), np.array([False, False])
    >>> widths = np.array([2.0, np.inf])
    >>> band = TrackedRows(0.8, yes, widths, np.isinf(widths), no, widths)
    >>> monitor.update(ScoredRows(np.array([5.0, 6.0]), tracked=band))
    >>> [(one.name, one.value) for one in monitor.summary()]  # doctest: +NORMALIZE_WHITESPACE
    [('tracked_coverage', 1.0), ('tracked_level', 0.8), ('tracked_width', 2.0),
     ('tracked_score', 2.0), ('tracked_whole', 0.5)]
    """

    measures: ClassVar[tuple[Measure, ...]] = (_COVERAGE, _LEVEL, _WIDTH, _SCORE, _WHOLE)
    _parts: ClassVar[dict[str, str]] = {"covered": "covered", "whole": "without a limit"}
    _promise: ClassVar[str] = (
        "By theorem, with a fixed model and a stream that does not move: a label is inside with at "
        "least the promised probability, at any number of labels. The interval has no limit while "
        "too few labels bound it."
    )

    def summary(self) -> list[Number]:
        """Return coverage, level, width, score, and the share without a limit."""
        return [one for one in super().summary() if one.measure is not _EMPTY]


def _share(number: float, of: int) -> float:
    return number / of if of else math.nan
