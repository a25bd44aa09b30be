"""The set of predictive distributions: the definition of `PredictiveSet` of the native core.

The CDFs at a threshold are the binary Venn-Abers prediction of "label above the threshold": the
isotonic regression of 1{label > threshold} on the score, extended by the query with label 1 for
the lower CDF and with label 0 for the upper CDF. Every value is the correctly rounded ratio of two
integers, and the native core agrees bit for bit.

The class takes checked values: finite scores, labels and times (NaN without a time), positive
integer weights in units of 2**-30.

References
----------
Petej (2018), Inductive Venn-Abers prediction for regression, section 4.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sortedcontainers import SortedDict

from abers.arrays import ONE
from abers.cdfs import reached
from abers.reference.calibration_set import ObservationSet
from abers.reference.isotonic import covering, pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Bytes, Floats, Integers

__all__ = ["PredictiveSet"]

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
