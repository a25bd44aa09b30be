"""Verdicts on a stream, block after block: a specification of the native core."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tests.oracles.elementary import exponential
from tests.oracles.findings import WHOLE, Finding, are_inside, find, margin
from tests.oracles.group_sums import GroupSums
from tests.oracles.incomplete_gamma import log_gamma
from tests.oracles.level_sums import LevelSums

if TYPE_CHECKING:
    from abers.arrays import Floats, Integers

__all__ = ["Record", "VerdictSequence", "verdict_level"]

_GROWTH = 100  # a block is evaluated when it has grown by one part in so many,
_FEWEST = 10  # but by so many labels at least
_PATIENCE = 8  # a block in which only a half or a bin is outside grows by this factor
_OUTGROWN = 4  # times the labels of a held verdict, after which later ones would have shown it
_MOST_COMBINATIONS = 500.0  # as a logarithm


def verdict_level(alpha: float, blocks: int, partitions: int) -> float:
    """Return the level of a block, among those of all combinations of partitions."""
    k, m = float(blocks), float(partitions)
    level = alpha / (k * (k + 1.0))
    if partitions == 1:
        return level
    combinations = log_gamma(k + m - 1.0) - log_gamma(k) - log_gamma(m)
    return level * exponential(-min(combinations, _MOST_COMBINATIONS))


class Record(NamedTuple):
    """What a verdict says, in numbers."""

    status: int
    group: int
    cut: float
    since: int
    start: int
    until: int
    confirmed: int
    labels: int
    came: float | None
    counted: int
    observed: int
    expected: float
    margin: float
    tolerance: float
    established: float | None


class VerdictSequence:
    """Verdicts on the forecasts of one view; of one level if that is given."""

    def __init__(self, alpha: float, tolerances: Floats, level: float | None = None) -> None:
        """Start with no labels."""
        self._alpha = alpha
        empty = GroupSums(tolerances) if level is None else LevelSums(level, tolerances)
        self.sums: GroupSums | LevelSums = empty
        self.blocks, self.open, self.began = 1, False, 0
        self.held: Record | None = None
        self._begin(0)

    def _begin(self, time: int) -> None:
        self.sums.clear()
        self.labels = self.skipped = self._limit = self._rank = 0
        self.next, self.start, self.until = _FEWEST, time, time

    def add(
        self, forecasts: Floats, labels: Floats, times: Integers, skipped: Integers
    ) -> list[int]:
        """Add labels that came; return the rows at which an incident opened or was over."""
        turns = []
        columns = (forecasts.tolist(), labels.tolist(), times.tolist(), skipped.tolist())
        for row, (p, y, time, before) in enumerate(zip(*columns, strict=True)):
            if not self.labels:
                self.start = time
                if self.blocks == 1:
                    self.until = time
            self.sums.add(np.array([p]), np.array([y]))
            self.labels += 1
            self.skipped += before
            self.until = max(self.until, time)
            if self.labels == self.next:
                was_open = self.open
                self.next = self.labels + max(_FEWEST, math.ceil(self.labels / _GROWTH))
                self._decide(find(self.sums.groups(), self.level))
                turns += [row] * (self.open != was_open)
        return turns

    def restart(self, time: int, began: int) -> None:
        """Start another block, behind the observation of this event time."""
        self.open, self.began = True, began
        if self.labels:
            self.blocks += 1
            self._begin(max(time, self.until))

    @property
    def level(self) -> float:
        """The level of the present block."""
        return verdict_level(self._alpha, self.blocks, 1)

    def verdict(self) -> Record:
        """Return what is shown now."""
        found = find(self.sums.groups(), self.level)
        return self.held if self.held and not self._renews(found) else self._present(found)

    def _decide(self, found: Finding) -> None:
        ends = 0 < self._limit <= self.labels or found.rank == WHOLE
        if found.outside:
            self._hold(found, ends=ends)
        if ends:
            self.blocks += 1
            self._begin(self.until)
        elif found.inside and not found.outside:
            self.held, self.open, self.began = None, False, 0
            self._limit = self._rank = 0
        elif self.held and not found.outside and self._is_outgrown(self.held):
            self.held, self._limit, self._rank = None, 0, 0

    def _hold(self, found: Finding, *, ends: bool) -> None:
        agrees = self.held is not None and found.agrees(self.held.status)
        if self._renews(found) and (ends or found.rank > self._rank or not agrees):
            self.held = self._present(found)
        elif self.held is not None and agrees:
            self.held = self.held._replace(confirmed=self.until)
        self.began = self.began if self.open else self.start
        self.open = True
        self._rank = max(self._rank, found.rank)
        self._limit = self._limit or _PATIENCE * self.labels

    def _renews(self, found: Finding) -> bool:
        if not found.outside or found.rank < self._rank:
            return False
        if self.held is None or not found.agrees(self.held.status):
            return True
        return found.rank >= Finding(*self.held[:2], inside=False).rank

    def _is_outgrown(self, held: Record) -> bool:
        one = self.sums.groups()[held.group]
        leans = Finding(*held[:2], inside=False).leans(one)
        return one.labels >= _OUTGROWN * held.counted and not leans

    def _present(self, found: Finding) -> Record:
        one, n = self.sums.groups()[found.group], self.labels
        goes_on = self.held is not None and self.held.status == found.status
        since: Any = self.held.since if goes_on and self.held else self.start
        grid = enumerate(self.sums.tolerances)
        inside = (t for k, t in grid if k and are_inside(self.sums.main_groups(k), self.level))
        return Record(
            *found[:2],
            self.sums.cut,
            since,
            self.start,
            self.until,
            self.until,
            n,
            n / (n + self.skipped) if n else None,
            int(one.labels),
            int(one.observed),
            one.expected,
            margin(one.squares, found.group, self.level),
            self.sums.tolerances[0],
            next(inside, None),
        )
