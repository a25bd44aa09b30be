"""The calibration set in plain Python: the definition of `CalibrationSet` of the native core.

A prediction is the isotonic regression of the calibration set extended by the query. The state
depends only on the observations in their order of arrival. All sums are integers (weights are
multiples of 2**-30), so a forgotten or removed observation leaves no trace, every prediction is
the correctly rounded ratio of two integers, and the native core agrees bit for bit.

The class takes checked values: finite scores, labels 0 or 1, positive integer weights in units of
2**-30, times (NaN without a time). `abers.VennAbers` checks the values of users.

References
----------
Ayer, Brunk, Ewing, Reid & Silverman (1955) for pooling adjacent violators;
Vovk & Petej (2014), section 4, for Venn-Abers prediction.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, Self, cast

from sortedcontainers import SortedDict, SortedList

from abers.arrays import LEARN, LIFETIME, LIMIT, LIMIT_DECAYING, ONE, PREDICT
from abers.reference import set_codec
from abers.reference.isotonic import covering, pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers.arrays import Bytes, Floats, Integers
    from abers.reference.isotonic import Block

__all__ = [
    "CalibrationSet",
    "ObservationSet",
    "WeightedObservation",
    "decayed",
]

RESCALE = 4  # half-lives between two changes of the common scale of decaying weights


class WeightedObservation(NamedTuple):
    """A labelled observation; the order of the fields is the canonical order."""

    time: float
    score: float
    label: float
    weight: int


def decayed(weight: int, time: float, half_life: float, exponent: int) -> int:
    """Return weight times 2**(time / half_life - exponent), a multiple of 2**-30.

    The power of two within one half-life is rounded once; whole half-lives are shifts. So a change
    of scale is exact up to the bits that are shifted out.
    """
    whole = math.floor(time / half_life)
    mantissa = round(weight * math.exp2(time / half_life - whole))
    shift = whole - exponent
    return mantissa << shift if shift >= 0 else mantissa >> -shift


class ObservationSet:
    """Observations, and the rule by which they are forgotten.

    A subclass pools them: in `_pool` as they are added (or, with a negative weight, removed), and
    with `max_age` or `half_life` for each query, from `_visible`.
    """

    def __init__(self, window: int = 0, max_age: float = 0.0, half_life: float = 0.0) -> None:
        """Keep the last `window` observations, or those of an age; all if the options are zero."""
        self.window, self.half_life = window, half_life
        self.lifetime = max_age or LIFETIME * half_life
        self.limit = LIMIT_DECAYING if half_life else LIMIT
        self.size = self.total = self.late = 0
        self.newest = -math.inf
        self._arrived: deque[WeightedObservation] = deque()  # with a window, oldest first
        self._aging: SortedList[WeightedObservation] = SortedList()  # with a lifetime, oldest first

    def _pool(self, score: float, label: float, weight: int) -> None:
        raise NotImplementedError

    def _pooled(self, score: float, label: float) -> int:
        raise NotImplementedError

    # Learning and forgetting

    def learn(self, score: float, label: float, weight: int = ONE, time: float = math.nan) -> bool:
        """Add an observation and forget the oldest; return False if the total would overflow."""
        return self._add(score, label, self._weight(label, weight), time)

    def _weight(self, label: float, weight: int) -> int:
        """Return the weight with which a label is added."""
        del label
        return weight

    def _add(self, score: float, label: float, weight: int, time: float) -> bool:
        if not self.takes(weight, time):
            return False
        if self._is_late(time):
            self.late += 1
            return True
        new = WeightedObservation(time, score, label, weight)
        leaving = self._displaced_at(time)
        for old in leaving:
            self._forget(old)
        self.size += 1 - len(leaving)
        self.total += weight - sum(old.weight for old in leaving)
        if self.lifetime:
            self.newest = max(self.newest, time)
            self._aging.add(new)
            return True
        if self.window:
            self._arrived.append(new)
        self._pool(score, label, weight)
        return True

    def remove(self, score: float, label: float, weight: int = ONE) -> bool:
        """Undo `learn`; return False if that weight is not there, or it would outlast the size."""
        held, weight = self._pooled(score, label), self._weight(label, weight)
        if held < weight or (self.size == 1) != (self.total == weight):
            return False
        self._pool(score, label, -weight)
        self.size, self.total = self.size - 1, self.total - weight
        return True

    def takes(self, weight: int, time: float = math.nan) -> bool:
        """Return whether the total weight stays within the limit if an observation is added."""
        leaving = sum(old.weight for old in self._displaced_at(time))
        return self._is_late(time) or self.total + weight - leaving <= self.limit

    def _is_late(self, time: float) -> bool:
        return bool(self.lifetime) and time < self.newest - self.lifetime

    def _displaced_at(self, time: float) -> list[WeightedObservation]:
        if self.window and self.size == self.window:
            return [self._arrived[0]]
        horizon = max(self.newest, time) - self.lifetime
        return list(takewhile(lambda old: old.time < horizon, self._aging))

    def _forget(self, old: WeightedObservation) -> None:
        if self.window:
            self._arrived.popleft()
            self._pool(old.score, old.label, -old.weight)
        else:
            self._aging.remove(old)

    def _run(  # noqa: PLR0913, PLR0917 - one array a column
        self,
        steps: Bytes,
        scores: Floats,
        labels: Floats | Bytes,
        weights: Integers | None,
        times: Floats | None,
        predict: Callable[[int, float, int, float], None],
        held: Integers | None,
    ) -> int:
        """Run steps in order; return the number of steps before the first refusal.

        `predict` gets the row, score, weight and time of a prediction. `held` receives the number
        of observations after each step.
        """
        for i, step in enumerate(steps):
            score, label = float(scores[i]), labels[i].item()
            weight = ONE if weights is None else int(weights[i])
            time = math.nan if times is None else float(times[i])
            if step == PREDICT:
                predict(i, score, weight, time)
            elif not (
                self.learn(score, label, weight, time)
                if step == LEARN
                else self.remove(score, label, weight)
            ):
                return i
            if held is not None:
                held[i] = self.size
        return len(steps)

    # Observations that age

    def _visible(self, time: float) -> list[WeightedObservation]:
        """Return the observations that a query at `time` sees, with their weights for it."""
        horizon = max(self.newest, time) - self.lifetime
        seen = (old for old in self._aging if old.time >= horizon)
        if not self.half_life:
            return list(seen)
        return [
            old._replace(weight=weight)
            for old in seen
            if (weight := self._decayed(old.weight, old.time, time))
        ]

    def _weight_of_query(self, weight: int, time: float) -> int:
        if not self.half_life:
            return weight
        when = self.newest if math.isnan(time) else time
        return max(1, self._decayed(weight, when, time)) if self.size else ONE

    def _decayed(self, weight: int, time: float, now: float) -> int:
        """Return the weight of an observation of `time` on the common scale at `now`."""
        latest = math.floor(max(self.newest, now) / self.half_life)
        return decayed(weight, time, self.half_life, latest // RESCALE * RESCALE)

    # Saved state; arrays are filled in place

    def observation_count(self) -> int:
        """Return the number of observations that are stored one by one."""
        return len(self._arrived) + len(self._aging)

    def observations(
        self, scores: Floats, labels: Floats | Bytes, weights: Integers, times: Floats
    ) -> None:
        """Write the observations stored one by one: by arrival, or in canonical order."""
        for i, old in enumerate(self._arrived or self._aging):
            times[i], scores[i], labels[i], weights[i] = old

    def load_observations(
        self, scores: Floats, labels: Floats | Bytes, weights: Integers, times: Floats, late: int
    ) -> None:
        """Load observations into an empty set that forgets; none displaces another."""
        columns = (array.tolist() for array in (scores, labels, weights, times))
        for row in zip(*columns, strict=True):
            self._add(*row)
        self.late = late

    def check(self) -> None:
        """Raise an AssertionError with the state if an invariant is violated."""
        state = f"{vars(self)}"
        held = [*self._arrived, *self._aging]
        assert self.window or self.lifetime or not held, state  # noqa: S101
        assert not held or self.size == len(held), state  # noqa: S101
        assert not held or self.total == sum(old.weight for old in held), state  # noqa: S101
        assert (self.size == 0) == (self.total == 0) and 0 <= self.total <= self.limit, state  # noqa: S101, PT018


class CalibrationSet(ObservationSet):
    """Labelled observations pooled by score, with forgetting.

    If labels of class y arrive at the rate r_y, each of them stands for 1 / r_y observations: its
    weight is divided by r_y, and that of a query by the rate of the label that it is given.
    """

    def __init__(
        self,
        window: int = 0,
        max_age: float = 0.0,
        half_life: float = 0.0,
        label_rates: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        """Make an empty set."""
        super().__init__(window, max_age, half_life)
        self.label_rates = label_rates
        self._factors = [round(ONE / rate) for rate in label_rates]
        self._groups: SortedDict[float, tuple[int, int]] = SortedDict()  # without a lifetime

    # Predictions: the isotonic regression of the bag extended by the query

    def predict(
        self, score: float, weight: int = ONE, time: float = math.nan
    ) -> tuple[float, float]:
        """Return the fit at `score` if the query has label 0, and if it has label 1."""
        weights = [self._weight_of_query(self._weight(y, weight), time) for y in (0, 1)]
        bag = self._bag(time)
        scores = [group[0] for group in bag]
        at = bisect_left(scores, score)
        after = at + 1 if at < len(bag) and scores[at] == score else at
        negatives, positives = bag[at][1] if at < after else (0, 0)
        with_0 = (score, (negatives + weights[0], positives))
        with_1 = (score, (negatives, positives + weights[1]))
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

    def _weight(self, label: float, weight: int) -> int:
        return (weight * self._factors[int(label)] + ONE // 2) // ONE

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

    save = set_codec.save

    @classmethod
    def load(cls, payload: bytes) -> Self:
        """Return the set that `save` wrote."""
        return cast("Self", set_codec.load(cls, payload))

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
