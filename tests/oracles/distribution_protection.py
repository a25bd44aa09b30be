"""A pool of methods as a calibrator of distributions: the specification of the native core."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tests.oracles import distribution_pool as pool
from tests.oracles.distribution_methods import FORECASTS, DistributionMethods, Kept
from tests.oracles.lanes import Lanes

if TYPE_CHECKING:
    from tests.oracles.distribution_pool import StepCDF

    from abers.arrays import Floats

__all__ = ["DistributionProtection"]

_SHARES = 2


class DistributionProtection:
    """Methods, and their pool in lanes; an observation has a number, or -1 for none."""

    def __init__(  # noqa: PLR0913, PLR0917 - as of the core
        self,
        low: float,
        high: float,
        members: int,
        pointwise: bool,  # noqa: FBT001
        base_weight: float,
        window: int,
    ) -> None:
        self.methods = DistributionMethods((low, high), members, window, pointwise=pointwise)
        self.lanes = Lanes(pool.prior(FORECASTS, _SHARES, base_weight), 0)
        self.waiting: dict[int, Kept] = {}
        self.sums = [0.0] * (FORECASTS + _SHARES + 1)

    def predict(self, score: Floats, number: int) -> StepCDF:
        """Return the steps of the pool; an observation that waits is given its first answer."""
        if number not in self.waiting:
            kept = self.methods.forecast(score)
            if number < 0:
                return self._served(self.lanes.next(), kept)
            self._issue(score, kept, number)
        found = self.lanes.find(number)
        assert found is not None
        return self._served(found.lane, self.waiting[number])

    def learn(self, score: Floats, label: float, number: int) -> None:
        """Learn a label; of one with an unknown number nothing else is known."""
        if number not in self.waiting:
            if number >= 0:
                self.methods.learn(score, label, None, ())
                return
            self._issue(score, self.methods.forecast(score), number)
        kept, found = self.waiting.pop(number), self.lanes.find(number)
        assert found is not None
        lane = self.lanes.weights(found.lane)
        losses = pool.scores(kept.forecasts, kept.shares, lane, label)
        self.lanes.multiply(found.lane, pool.likelihoods(losses[:-1], self.methods.width))
        self.lanes.release(number)
        self.sums = [total + one for total, one in zip(self.sums, losses, strict=True)]
        self.methods.learn(score, label, kept, losses)

    def expire(self, number: int) -> None:
        """Free the lane of an observation that has no label."""
        if self.waiting.pop(number, None) is not None:
            self.lanes.release(number)

    def weights(self) -> Floats:
        """Return the mean weight of each method over the lanes."""
        out = np.empty(FORECASTS + _SHARES)
        self.lanes.mean_weights(out)
        return out

    def _issue(self, score: Floats, kept: Kept, number: int) -> None:
        self.lanes.occupy(number, [])
        self.waiting[number] = kept
        self.methods.issue(score)

    def _served(self, lane: int, kept: Kept) -> StepCDF:
        weights = pool.weights_of(self.lanes.weights(lane), kept.shares)
        return pool.pooled(kept.forecasts, weights)
