"""What a set of observations remembers, and when it forgets: the specification of both sets.

Governing rule: what is held follows from the observations in the order of their arrival alone, and
weights are integers, multiples of 2**-30, so what was forgotten or removed leaves no trace.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from sortedcontainers import SortedList

from abers._arrays import ONE

if TYPE_CHECKING:
    from abers._arrays import Bytes, Floats, Integers

__all__ = ["LIFETIME", "LIMIT", "Memory", "Observation", "decayed"]

LIFETIME = 30  # half-lives after which an observation is dropped
RESCALE = 4  # half-lives between two changes of the common scale of decaying weights
LIMIT = (1 << 63) - 1  # the largest total weight: sums are signed 64-bit integers
LIMIT_DECAYING = 1 << 58  # the same, with room for a scale of up to 2**RESCALE


class Observation(NamedTuple):
    """A labelled observation as it was learned, in canonical order."""

    time: float
    score: float
    label: float
    weight: int


def decayed(weight: int, time: float, half_life: float, exponent: int) -> int:
    """Weight times 2**(time / half_life - exponent), a multiple of 2**-30.

    The power of two within one half-life is rounded once; whole half-lives shift. So the result
    depends on nothing but the arguments, and a change of scale is exact up to the bits shifted out.
    """
    whole = math.floor(time / half_life)
    mantissa = round(weight * math.exp2(time / half_life - whole))
    shift = whole - exponent
    return mantissa << shift if shift >= 0 else mantissa >> -shift


class Memory:
    """Observations, and the rule by which they are forgotten; what they are pooled to is not here.

    Whoever inherits says in `_pool` what adding (or, with a negative weight, taking away) an
    observation does where nothing ages; what ages is pooled for each query, from `_visible`.
    """

    def __init__(self, window: int = 0, max_age: float = 0.0, half_life: float = 0.0) -> None:
        """Keep the last `window` observations, or those of an age; all, if all three are zero."""
        self.window, self.half_life = window, half_life
        self.lifetime = max_age or LIFETIME * half_life
        self.limit = LIMIT_DECAYING if half_life else LIMIT
        self.size = self.total = self.late = 0
        self.newest = -math.inf
        self._arrived: deque[Observation] = deque()  # with a window, oldest first
        self._aging: SortedList[Observation] = SortedList()  # with a lifetime, oldest first

    def _pool(self, score: float, label: float, weight: int) -> None:
        raise NotImplementedError

    def _pooled(self, score: float, label: float) -> int:
        raise NotImplementedError

    # Learning and forgetting.

    def learn(self, score: float, label: float, weight: int = ONE, time: float = math.nan) -> bool:
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
        self._pool(score, label, weight)
        return True

    def remove(self, score: float, label: float, weight: int = ONE) -> bool:
        """Undo `learn`; False if no such weight is held (or it would leave weight without size)."""
        held = self._pooled(score, label)
        if held < weight or (self.size == 1) != (self.total == weight):
            return False
        self._pool(score, label, -weight)
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
            self._pool(old.score, old.label, -old.weight)
        else:
            self._aging.remove(old)

    # What is seen at a time, where observations age.

    def _visible(self, time: float) -> list[Observation]:
        """List the observations that a query at `time` sees, with the weights that it sees."""
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
        """Weight of an observation of `time` on the common scale at `now`."""
        latest = math.floor(max(self.newest, now) / self.half_life)
        return decayed(weight, time, self.half_life, latest // RESCALE * RESCALE)

    # The way in and out of saved state. Arrays are filled in place.

    def observation_count(self) -> int:
        """Count the observations that are remembered one by one."""
        return len(self._arrived) + len(self._aging)

    def observations(
        self, scores: Floats, labels: Floats | Bytes, weights: Integers, times: Floats
    ) -> None:
        """Write out the observations remembered one by one: by arrival, or in canonical order."""
        for i, old in enumerate(self._arrived or self._aging):
            times[i], scores[i], labels[i], weights[i] = old

    def load_observations(
        self,
        scores: Floats,
        labels: Floats | Bytes,
        weights: Integers,
        times: Floats,
        late: int,
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
        assert self.window or self.lifetime or not held, state  # noqa: S101
        assert not held or self.size == len(held), state  # noqa: S101
        assert not held or self.total == sum(old.weight for old in held), state  # noqa: S101
        assert (self.size == 0) == (self.total == 0) and 0 <= self.total <= self.limit, state  # noqa: S101, PT018
