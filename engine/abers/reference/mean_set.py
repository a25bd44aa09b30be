"""The sets behind means and predictive distributions: the definitions of those of the native core.

The set behind unbounded intervals for a mean: the definition of `MeanSet` of the native core. Let
o_1 <= ... <= o_k be the labels that a query sees. For the low end of its interval they are clipped
to [o_m, o_(k-m)], and the query has the label o_m; for the high end they are clipped to [o_(m+1),
o_(k-m+1)], and the query has the label o_(k-m+1). Each end is the isotonic regression of label on
score at the query. With fewer than 2m labels the interval has no limits.

Labels are rounded to multiples of the resolution. All sums are integers, so every end is the
correctly rounded ratio of two integers, times the resolution, and the native core agrees bit for
bit.

The class takes checked values: finite scores and labels, times (NaN without a time).

The CDFs at a threshold are the binary Venn-Abers prediction of "label above the threshold": the
isotonic regression of 1{label > threshold} on the score, extended by the query with label 1 for the
lower CDF and with label 0 for the upper CDF. Every value is the correctly rounded ratio of two
integers, and the native core agrees bit for bit.

The class takes checked values: finite scores, labels and times (NaN without a time), positive
integer weights in units of 2**-30.

References
----------
Petej & Vovk (2026), arXiv 2605.06646.

Petej (2018), Inductive Venn-Abers prediction for regression, section 4.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sortedcontainers import SortedDict, SortedList

from abers.arrays import LEARN, ONE, PREDICT
from abers.cdfs import reached
from abers.reference.calibration_set import ObservationSet
from abers.reference.isotonic import covering, pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Bytes, Floats, Integers

__all__ = ["MeanSet", "PredictiveSet"]

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


Bag: TypeAlias = "list[tuple[float, list[tuple[float, int]]]]"
"""For each score, ascending, its (label, weight) pairs."""
Answer: TypeAlias = "tuple[float, float, Floats]"
"""The smallest and the greatest label seen, and rows of thresholds, lower and upper CDF."""


class PredictiveSet(ObservationSet):
    """Observations with real labels; those that do not age are pooled by score and label."""

    def __init__(self, window: int = 0, max_age: float = 0.0, half_life: float = 0.0) -> None:
        """Make an empty set."""
        super().__init__(window, max_age, half_life)
        self._held: SortedDict[tuple[float, float], int] = SortedDict()

    # Predictions

    def predict(self, score: float, time: float = math.nan) -> Answer:
        """Return both CDFs at `score`: before all thresholds, and from each step on."""
        weight, bag = self._weight_of_query(ONE, time), self._bag(time)
        labels = sorted({label for _, group in bag for label, _ in group})
        steps: list[tuple[float, ...]] = []
        for t in (-math.inf, *labels):
            values = tuple(_cdf(bag, score, weight, t, label) for label in (1, 0))
            if not steps or values != steps[-1][1:]:
                steps.append((t, *values))
        lo, hi = (labels[0], labels[-1]) if labels else (-math.inf, math.inf)
        return lo, hi, np.array(steps).T

    def quantile(self, score: float, level: float, time: float = math.nan) -> float:
        """Return a quantile of the merged CDF at `score`; infinity if it is never reached."""
        return float(reached(self.predict(score, time)[2], np.array([level]))[0, 0])

    def predict_many(self, scores: Floats, times: Floats | None) -> list[Answer]:
        """Return `predict` of each score."""
        whens = [math.nan] * len(scores) if times is None else times.tolist()
        return [self.predict(*query) for query in zip(scores.tolist(), whens, strict=True)]

    # Batches of steps; arrays are filled in place

    def run(  # noqa: PLR0913, PLR0917 - one array a column
        self,
        steps: Bytes,
        scores: Floats,
        labels: Floats,
        weights: Integers | None,
        times: Floats | None,
        levels: Floats,
        quantiles: Floats,
        held: Integers | None = None,
    ) -> int:
        """Run steps as `_run` does; predictions fill their rows of `quantiles`.

        They have shape (3, steps, levels): those of the merged, the upper and the lower CDF.
        """

        def predict(row: int, score: float, _: int, time: float) -> None:
            quantiles[:, row] = reached(self.predict(score, time)[2], levels)

        return self._run(steps, scores, labels, weights, times, predict, held)

    # The bag: the observations that a query sees, and saved state

    def _pool(self, score: float, label: float, weight: int) -> None:
        now = self._held.get((score, label), 0) + weight
        if now:
            self._held[score, label] = now
        else:
            del self._held[score, label]

    def _pooled(self, score: float, label: float) -> int:
        return int(self._held.get((score, label), 0))

    def _bag(self, time: float) -> Bag:
        seen = (
            sorted((old.score, old.label, old.weight) for old in self._visible(time))
            if self.lifetime
            else [(*key, weight) for key, weight in self._held.items()]
        )
        groups = groupby(seen, lambda row: row[0])
        return [(score, [row[1:] for row in rows]) for score, rows in groups]

    def pooled_count(self) -> int:
        """Return the number of distinct pairs of score and label that do not age."""
        return len(self._held)

    def pooled(self, scores: Floats, labels: Floats, weights: Integers) -> None:
        """Write the pairs of score and label in order, and the weight of each."""
        for i, ((score, label), weight) in enumerate(self._held.items()):
            scores[i], labels[i], weights[i] = score, label, weight

    def load_pooled(self, scores: Floats, labels: Floats, weights: Integers, size: int) -> None:
        """Load the pairs into an empty set without forgetting."""
        columns = (array.tolist() for array in (scores, labels, weights))
        for row in zip(*columns, strict=True):
            self._pool(*row)
        self.size, self.total = size, sum(self._held.values())

    def check(self) -> None:
        """Raise an AssertionError with the state if an invariant is violated."""
        super().check()
        assert all(weight > 0 for weight in self._held.values()), self._held  # noqa: S101
        held = sum(self._held.values())
        assert self.lifetime or held == self.total, (held, self.total)  # noqa: S101


def _cdf(bag: Bag, score: float, weight: int, t: float, label: int) -> float:
    """Return the CDF at `t` if the query has `label`: 1 minus the fit of 1{label > t}."""
    groups = [(at, _halves(pairs, t)) for at, pairs in bag]
    below, above = dict(groups).get(score, (0, 0))
    extended = (below, above + weight) if label else (below + weight, above)
    others = [group for group in groups if group[0] != score]
    block = covering(pool(sorted([*others, (score, extended)])), score)
    return (block.weight - block.positives) / block.weight


def _halves(pairs: Sequence[tuple[float, int]], t: float) -> tuple[int, int]:
    """Return the weight of the labels up to `t`, and of those above it."""
    above = sum(weight for label, weight in pairs if label > t)
    return sum(weight for _, weight in pairs) - above, above
