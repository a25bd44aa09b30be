"""The definition of Venn-Abers prediction in fractions, which the tests compare with.

Nothing here is clever, and nothing is shared with the code under test. An oracle
remembers every observation and computes each answer from the definition:

    p_y(s) = max over a <= i of min over c >= end of g of (Y_c - Y_a + y w) / (W_c - W_a + w)

over the points P_0 = (0, 0), P_j = (W_j, Y_j) of the cumulative sum diagram, where g is the group
of equal scores at s (or empty), i the point before it, and w the weight of the query.

What is kept, in words:

- a weight is a whole number of units of 2**-30, to which it is rounded, half to even;
- `window=n` holds the n observations learned last;
- `max_age=T` holds what is not older than T before the newest time, which is the largest time
  learned, or the time of the query if that is larger; an observation too old on arrival is only
  counted. The difference of two times is a double, as users would compute it;
- `half_life=h` holds what is not older than 30 h in that sense. An observation of time t weighs
  its weight times 2**(t / h), forward decay (only ratios of weights matter), in whole units: with
  t / h = k + f, k whole and 0 <= f < 1, weight times 2**f (both doubles) is rounded to even once
  and then multiplied by 2**(k - e), rounded down. The scale e is the largest multiple of 4 not
  above newest / h, so it changes every four half-lives. A query weighs likewise, as an
  observation of its own time (by default the newest), but at least one unit.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from fractions import Fraction
from typing import NamedTuple

UNIT = 2**30
LIFETIME = 30
SCALE_STEP = 4


class Entry(NamedTuple):
    """Something learned (or, with a negative weight, removed), weights in units of 2**-30."""

    score: float
    label: int
    weight: int
    time: float


class Sum(NamedTuple):
    """A point of the cumulative sum diagram: total weight and weight of label 1 so far."""

    weight: int
    positives: int


def units(weight: float) -> int:
    """Round a weight to a whole number of 2**-30, half to even."""
    return round(Fraction(weight) * UNIT)


def cumulative(weights: list[tuple[int, int]]) -> list[Sum]:
    """Cumulative sum diagram of (weight of label 0, weight of label 1), with its origin."""
    points = [Sum(0, 0)]
    for negatives, positives in weights:
        points.append(
            Sum(points[-1].weight + negatives + positives, points[-1].positives + positives)
        )
    return points


class Oracle:
    """A calibrator that obeys the definition, and nothing else."""

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        """Forget as the one option given says; never, without one."""
        self.window, self.half_life = window, half_life
        self.reach = max_age if half_life is None else LIFETIME * half_life
        self.entries: list[Entry] = []
        self.newest = -math.inf
        self.late = self.removed = 0

    def __len__(self) -> int:
        """Count the observations kept."""
        return len(self.held()) - 2 * self.removed

    def learn(self, score: float, label: int, weight: float = 1.0, time: float = -math.inf) -> None:
        """Learn an observation, or count it if it is too old."""
        if self.reach is not None and time < self.newest - self.reach:
            self.late += 1
            return
        self.newest = max(self.newest, time)
        self.entries.append(Entry(score, label, units(weight), time))

    def remove(self, score: float, label: int, weight: float = 1.0) -> bool:
        """Take weight away; False if it is not there, or if weight and count would not end at once.

        Weights are pooled by score and label, so taking away is learning a negative weight.
        """
        wanted = units(weight)
        there = sum(e.weight for e in self.entries if (e.score, e.label) == (score, label))
        total = sum(e.weight for e in self.entries)
        if there < wanted or (len(self) == 1) != (total == wanted):
            return False
        self.entries.append(Entry(score, label, -wanted, -math.inf))
        self.removed += 1
        return True

    def held(self, now: float = -math.inf) -> list[Entry]:
        """List what is remembered at a time."""
        if self.window is not None:
            return self.entries[-self.window :]
        if self.reach is None:
            return self.entries
        return [e for e in self.entries if e.time >= max(self.newest, now) - self.reach]

    def predict(
        self, score: float, weight: float = 1.0, time: float = -math.inf
    ) -> tuple[float, float]:
        """Return p0 and p1, each the double nearest to the exact one."""
        p0, p1 = (self.probability(y, score, weight, time) for y in (0, 1))
        return float(p0), float(p1)

    def probability(
        self, y: int, score: float, weight: float = 1.0, time: float = -math.inf
    ) -> Fraction:
        """Return p_y exactly: the isotonic fit at `score` when the query has label `y`."""
        groups = self.groups(time)
        w = self._query_weight(weight, time)
        scores = [group for group, _ in groups]
        i = bisect_left(scores, score)
        end = i + 1 if i < len(scores) and scores[i] == score else i
        points = cumulative([weights for _, weights in groups])
        return max(
            min(
                Fraction(c.positives - a.positives + y * w, c.weight - a.weight + w)
                for c in points[end:]
            )
            for a in points[: i + 1]
        )

    def fit(self) -> list[tuple[float, Fraction]]:
        """Isotonic regression of label on score: each score kept, and its fitted value."""
        groups = self.groups()
        points = cumulative([weights for _, weights in groups])
        return [
            (
                score,
                max(
                    min(
                        Fraction(c.positives - a.positives, c.weight - a.weight)
                        for c in points[j + 1 :]
                    )
                    for a in points[: j + 1]
                ),
            )
            for j, (score, _) in enumerate(groups)
        ]

    def isotonic(self, score: float) -> Fraction | None:
        """Value of the fit at a score: linear between the scores kept, constant outside."""
        fit = self.fit()
        if not fit:
            return None
        right = bisect_left([known for known, _ in fit], score)
        if right == len(fit):
            return fit[-1][1]
        if right == 0 or fit[right][0] == score:
            return fit[right][1]
        (x0, v0), (x1, v1) = fit[right - 1], fit[right]
        return v0 + (v1 - v0) * (Fraction(score) - Fraction(x0)) / (Fraction(x1) - Fraction(x0))

    def groups(self, now: float = -math.inf) -> list[tuple[float, tuple[int, int]]]:
        """Pool the observations kept by score: (weight of label 0, weight of label 1)."""
        pooled: defaultdict[float, list[int]] = defaultdict(lambda: [0, 0])
        for entry in self.held(now):
            pooled[entry.score][entry.label] += self._weight(entry.weight, entry.time, now)
        return sorted((score, (w[0], w[1])) for score, w in pooled.items() if any(w))

    def _query_weight(self, weight: float, time: float) -> int:
        if self.half_life is None or self.newest == -math.inf:
            return units(weight)
        own_time = self.newest if time == -math.inf else time
        return max(1, self._weight(units(weight), own_time, time))

    def _weight(self, weight: int, time: float, now: float) -> int:
        """Weight of an observation in units, after its decay."""
        if self.half_life is None:
            return weight
        elapsed = time / self.half_life
        whole = math.floor(elapsed)
        grown = round(float(weight) * math.exp2(elapsed - whole))
        scale = math.floor(max(self.newest, now) / self.half_life)
        scale -= scale % SCALE_STEP
        return math.floor(grown * Fraction(2) ** (whole - scale))
