"""Lanes of weights for observations that await labels: the specification of the native core.

An observation that awaits its label holds a lane: the smallest that is idle, or a new one. A lane
has a weight for each expert, and no other observation changes it until the label comes, so each
lane is an exact Bayes mixture whatever the delays are (Weinberger & Ordentlich 2002; Joulani,
Gyorgy & Szepesvari 2013).
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tests.oracles.experts import scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats, Integers

__all__ = ["Awaiting", "Lanes"]


class Awaiting(NamedTuple):
    """What an observation keeps until its label comes."""

    lane: int
    moment: int  # number of predictions before it
    forecasts: list[float]


class Lanes:
    """Weights of experts by lane, and the observations that hold lanes.

    An observation keeps `kept_size` numbers.
    """

    def __init__(self, prior: Sequence[float], kept_size: int) -> None:
        self.prior, self.kept_size = [*prior], kept_size
        self.table: list[list[float]] = []  # weights by lane, without those that were dropped
        self.idle: list[int] = []  # a heap
        self.awaiting: dict[int, Awaiting] = {}
        self.moment = 0
        self.most = 0  # observations that ever awaited labels at once

    def find(self, number: int) -> Awaiting | None:
        """Return what an observation keeps that awaits its label."""
        return self.awaiting.get(number)

    def next(self) -> int:
        """Return the lane that the next observation occupies."""
        return self.idle[0] if self.idle else len(self.table)

    def weights(self, lane: int) -> list[float]:
        """Return the weights of a lane; those of a new one are the prior."""
        return self.table[lane] if lane < len(self.table) else self.prior

    def occupy(self, number: int, forecasts: list[float]) -> Awaiting:
        """Occupy the next lane; one without a number, -1, must be released before the next."""
        found = Awaiting(self.next(), self.moment, forecasts)
        if found.lane == len(self.table):
            self.table.append(self.prior.copy())
            self.most = max(self.most, len(self.table))
        else:
            heapq.heappop(self.idle)
        self.awaiting[number] = found
        self.moment += 1
        return found

    def multiply(self, lane: int, likelihoods: Sequence[float]) -> None:
        """Multiply the weights of a lane, and scale them by a power of two."""
        weights = self.table[lane]
        for k, likelihood in enumerate(likelihoods):
            weights[k] *= likelihood
        scale(weights)

    def release(self, number: int) -> None:
        """Free the lane of an observation.

        The last lanes are dropped if they are idle and know nothing: no label came there.
        """
        heapq.heappush(self.idle, self.awaiting.pop(number).lane)
        self._drop()

    def mean_weights(self, out: Floats) -> None:
        """Write the mean weight of each expert over the lanes; before the first, the prior."""
        count = max(self.most, 1)
        total = np.zeros(len(self.prior))
        unused = count - len(self.table)
        for lane, times in [*((lane, 1) for lane in self.table), (self.prior, unused)]:
            total += times * (np.array(lane) / np.cumsum(lane)[-1])
        out[:] = total / count

    def save(self, numbers: Integers, moments: Integers, weights: Floats, kept: Floats) -> None:
        """Write what awaits a label by lane, -1 for an idle one, and all weights."""
        weights[:] = [weight for lane in self.table for weight in lane]
        numbers[:], moments[:], kept[:] = -1, 0, 0.0
        for number, one in self.awaiting.items():
            numbers[one.lane], moments[one.lane] = number, one.moment
            kept[one.lane * self.kept_size :][: self.kept_size] = one.forecasts

    def load(  # noqa: PLR0913, PLR0917 - columns
        self,
        moment: int,
        most: int,
        numbers: Integers,
        moments: Integers,
        weights: Floats,
        kept: Floats,
    ) -> None:
        """Take over what `save` wrote, and `most`. What is saved with idle lanes means nothing."""
        self.moment, self.most = moment, most
        self.table = weights.reshape(-1, len(self.prior)).tolist()
        rows = kept.reshape(len(numbers), self.kept_size).tolist()
        self.idle = np.flatnonzero(numbers < 0).tolist()
        self.awaiting = {
            number: Awaiting(lane, at, rows[lane])
            for lane, (number, at) in enumerate(
                zip(numbers.tolist(), moments.tolist(), strict=True)
            )
            if number >= 0
        }
        self._drop()

    def _drop(self) -> None:
        while self.table and self.table[-1] == self.prior and len(self.table) - 1 in self.idle:
            self.idle.remove(len(self.table) - 1)
            self.table.pop()
        heapq.heapify(self.idle)
