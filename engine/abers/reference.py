"""The calibration set in plain Python: the executable specification of the core.

Governing rule: a prediction is the isotonic regression of the calibration set
extended by the query, nothing else. All sums are integers (weights are
multiples of 2**-30), so every answer is the correctly rounded ratio of two
integers and the native core must agree bit for bit.

The class takes checked values: finite scores, labels 0 or 1, positive integer
weights in units of 2**-30, times (NaN where there is none). The checking is
done by `abers.VennAbers`, which is what users meet.

References
----------
Ayer, Brunk, Ewing, Reid & Silverman (1955) for pooling adjacent violators;
Vovk & Petej (2014), section 4, for Venn-Abers prediction.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from abers._arrays import LEARN, ONE, PREDICT, REMOVE
from abers._in_order import InOrder
from abers._isotonic import Block, covering, pool, pooled
from abers._ledger import Ledger
from abers._memory import LIFETIME, LIMIT, Memory, Observation, decayed
from abers._predictive import PredictiveSet
from abers._tally import Tally, add_scores, added, bet_on_bins
from abers._texts import are_names, distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers._arrays import Bytes, Floats, Integers

__all__ = [
    "LEARN",
    "LIFETIME",
    "LIMIT",
    "ONE",
    "PREDICT",
    "REMOVE",
    "Block",
    "CalibrationSet",
    "InOrder",
    "Ledger",
    "Observation",
    "PredictiveSet",
    "Tally",
    "add_scores",
    "added",
    "are_names",
    "bet_on_bins",
    "decayed",
    "distinct",
    "pool",
    "pooled",
]


class CalibrationSet(Memory):
    """Labelled observations pooled by score, and the rule by which they are forgotten."""

    def __init__(self, window: int = 0, max_age: float = 0.0, half_life: float = 0.0) -> None:
        """Keep the last `window` observations, or those of an age; all, if all three are zero."""
        super().__init__(window, max_age, half_life)
        self._groups: SortedDict[float, tuple[int, int]] = SortedDict()  # without a lifetime

    # Predicting: the isotonic regression of the bag extended by the query.

    def predict(
        self, score: float, weight: int = ONE, time: float = math.nan
    ) -> tuple[float, float]:
        """Fit at `score` when the query is given label 0, and when it is given label 1."""
        weight = self._weight_of_query(weight, time)
        bag = self._bag(time)
        scores = [group[0] for group in bag]
        at = bisect_left(scores, score)
        after = at + 1 if at < len(bag) and scores[at] == score else at
        negatives, positives = bag[at][1] if at < after else (0, 0)
        with_0 = (score, (negatives + weight, positives))
        with_1 = (score, (negatives, positives + weight))
        p0, p1 = (
            covering(pool([*bag[:at], group, *bag[after:]]), score).value
            for group in (with_0, with_1)
        )
        return p0, p1

    def around(self, score: float) -> tuple[float, float, float, float] | None:
        """Nearest scores of the fit on either side of `score`, each followed by its value."""
        blocks = self._blocks()
        if not blocks:
            return None
        right = min(bisect_left([block.upper for block in blocks], score), len(blocks) - 1)
        left = right if blocks[right].lower <= score or right == 0 else right - 1
        return (blocks[left].upper, blocks[left].value, blocks[right].lower, blocks[right].value)

    # What is held at a time.

    def _pool(self, score: float, label: float, weight: int) -> None:
        _add(self._groups, score, int(label), weight)

    def _pooled(self, score: float, label: float) -> int:
        return int(self._groups.get(score, (0, 0))[int(label)])

    def _bag(self, time: float = math.nan) -> Sequence[tuple[float, tuple[int, int]]]:
        """List groups (score, (weight of label 0, of label 1)) as a query at `time` sees them."""
        if not self.lifetime:
            return list(self._groups.items())
        groups: SortedDict[float, tuple[int, int]] = SortedDict()
        for old in self._visible(time):
            _add(groups, old.score, int(old.label), old.weight)
        return list(groups.items())

    def _blocks(self) -> list[Block]:
        return pool(self._bag())

    # Many steps at once, and the way in and out of saved state. Arrays are filled in place.

    def run(  # noqa: PLR0913, PLR0917 - one array a column
        self,
        steps: Bytes,
        scores: Floats,
        labels: Bytes,
        weights: Integers | None,
        times: Floats | None,
        p0: Floats,
        p1: Floats,
        held: Integers | None = None,
    ) -> int:
        """Predict, learn and remove in order; the number of steps done before one was refused.

        `held` takes the number of observations after each step.
        """
        for i, step in enumerate(steps):
            score, label = float(scores[i]), int(labels[i])
            weight = ONE if weights is None else int(weights[i])
            time = math.nan if times is None else float(times[i])
            if step == PREDICT:
                p0[i], p1[i] = self.predict(score, weight, time)
            elif not (
                self.learn(score, label, weight, time)
                if step == LEARN
                else self.remove(score, label, weight)
            ):
                return i
            if held is not None:
                held[i] = self.size
        return len(steps)

    def group_count(self) -> int:
        """Count the distinct scores held."""
        return len(self._bag())

    def groups(self, scores: Floats, negatives: Integers, positives: Integers) -> None:
        """Write out the groups in score order."""
        for i, (score, weights) in enumerate(self._bag()):
            scores[i], (negatives[i], positives[i]) = score, weights

    def block_count(self) -> int:
        """Count the blocks of the isotonic regression."""
        return len(self._blocks())

    def blocks(
        self, lower: Floats, upper: Floats, weight: Integers, positives: Integers, value: Floats
    ) -> None:
        """Write out the blocks of the isotonic regression in score order."""
        for i, block in enumerate(self._blocks()):
            lower[i], upper[i], weight[i], positives[i] = block
            value[i] = block.value

    def load_groups(
        self, scores: Floats, negatives: Integers, positives: Integers, size: int
    ) -> None:
        """Fill an empty set without forgetting from its groups."""
        pairs = zip(negatives.tolist(), positives.tolist(), strict=True)
        self._groups.update(zip(scores.tolist(), pairs, strict=True))
        self.size, self.total = size, sum(map(sum, self._groups.values()))

    def check(self) -> None:
        """Raise an AssertionError with the state if an invariant does not hold."""
        super().check()
        groups = self._bag()
        assert all(w != (0, 0) and min(w) >= 0 for _, w in groups), groups  # noqa: S101


def _add(groups: SortedDict[float, tuple[int, int]], score: float, label: int, weight: int) -> None:
    """Add a weight to the group at `score`; a group without weight is dropped."""
    weights = list(groups.get(score, (0, 0)))
    weights[label] += weight
    if any(weights):
        groups[score] = (weights[0], weights[1])
    else:
        groups.pop(score, None)
