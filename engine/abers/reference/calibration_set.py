"""The calibration set: the specification of `CalibrationSet` of the native core.

A prediction is the isotonic regression of the calibration set extended by the query. All sums are
integers (weights are multiples of 2**-30), so every prediction is the correctly rounded ratio of
two integers, and the native core agrees bit for bit.

The class takes checked values: finite scores, labels 0 or 1, positive integer weights in units of
2**-30, times (NaN where there is none). `abers.VennAbers` checks the values of users.

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

from abers.arrays import ONE
from abers.reference.observation_set import ObservationSet
from abers.reference.pava import Block, covering, pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Bytes, Floats, Integers

__all__ = ["CalibrationSet"]


class CalibrationSet(ObservationSet):
    """Labelled observations pooled by score, with forgetting."""

    def __init__(self, window: int = 0, max_age: float = 0.0, half_life: float = 0.0) -> None:
        """Make an empty set."""
        super().__init__(window, max_age, half_life)
        self._groups: SortedDict[float, tuple[int, int]] = SortedDict()  # without a lifetime

    # Predictions: the isotonic regression of the bag extended by the query

    def predict(
        self, score: float, weight: int = ONE, time: float = math.nan
    ) -> tuple[float, float]:
        """Return the fit at `score` if the query has label 0, and if it has label 1."""
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
        """Return the nearest scores of the fit on either side, each followed by its value."""
        blocks = self._blocks()
        if not blocks:
            return None
        right = min(bisect_left([block.upper for block in blocks], score), len(blocks) - 1)
        left = right if blocks[right].lower <= score or right == 0 else right - 1
        return (blocks[left].upper, blocks[left].value, blocks[right].lower, blocks[right].value)

    # The bag: the observations that a query sees

    def _pool(self, score: float, label: float, weight: int) -> None:
        _add(self._groups, score, int(label), weight)

    def _pooled(self, score: float, label: float) -> int:
        return int(self._groups.get(score, (0, 0))[int(label)])

    def _bag(self, time: float = math.nan) -> Sequence[tuple[float, tuple[int, int]]]:
        """Return the groups (score, (weight of label 0, of label 1)) that a query sees."""
        if not self.lifetime:
            return list(self._groups.items())
        groups: SortedDict[float, tuple[int, int]] = SortedDict()
        for old in self._visible(time):
            _add(groups, old.score, int(old.label), old.weight)
        return list(groups.items())

    def _blocks(self) -> list[Block]:
        return pool(self._bag())

    # Batches of steps, and saved state; arrays are filled in place

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
        """Run steps as `_run` does; predictions fill their rows of `p0` and `p1`."""

        def predict(row: int, score: float, weight: int, time: float) -> None:
            p0[row], p1[row] = self.predict(score, weight, time)

        return self._run(steps, scores, labels, weights, times, predict, held)

    def group_count(self) -> int:
        """Return the number of distinct scores."""
        return len(self._bag())

    def groups(self, scores: Floats, negatives: Integers, positives: Integers) -> None:
        """Write the groups in score order."""
        for i, (score, weights) in enumerate(self._bag()):
            scores[i], (negatives[i], positives[i]) = score, weights

    def block_count(self) -> int:
        """Return the number of blocks of the isotonic regression."""
        return len(self._blocks())

    def blocks(
        self, lower: Floats, upper: Floats, weight: Integers, positives: Integers, value: Floats
    ) -> None:
        """Write the blocks of the isotonic regression in score order."""
        for i, block in enumerate(self._blocks()):
            lower[i], upper[i], weight[i], positives[i] = block
            value[i] = block.value

    def load_groups(
        self, scores: Floats, negatives: Integers, positives: Integers, size: int
    ) -> None:
        """Load the groups into an empty set without forgetting."""
        pairs = zip(negatives.tolist(), positives.tolist(), strict=True)
        self._groups.update(zip(scores.tolist(), pairs, strict=True))
        self.size, self.total = size, sum(map(sum, self._groups.values()))

    def check(self) -> None:
        """Raise an AssertionError with the state if an invariant is violated."""
        super().check()
        groups = self._bag()
        assert all(w != (0, 0) and min(w) >= 0 for _, w in groups), groups  # noqa: S101


def _add(groups: SortedDict[float, tuple[int, int]], score: float, label: int, weight: int) -> None:
    """Add a weight to the group at `score`; drop a group without weight."""
    weights = list(groups.get(score, (0, 0)))
    weights[label] += weight
    if any(weights):
        groups[score] = (weights[0], weights[1])
    else:
        groups.pop(score, None)
