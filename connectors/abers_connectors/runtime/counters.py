"""Counters and gauges of a service, which the metrics and the live page show.

Counters count what this process has committed since it started. They are raised after a commit,
never restored, and not lowered when a partition is revoked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from abers_connectors.runtime.model_totals import ModelTotals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["Counters", "Histogram", "TaskGauges"]

_COMMITS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_HOUR, _DAY = 3600.0, 86_400.0
_DELAYS = (1.0, 10.0, 60.0, 600.0, _HOUR, 6 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY, 30 * _DAY)


@dataclass
class Histogram:
    """Counts of values in buckets.

    Examples
    --------
    >>> histogram = Histogram.over(1.0, 10.0)
    >>> for value in (0.5, 1.0, 3.0, 99.0):
    ...     histogram.add(value)
    >>> histogram.cumulated(), histogram.sum
    ([('1.0', 2), ('10.0', 3), ('+Inf', 4)], 103.5)
    """

    bounds: tuple[float, ...]  # upper bound of each bucket but the last, which has none
    counts: list[int]  # number of values in each bucket
    sum: float = 0.0  # of all values

    @classmethod
    def over(cls, *bounds: float) -> Histogram:
        """Return an empty histogram."""
        return cls(bounds, [0] * (len(bounds) + 1))

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def add_many(self, values: NDArray[np.float64]) -> None:
        """Count several values."""
        rows = np.searchsorted(self.bounds, values)
        more = np.bincount(rows, minlength=len(self.counts)).tolist()
        self.counts = [*map(add, self.counts, more)]
        self.sum += float(values.sum())

    def __copy__(self) -> Histogram:
        """Return an independent copy."""
        return replace(self, counts=[*self.counts])

    def median(self) -> float:
        """Return the bound of the median's bucket; 0 if empty, the last bound at most."""
        half = sum(self.counts) / 2
        pairs = zip(self.bounds, accumulate(self.counts), strict=False)
        reached = (bound for bound, count in pairs if count >= half)
        return next(reached, self.bounds[-1]) if half else 0.0

    def cumulated(self) -> list[tuple[str, int]]:
        """Return the cumulative buckets, as Prometheus has them."""
        return [*zip([*map(str, self.bounds), "+Inf"], accumulate(self.counts), strict=True)]


@dataclass
class Counters:
    """Counters of a process since its start."""

    records: Counter[str] = field(default_factory=Counter)  # read, by input
    written: Counter[str] = field(default_factory=Counter)  # records, by sink
    ends: Counter[str] = field(default_factory=Counter)  # as `abers.stream.accounts` names them
    dead: Counter[str] = field(default_factory=Counter)  # dead letters, by reason
    snapshots: Counter[str] = field(default_factory=Counter)  # by result: saved, failed
    webhook: Counter[str] = field(default_factory=Counter)  # by result: sent, failed, dropped
    tombstones: int = 0
    routed: Counter[str] = field(default_factory=Counter)  # records of routers, by input
    commits: Counter[str] = field(default_factory=Counter)  # committed transactions, by stage
    aborts: Counter[str] = field(default_factory=Counter)  # aborted transactions, by stage
    assignments: int = 0  # rebalances
    restores: int = 0  # restored tasks
    commit_seconds: Histogram = field(default_factory=lambda: Histogram.over(*_COMMITS))
    label_delay: Histogram = field(  # in seconds of event time
        default_factory=lambda: Histogram.over(*_DELAYS)
    )
    model_totals: ModelTotals = field(default_factory=ModelTotals)
    # By model, view and test.
    alarms: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def __copy__(self) -> Counters:
        """Return an independent copy."""
        return Counters(**{name: copy(value) for name, value in vars(self).items()})


@dataclass(frozen=True)
class TaskGauges:
    """Gauges of a task, as of its restore or its last commit."""

    pending: int  # observations that wait for labels
    early: int  # labels that wait for observations
    clock: int | None  # event time in milliseconds; None before the first event
    to_replay: int  # records since the newest snapshot, which a restore would apply again
    accounts: Mapping[str, int]  # since the beginning of the state; see `abers.stream.accounts`
