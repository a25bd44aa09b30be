"""Sequential tests by betting, and the size of a change: a specification of the native core."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from tests.oracles.elementary import logarithm

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Incident", "SequentialTest", "Shift", "ShiftEstimate", "ViewTests"]

_NO_TIME = -(1 << 63)
_PARTS = 1e6  # of a run length in event time
_LARGEST_STAKE = 0.01

Incident: TypeAlias = tuple[int, int, int, float]
"""Number, times of the first and the last crossing, and the logarithm of the evidence there."""
Shift: TypeAlias = tuple[int, int, int, float, float, float]
"""Time and number of labels since; column; observed, expected, and deviation."""


def log_of(x: float) -> float:
    """Return the logarithm of a positive number, which may be infinite."""
    return logarithm(x) if x < math.inf else math.inf


@dataclass
class SequentialTest:
    """A test martingale if there is a level, else a detector of changes."""

    alpha: float | None = None
    length: float = 0.0
    cooldown: float = math.inf
    run_time: int = 0
    wealth: float = 0.0  # of a martingale its logarithm
    count: int = 0
    crossed: int = 0
    armed: int = 1
    latest: int = _NO_TIME
    last: Incident | None = None

    @staticmethod
    def since_start(alpha: float) -> SequentialTest:
        """Return a martingale."""
        return SequentialTest(alpha=alpha)

    @staticmethod
    def of_change(length: float, cooldown: float, run_time: int) -> SequentialTest:
        """Return a detector; its run length is in event time unless that is 0."""
        return SequentialTest(None, length, cooldown, run_time)

    @property
    def log_threshold(self) -> float:
        """Logarithm of the evidence at which it becomes active."""
        if self.alpha is None:
            return log_of(self.length)
        k = float(self.armed)
        return -log_of(self.alpha / (k * (k + 1.0)) if self.armed > 1 else self.alpha)

    @property
    def log_wealth(self) -> float:
        """Logarithm of the evidence."""
        return log_of(max(self.wealth, 1.0)) if self.alpha is None else self.wealth

    @property
    def active(self) -> bool:
        """Whether an incident is open."""
        if self.last is None:
            return False
        if self.alpha is None:
            return self.count - self.crossed < self.cooldown
        return self.last[0] == self.armed

    def arm(self) -> None:
        """Begin a martingale anew if an incident is open."""
        if self.alpha is not None and self.active:
            self.armed, self.wealth = self.armed + 1, 0.0

    def take(self, factor: float, time: int) -> bool:
        """Take a factor; return whether an incident opens."""
        self.count += 1
        if self.alpha is not None:
            self.wealth += log_of(factor)
            crosses, opens, reached = self.wealth >= self.log_threshold, not self.active, 0.0
        else:
            stake = self._grown(time) if self.run_time else 1.0
            if factor == 1.0:
                return False
            self.wealth = (self.wealth + stake) * factor if factor < math.inf else math.inf
            crosses = self.wealth >= self.length
            opens = self.last is None or self.count - 1 - self.crossed >= self.cooldown
        if not crosses:
            return False
        reached = self.log_wealth
        if self.alpha is None:
            self.wealth = 0.0
        number, first = (0, 0) if self.last is None else self.last[:2]
        self.last = (number + opens, time if opens else first, time, reached)
        self.crossed = self.count
        return opens

    def _grown(self, time: int) -> float:
        passed = 0 if self.latest == _NO_TIME else max(time - self.latest, 0)
        self.latest = max(self.latest, time)
        return min(passed / float(self.run_time), _LARGEST_STAKE) * _PARTS

    def update(self, factors: Sequence[float], times: Sequence[int]) -> list[tuple[int, Incident]]:
        """Take factors in order; return the incidents that opened, with the row of each."""
        found: list[tuple[int, Incident]] = []
        for row, (factor, time) in enumerate(zip(factors, times, strict=True)):
            if self.take(factor, time) and self.last is not None:
                found.append((row, self.last))
        return found

    def save(self) -> bytes:
        """Return the state."""
        number, first, last, wealth = self.last or (0, 0, 0, 0.0)
        counts = (self.count, self.crossed, number, first, last)
        return struct.pack("<d5qd2q", self.wealth, *counts, wealth, self.latest, self.armed)


@dataclass
class ShiftEstimate:
    """Sums since the product of the factors had won nothing."""

    columns: int
    wealth: float = 1.0
    since: int = 0
    labels: int = 0
    sums: list[list[float]] = field(default_factory=list)

    def take(
        self, factor: float, forecasts: Sequence[float], labels: Sequence[float], time: int
    ) -> None:
        """Take a row."""
        if self.wealth <= 1.0:
            self._clear(time)
        self.wealth *= factor
        self.labels += 1
        for sums, p, y in zip(self._known(), forecasts, labels, strict=True):
            for at, term in enumerate((y, p, p * (1.0 - p))):
                sums[at] += term

    def reported(self, time: int) -> Shift:
        """Report an alarm at the last row, and begin behind it."""
        sizes = [(y, p, math.sqrt(v)) for y, p, v in self._known()]
        gaps = [abs(y - p) / max(deviation, 1e-9) for y, p, deviation in sizes]
        at = gaps.index(max(gaps))
        found = (self.since, self.labels, at, *sizes[at])
        self._clear(time)
        return found

    def _known(self) -> list[list[float]]:
        if not self.sums:
            self.sums = [[0.0] * 3 for _ in range(self.columns)]
        return self.sums

    def _clear(self, time: int) -> None:
        self.wealth, self.since, self.labels, self.sums = 1.0, time, 0, []

    def save(self) -> bytes:
        """Return the state."""
        sums = [one for column in self._known() for one in column]
        return struct.pack(f"<d2q{len(sums)}d", self.wealth, self.since, self.labels, *sums)


class ViewTests:
    """The tests of one view; the last raises alarms."""

    def __init__(self, tests: Sequence[SequentialTest], columns: int) -> None:
        """Begin with copies of tests."""
        self._tests = [replace(one) for one in tests]
        self._shift = ShiftEstimate(columns)

    def alarms(
        self,
        factors: Sequence[float],
        forecasts: Sequence[Sequence[float]],
        labels: Sequence[Sequence[float]],
        times: Sequence[int],
    ) -> list[tuple[int, Incident, Shift]]:
        """Run the last test."""
        found: list[tuple[int, Incident, Shift]] = []
        for row, (factor, p, y, time) in enumerate(
            zip(factors, forecasts, labels, times, strict=True)
        ):
            self._shift.take(factor, p, y, time)
            last = self._tests[-1]
            if last.take(factor, time) and last.last is not None:
                found.append((row, last.last, self._shift.reported(time)))
        return found

    def others(
        self, factors: Sequence[Sequence[float]], times: Sequence[int], over: Sequence[int]
    ) -> list[tuple[int, int, Incident]]:
        """Run the other tests, and arm them behind some rows."""
        found: list[tuple[int, int, Incident]] = []
        for at, test in enumerate(self._tests[:-1]):
            for row, time in enumerate(times):
                if test.take(factors[row][at], time) and test.last is not None:
                    found.append((at, row, test.last))
                if row in over:
                    test.arm()
        return found

    def test(self, at: int) -> SequentialTest:
        """Return a copy of a test."""
        return replace(self._tests[at])

    def save(self) -> bytes:
        """Return the state."""
        return b"".join(one.save() for one in self._tests) + self._shift.save()
