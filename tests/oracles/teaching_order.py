"""In which order labels teach: the specification of the native core.

Methods that learn labels as they come are misled where delays tell the label: if fraud is known
early and its absence late, the first labels are all fraud. In the order of prediction they are not.
But one lost label would then stop all teaching, so rows older than almost all delays are passed: a
little later than that, so that a stall of one class is seen before its rows are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tests.oracles.elementary import logarithm

__all__ = ["Taught", "TeachingByAge", "TeachingOrder"]

Taught = list[int]  # numbers of rows, in order


@dataclass(slots=True)
class _Row:
    number: int
    position: int  # predictions before it
    label: int | None = None
    expired: bool = False
    taught: bool = False

    @property
    def waits(self) -> bool:
        return self.label is None and not self.expired

    @property
    def held(self) -> bool:
        return self.label is not None and not self.taught


@dataclass(slots=True)
class _ClassDelays:
    """The delays of one class.

    Their 99 % quantile comes from counts by half octaves of 1 + delay, and is rounded up within
    its bin; it is renewed at the first of every 16 labels. Every 1,024 labels the counts are
    halved; they are in units of 1/65536, and rounded down.
    """

    labels: int = 0
    total: float = 0.0
    squares: float = 0.0
    counts: list[int] = field(default_factory=lambda: [0] * 64)
    quantile: int = 0

    def add(self, delay: int) -> None:
        self.labels += 1
        size = logarithm(float(1 + delay))
        self.total += size
        self.squares += size * size
        self.counts[min(((1 + delay) ** 2).bit_length() - 1, 63)] += 65_536
        if self.labels % 1_024 == 0:
            self.counts = [count // 2 for count in self.counts]
        if self.labels % 16 == 1:
            covered = [sum(self.counts[: i + 1]) for i in range(64)]
            bin_ = next(i for i in range(64) if 100 * covered[i] >= 99 * covered[-1])
            self.quantile = math.isqrt(2 ** (bin_ + 1) - 1) - 1

    @property
    def mean(self) -> float:
        return self.total / self.labels

    @property
    def variance(self) -> float:
        return max(self.squares / self.labels - self.mean * self.mean, 0.0)


_SETTLED = 8_192  # predictions
_NOTES = 65_536  # at most, of a prediction


@dataclass(slots=True)
class _MissingLabels:
    """Whether more labels than usual are missing, from notes of one row each.

    The notes are evidence, from 0 to 6 nats, that more are missing than usual: so many more as
    would matter for the rarer class. A stall begins at 6 nats, and ends at 0. A note in a stall
    counts a quarter for the usual share, so that a stall becomes usual only if it lasts.
    """

    evidence: float = 0.0
    usual: float = 0.0
    notes: float = 0.0
    stalled: bool = False

    def note(self, missing: int, rarer: float, *, several_came: bool, known: bool) -> None:
        rise = 0.15 * rarer
        usual = min(max(self.usual if known else 0.0, 0.2 * rise), 0.9)
        more = min(1.5 * usual + rise, 0.98)
        ratio = more / usual if missing else (1.0 - more) / (1.0 - usual)
        self.evidence = min(max(self.evidence + logarithm(ratio), 0.0), 6.0)
        if several_came:
            weight = 1 / 4 if self.stalled else 1.0
            self.notes = min(self.notes + weight, 4_096.0)
            self.usual += weight / self.notes * (missing - self.usual)
        if self.stalled:
            self.stalled = self.evidence > 0.0
        else:
            self.stalled = self.evidence == 6.0 and (not known or self.notes >= 100)


class TeachingOrder:
    """Rows, and the order in which their labels teach.

    Until labels of two classes came the cap is `wait` predictions, 4,096 where that is 0. Rows
    older than 131,072 predictions, and than `wait`, are passed in a stall, too. How many labels
    never come is known when a row is older than 8,192 predictions, or one expired; before, none is
    usual. If more than `most` labels would wait to be taught, the oldest rows are passed.

    Examples
    --------
    >>> order = TeachingOrder()
    >>> [order.predict(number) for number in range(3)]
    [[], [], []]
    >>> order.label(2, 1), order.label(0, 0), order.held
    ([], [0], 1)
    >>> order.expire(1)
    [2]
    """

    def __init__(self, wait: int = 0, classes: int = 2, most: int = 2**62) -> None:
        """Start without rows."""
        self._wait, self._most = wait or 4_096, most
        self._rows: list[_Row] = []
        self._open: list[_Row] = []  # rows that wait, and those whose labels are not taught yet
        self._noted = self._passed = 0  # positions below were noted, or are passed
        self._expired = False  # whether any row did
        self._missing = _MissingLabels()
        self._delays = [_ClassDelays() for _ in range(classes)]

    def predict(self, number: int) -> Taught:
        """Add a row that was predicted, and return the rows that are taught now."""
        self._rows.append(_Row(number, len(self._rows)))
        self._open.append(self._rows[-1])
        before = self.stalled
        for _ in range(_NOTES):
            if self._noted >= len(self._rows) - 1 - self.cap:  # its age is not above the cap
                break
            missing = self._rows[self._noted].label is None
            known = self._several_came and (self._expired or len(self._rows) > _SETTLED)
            self._missing.note(missing, self._rarer, several_came=self._several_came, known=known)
            self._noted += 1
        later = 0 if before else int(min(5.0 / self._rarer, 256.0))
        oldest = len(self._rows) - 1 - max(self._wait, 1 << 17)
        passed = min(self._noted, oldest) if self.stalled else self._noted - later
        self._passed = max(self._passed, passed)
        return self._teach()

    def label(self, number: int, label: int) -> Taught | None:
        """Take the label of a row; return nothing if that does not wait."""
        row = self._find(number)
        if row is None:
            return None
        row.label = label
        self._delays[label].add(len(self._rows) - 1 - row.position)
        due = self._teach()
        while self.held > self._most:
            self._passed = next(row.position for row in self._open if self._blocks(row)) + 1
            due += self._teach()
        return due

    def expire(self, number: int) -> Taught:
        """Let a row wait no longer."""
        row = self._find(number)
        if row is None:
            return []
        row.expired = self._expired = True
        return self._teach()

    def waits(self, number: int) -> bool:
        """Return whether the label of a row has neither come nor expired."""
        return self._find(number) is not None

    @property
    def held(self) -> int:
        """Count the labels that came and are not taught yet."""
        return sum(row.held for row in self._open)

    @property
    def cap(self) -> int:
        """Return the age beyond which rows are passed."""
        return max(one.quantile for one in self._delays) if self._several_came else self._wait

    @property
    def stalled(self) -> bool:
        """Return whether more labels than usual are missing."""
        return self._missing.stalled

    @property
    def one_sided(self) -> bool:
        """Return whether labels that come may be of one class more often than they should be."""
        return self.stalled or not self._several_came

    @property
    def by_arrival(self) -> bool:
        """Return whether delays say nothing of labels."""
        if not self._several_came or min(one.labels for one in self._came) < 50:
            return False
        means = [one.mean for one in self._came]
        variances = [one.variance for one in self._came]
        total = 0.0
        for one in variances:
            total += one
        deviation = math.sqrt(total / len(variances))
        near = max(means) - min(means) <= 0.5 * deviation
        return deviation >= 0.25 and max(variances) <= 2.0 * min(variances) and near

    @property
    def _came(self) -> list[_ClassDelays]:
        """Return the delays of the classes of which labels came."""
        return [one for one in self._delays if one.labels]

    @property
    def _several_came(self) -> bool:
        return len(self._came) > 1

    @property
    def _rarer(self) -> float:
        """Return the share of the rarest class that came, a third until two came."""
        labels = [one.labels for one in self._came]
        return min(labels) / sum(labels) if self._several_came else 1.0 / 3.0

    def _find(self, number: int) -> _Row | None:
        return next((row for row in self._open if row.number == number and row.waits), None)

    def _blocks(self, row: _Row) -> bool:
        return row.waits and row.position >= self._passed

    def _teach(self) -> Taught:
        due: Taught = []
        blocked = False
        at_once = self.by_arrival and not self.stalled
        for row in self._open:
            blocked = blocked or self._blocks(row)
            if row.label is not None and not row.taught and (at_once or not blocked):
                row.taught = True
                due.append(row.number)
        self._open = [row for row in self._open if row.waits or row.held]
        return due


class TeachingByAge:
    """Rows whose labels teach when they are `age` old by the clock, or later if they come later.

    If more than `most` labels would wait to be taught, the earliest are taught before.

    Examples
    --------
    >>> order = TeachingByAge(10)
    >>> order.predict(0, 5), order.predict(1, 3), order.label(0, 1), order.label(1, 0)
    ([], [], [], [])
    >>> order.advance(12), order.advance(20)
    ([], [1, 0])
    """

    def __init__(self, age: int, most: int = 2**62) -> None:
        """Start without rows."""
        self._age, self._most = age, most
        self._clock = -math.inf
        self._times: dict[int, int] = {}  # of rows that wait
        self._held: list[tuple[int, int]] = []

    def predict(self, number: int, time: int) -> Taught:
        """Add a row that was predicted."""
        self._times[number] = time
        return []

    def label(self, number: int, label: int) -> Taught | None:
        """Take the label of a row; return nothing if that does not wait."""
        if number not in self._times:
            return None
        del label
        self._held = sorted([*self._held, (self._times.pop(number), number)])
        due = self.advance(self._clock)
        while len(self._held) > self._most:
            due.append(self._held.pop(0)[1])
        return due

    def expire(self, number: int) -> Taught:
        """Let a row wait no longer."""
        self._times.pop(number, None)
        return []

    def advance(self, clock: float) -> Taught:
        """Move the clock, and return the rows that are taught now."""
        self._clock = max(self._clock, clock)
        due = sorted(one for one in self._held if one[0] + self._age <= self._clock)
        self._held = [one for one in self._held if one not in due]
        return [number for _, number in due]

    def waits(self, number: int) -> bool:
        """Return whether the label of a row has neither come nor expired."""
        return number in self._times

    @property
    def held(self) -> int:
        """Count the labels that came and are not taught yet."""
        return len(self._held)
