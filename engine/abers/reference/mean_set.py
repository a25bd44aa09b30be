"""The set behind unbounded intervals for a mean: the definition of `MeanSet` of the native core.

Let o_1 <= ... <= o_k be the labels that a query sees. For the low end of its interval they are
clipped to [o_m, o_(k-m)], and the query has the label o_m; for the high end they are clipped to
[o_(m+1), o_(k-m+1)], and the query has the label o_(k-m+1). Each end is the isotonic regression of
label on score at the query. With fewer than 2m labels the interval has no limits.

Labels are rounded to multiples of the resolution. All sums are integers, so every end is the
correctly rounded ratio of two integers, times the resolution, and the native core agrees bit for
bit.

The class takes checked values: finite scores and labels, times (NaN without a time).

References
----------
Petej & Vovk (2026), arXiv 2605.06646.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from sortedcontainers import SortedDict, SortedList

from abers.arrays import LEARN, ONE, PREDICT
from abers.reference.calibration_set import ObservationSet
from abers.reference.isotonic import covering, pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Bytes, Floats, Integers

__all__ = ["MeanSet"]

Fit: TypeAlias = tuple[float, float, float, float]
"""The low and the high end, and the labels that the query had for them."""

_MOST = 1 << 60  # number of labels times the largest, in units


class MeanSet(ObservationSet):
    """Observations with real labels; those that do not age are in the order of their labels."""

    def __init__(self, m: int, resolution: float, window: int = 0, max_age: float = 0.0) -> None:
        """Make an empty set that clips at the m-th label from either end."""
        super().__init__(window, max_age)
        self.m, self.resolution = m, resolution
        self._held: SortedList[tuple[int, float]] = SortedList()  # labels in units, and scores

    # Predictions

    def predict(self, score: float, time: float = math.nan) -> Fit:
        """Return the fits of the query with a low and with a high label, and these labels."""
        seen = self._seen(time)
        k, m = len(seen), self.m
        if k < 2 * m:
            return -math.inf, math.inf, -math.inf, math.inf
        least, most = seen[m - 1][0], seen[k - m][0]
        low = _fitted(seen, score, (least, seen[k - m - 1][0]), least)
        high = _fitted(seen, score, (seen[m][0], most), most)
        unit = self.resolution
        return low * unit, high * unit, float(least) * unit, float(most) * unit

    def _seen(self, time: float) -> Sequence[tuple[int, float]]:
        if not self.lifetime:
            return list(self._held)
        return sorted((int(old.label), old.score) for old in self._visible(time))

    # Learning and forgetting

    def learn(  # type: ignore[override]  # without weights
        self, score: float, label: float, time: float = math.nan
    ) -> bool:
        """Add an observation and forget the oldest; return False if sums might pass 64 bits."""
        units = self._units(label)
        if not self._is_late(time) and (units is None or not self._fits(units)):
            return False
        return super().learn(score, units or 0, ONE, time)

    def remove(self, score: float, label: float) -> bool:  # type: ignore[override]  # likewise
        """Undo `learn`; return False if that observation is not there."""
        units = self._units(label)
        return units is not None and super().remove(score, units)

    @property
    def furthest(self) -> int:
        """No label kept is further from 0, in units."""
        return max((abs(int(row[1])) for row in self._rows()), default=0)

    def _fits(self, units: int) -> bool:
        return (self.size + 1) * max(abs(units), self.furthest) <= _MOST

    def _units(self, label: float) -> int | None:
        """Return a label in units, None if it is too large for any sum."""
        units = label / self.resolution
        return round(units) if abs(units) <= _MOST else None

    def _pool(self, score: float, label: float, weight: int) -> None:
        if weight > 0:
            self._held.add((int(label), score))
        else:
            self._held.remove((int(label), score))

    def _pooled(self, score: float, label: float) -> int:
        return int(self._held.count((int(label), score))) * ONE

    # Batches of steps, and saved state; arrays are filled in place

    def run(  # noqa: PLR0913, PLR0917 - one array a column
        self,
        steps: Bytes,
        scores: Floats,
        labels: Floats,
        times: Floats | None,
        out: Floats,
        held: Integers | None = None,
    ) -> int:
        """Run steps in order; return the number of steps before the first refusal.

        Predictions fill their columns of `out`, of shape (4, steps). `held` receives the number of
        observations after each step.
        """
        for i, step in enumerate(steps):
            score, label = float(scores[i]), float(labels[i])
            time = math.nan if times is None else float(times[i])
            if step == PREDICT:
                out[:, i] = self.predict(score, time)
            elif not (
                self.learn(score, label, time) if step == LEARN else self.remove(score, label)
            ):
                return i
            if held is not None:
                held[i] = self.size
        return len(steps)

    def _rows(self) -> list[tuple[float, float, float]]:
        """Return score, label and time: by arrival, as they age, or by label and score."""
        if self.window or self.lifetime:
            return [(old.score, old.label, old.time) for old in self._arrived or self._aging]
        return [(score, label, math.nan) for label, score in self._held]

    def observation_count(self) -> int:
        """Return the number of observations."""
        return self.size

    def observations(  # type: ignore[override]  # without weights
        self, scores: Floats, labels: Integers, times: Floats
    ) -> None:
        """Write the observations: by arrival, in canonical order, or by label and score."""
        for i, row in enumerate(self._rows()):
            scores[i], labels[i], times[i] = row

    def load_observations(  # type: ignore[override]  # likewise
        self, scores: Floats, labels: Integers, times: Floats, late: int
    ) -> bool:
        """Load observations into an empty set; return False if it cannot have had them."""
        columns = (array.tolist() for array in (scores, labels, times))
        rows = list(zip(*columns, strict=True))
        most = max((abs(label) for _, label, _ in rows), default=0)
        if most * len(rows) > _MOST:
            return False
        for score, label, time in rows:
            super().learn(score, label, ONE, time)
        self.late = late
        return self.size == len(rows)

    def check(self) -> None:
        """Raise an AssertionError with the state if an invariant is violated."""
        super().check()
        assert self.lifetime or len(self._held) == self.size, vars(self)  # noqa: S101


def _fitted(
    seen: Sequence[tuple[int, float]], score: float, ends: tuple[int, int], label: int
) -> float:
    """Return the isotonic regression of clipped labels and the query's own, at the query."""
    groups: SortedDict[float, tuple[int, int]] = SortedDict()
    for own, at in [*((min(max(y, ends[0]), ends[1]), s) for y, s in seen), (label, score)]:
        count, total = groups.get(at, (0, 0))
        groups[at] = (count + 1, total + own)
    # `pool` takes a weight in two parts, and fits the share of the second one: here of any size.
    blocks = pool((at, (count - total, total)) for at, (count, total) in groups.items())
    return covering(blocks, score).value
