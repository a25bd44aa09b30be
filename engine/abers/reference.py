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
from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from sortedcontainers import SortedDict, SortedList

from abers._ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Bytes = NDArray[np.uint8]

__all__ = [
    "LEARN",
    "ONE",
    "PREDICT",
    "REMOVE",
    "Block",
    "CalibrationSet",
    "Ledger",
    "Observation",
    "decayed",
    "pool",
]

PREDICT, LEARN, REMOVE = 0, 1, 2  # the steps of `CalibrationSet.run`
ONE = 1 << 30  # the weight 1
LIFETIME = 30  # half-lives after which an observation is dropped
RESCALE = 4  # half-lives between two changes of the common scale of decaying weights
LIMIT = (1 << 63) - 1  # the largest total weight: sums are signed 64-bit integers
LIMIT_DECAYING = 1 << 58  # the same, with room for a scale of up to 2**RESCALE


class Observation(NamedTuple):
    """A labelled observation as it was learned, in canonical order."""

    time: float
    score: float
    label: int
    weight: int


class Block(NamedTuple):
    """A block of the isotonic regression: scores from lower to upper share one fitted value."""

    lower: float
    upper: float
    weight: int
    positives: int

    @property
    def value(self) -> float:
        """The fitted value, correctly rounded (as Python's integer division is)."""
        return self.positives / self.weight


def pool(groups: Iterable[tuple[float, tuple[int, int]]]) -> list[Block]:
    """Pool adjacent violators: the isotonic regression of groups that come in score order.

    Invariant of the loop: `blocks` is the isotonic regression of the groups read so far, its
    values strictly increasing.
    """
    blocks: list[Block] = []
    for upper, (negatives, positives) in groups:
        lower, weight = upper, negatives + positives
        while blocks and blocks[-1].positives * weight >= positives * blocks[-1].weight:
            lower, _, pooled_weight, pooled_positives = blocks.pop()
            weight += pooled_weight
            positives += pooled_positives  # noqa: PLW2901 - the block grows to the left
        blocks.append(Block(lower, upper, weight, positives))
    return blocks


def decayed(weight: int, time: float, half_life: float, exponent: int) -> int:
    """Weight times 2**(time / half_life - exponent), a multiple of 2**-30.

    The power of two within one half-life is rounded once; whole half-lives shift. So the result
    depends on nothing but the arguments, and a change of scale is exact up to the bits shifted out.
    """
    whole = math.floor(time / half_life)
    mantissa = round(weight * math.exp2(time / half_life - whole))
    shift = whole - exponent
    return mantissa << shift if shift >= 0 else mantissa >> -shift


class CalibrationSet:
    """Labelled observations pooled by score, and the rule by which they are forgotten."""

    def __init__(self, window: int = 0, max_age: float = 0.0, half_life: float = 0.0) -> None:
        """Keep the last `window` observations, or those of an age; all, if all three are zero."""
        self.window, self.half_life = window, half_life
        self.lifetime = max_age or LIFETIME * half_life
        self.limit = LIMIT_DECAYING if half_life else LIMIT
        self.size = self.total = self.late = 0
        self.newest = -math.inf
        self._arrived: deque[Observation] = deque()  # with a window, oldest first
        self._aging: SortedList[Observation] = SortedList()  # with a lifetime, oldest first
        self._groups: SortedDict[float, tuple[int, int]] = SortedDict()  # without a lifetime

    # Predicting: the isotonic regression of the bag extended by the query.

    def predict(
        self, score: float, weight: int = ONE, time: float = math.nan
    ) -> tuple[float, float]:
        """Fit at `score` when the query is given label 0, and when it is given label 1."""
        if self.half_life:
            when = self.newest if math.isnan(time) else time
            weight = max(1, self._decayed(weight, when, time)) if self.size else ONE
        bag = self._bag(time)
        scores = [group[0] for group in bag]
        at = bisect_left(scores, score)
        after = at + 1 if at < len(bag) and scores[at] == score else at
        negatives, positives = bag[at][1] if at < after else (0, 0)
        with_0 = (score, (negatives + weight, positives))
        with_1 = (score, (negatives, positives + weight))
        p0, p1 = (
            next(
                block.value
                for block in pool([*bag[:at], group, *bag[after:]])
                if block.upper >= score
            )
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

    # Learning and forgetting.

    def learn(self, score: float, label: int, weight: int = ONE, time: float = math.nan) -> bool:
        """Add an observation and forget those it drives out; False if the total would overflow."""
        if self.lifetime and time < self.newest - self.lifetime:
            self.late += 1
            return True
        new = Observation(time, score, label, weight)
        leaving = self._driven_out_by(new)
        total = self.total + weight - sum(old.weight for old in leaving)
        if total > self.limit:
            return False
        for old in leaving:
            self._forget(old)
        self.size, self.total = self.size - len(leaving) + 1, total
        if self.lifetime:
            self.newest = max(self.newest, time)
            self._aging.add(new)
            return True
        if self.window:
            self._arrived.append(new)
        _add(self._groups, score, label, weight)
        return True

    def remove(self, score: float, label: int, weight: int = ONE) -> bool:
        """Undo `learn`; False if no such weight is held (or it would leave weight without size)."""
        held = self._groups.get(score, (0, 0))[label]
        if held < weight or (self.size == 1) != (self.total == weight):
            return False
        _add(self._groups, score, label, -weight)
        self.size, self.total = self.size - 1, self.total - weight
        return True

    def _driven_out_by(self, new: Observation) -> list[Observation]:
        if self.window and self.size == self.window:
            return [self._arrived[0]]
        horizon = max(self.newest, new.time) - self.lifetime
        return list(takewhile(lambda old: old.time < horizon, self._aging))

    def _forget(self, old: Observation) -> None:
        if self.window:
            self._arrived.popleft()
            _add(self._groups, old.score, old.label, -old.weight)
        else:
            self._aging.remove(old)

    # What is held at a time.

    def _bag(self, time: float = math.nan) -> Sequence[tuple[float, tuple[int, int]]]:
        """List groups (score, (weight of label 0, of label 1)) as a query at `time` sees them."""
        if not self.lifetime:
            return list(self._groups.items())
        horizon = max(self.newest, time) - self.lifetime
        groups: SortedDict[float, tuple[int, int]] = SortedDict()
        for old in self._aging:
            if old.time >= horizon:
                weight = self._decayed(old.weight, old.time, time) if self.half_life else old.weight
                _add(groups, old.score, old.label, weight)
        return list(groups.items())

    def _decayed(self, weight: int, time: float, now: float) -> int:
        """Weight of an observation of `time` on the common scale at `now`."""
        latest = math.floor(max(self.newest, now) / self.half_life)
        return decayed(weight, time, self.half_life, latest // RESCALE * RESCALE)

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

    def observation_count(self) -> int:
        """Count the observations that are remembered one by one."""
        return len(self._arrived) + len(self._aging)

    def observations(self, scores: Floats, labels: Bytes, weights: Integers, times: Floats) -> None:
        """Write out the observations remembered one by one: by arrival, or in canonical order."""
        for i, old in enumerate(self._arrived or self._aging):
            times[i], scores[i], labels[i], weights[i] = old

    def load_groups(
        self, scores: Floats, negatives: Integers, positives: Integers, size: int
    ) -> None:
        """Fill an empty set without forgetting from its groups."""
        pairs = zip(negatives.tolist(), positives.tolist(), strict=True)
        self._groups.update(zip(scores.tolist(), pairs, strict=True))
        self.size, self.total = size, sum(map(sum, self._groups.values()))

    def load_observations(
        self, scores: Floats, labels: Bytes, weights: Integers, times: Floats, late: int
    ) -> None:
        """Fill an empty set that forgets from its observations; none drives out another."""
        columns = (array.tolist() for array in (scores, labels, weights, times))
        for row in zip(*columns, strict=True):
            self.learn(*row)
        self.late = late

    def check(self) -> None:
        """Raise an AssertionError with the state if an invariant does not hold."""
        state = f"{vars(self)}"
        held = [*self._arrived, *self._aging]
        assert all(weights != (0, 0) and min(weights) >= 0 for _, weights in self._bag()), state  # noqa: S101
        assert self.window or self.lifetime or not held, state  # noqa: S101
        assert not held or self.size == len(held), state  # noqa: S101
        assert not held or self.total == sum(old.weight for old in held), state  # noqa: S101
        assert (self.size == 0) == (self.total == 0) and 0 <= self.total <= self.limit, state  # noqa: S101, PT018


def _add(groups: SortedDict[float, tuple[int, int]], score: float, label: int, weight: int) -> None:
    """Add a weight to the group at `score`; a group without weight is dropped."""
    weights = list(groups.get(score, (0, 0)))
    weights[label] += weight
    if any(weights):
        groups[score] = (weights[0], weights[1])
    else:
        groups.pop(score, None)
