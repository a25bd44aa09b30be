"""Pool of predictive distributions in lanes: the specification of the native core.

A forecast is m numbers in order, each with the mass 1 / m. The pool of the forecasts of K experts
has all their numbers, each with the weight of its expert. On a support of width R the continuous
ranked probability score is exp-concave with the rate 1 / (2 R) for this pool, so the total score of
a lane exceeds that of an expert of weight w by at most 2 R ln(1 / w).
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeAlias

from tests.oracles.elementary import exponential
from tests.oracles.lanes import Lanes
from tests.oracles.mixture import ExpertLanes

if TYPE_CHECKING:
    from abers.arrays import Floats, Integers

    StepCDF: TypeAlias = list[tuple[float, float]]

__all__ = ["DistributionPool"]


class DistributionPool(ExpertLanes):
    """Linear pool of the forecasts of experts, weighted by their scores.

    Forecasts are an array with a row an expert, of `members` numbers in order. An observation has a
    number, or -1 for none.
    """

    def __init__(self, experts: int, members: int, first_weight: float, width: float) -> None:
        others = (1.0 - first_weight) / (experts - 1)
        prior = [first_weight, *[others] * (experts - 1)]
        super().__init__(Lanes(prior, experts * members))
        self.members, self.width = members, width
        self.sums = [0.0] * (experts + 1)  # of scores: of each expert, then of the pool

    # Steps

    def predict(self, forecasts: Floats, number: int, points: Floats, cdf: Floats) -> int:
        """Write the steps of the pool: where, and the CDF from there on; return how many.

        An observation with a number occupies a lane from now on. One that does so already is given
        its first answer.
        """
        found = self.lanes.find(number)
        kept = found.forecasts if found else forecasts.ravel().tolist()
        if found is None and number >= 0:
            found = self.lanes.occupy(number, kept)
        steps = self._pooled(found.lane if found else self.lanes.next(), kept)
        points[: len(steps)] = [at for at, _ in steps]
        cdf[: len(steps)] = [value for _, value in steps]
        return len(steps)

    def kept(self, number: int, out: Floats) -> bool:
        """Write the forecasts of an awaiting observation; return whether it awaits its label."""
        found = self.lanes.find(number)
        if found is not None:
            out.ravel()[:] = found.forecasts
        return found is not None

    def learn(self, forecasts: Floats, label: float, number: int) -> None:
        """Learn a label; one of an unknown number has no effect.

        The forecasts are those of an observation without a number, which is predicted and learned.
        """
        found = self.lanes.find(number)
        if found is None and number >= 0:
            return
        if found is None:
            found = self.lanes.occupy(number, forecasts.ravel().tolist())
        of_pool = _score(self._pooled(found.lane, found.forecasts), label)
        scores = [_score(self._steps(found.forecasts, k), label) for k in range(self.experts)]
        rate = 1.0 / (2.0 * self.width)
        self.lanes.multiply(found.lane, [exponential(-rate * one) for one in scores])
        self.lanes.release(number)
        self.sums = [total + one for total, one in zip(self.sums, [*scores, of_pool], strict=True)]
        self.labels += 1

    def _steps(self, kept: list[float], k: int) -> StepCDF:
        """Return the CDF of an expert, by its steps: where, and its value from there on."""
        members = self.members
        return [(kept[k * members + i], (i + 1.0) / members) for i in range(members)]

    def _pooled(self, lane: int, kept: list[float]) -> StepCDF:
        """Return the CDF of the pool; where several numbers are equal, it is one step."""
        weights = self.lanes.weights(lane)
        points = sorted((at, i // self.members) for i, at in enumerate(kept))
        steps, total = [], 0.0
        for (at, k), following in zip(points, chain(points[1:], [None]), strict=True):
            total += weights[k]
            if following is None or following[0] != at:
                steps.append((at, total))
        return [(at, held / total) for at, held in steps]

    # Reports and saving

    def losses(self, out: Floats) -> None:
        """Write the total score of each expert, then of the pool, over `labels`."""
        out[:] = self.sums

    def save(
        self, numbers: Integers, moments: Integers, weights: Floats, kept: Floats, scores: Floats
    ) -> None:
        """Write the state: what awaits a label by lane, -1 for an idle one, and the scores."""
        self.lanes.save(numbers, moments, weights, kept)
        self.losses(scores)

    def load(  # noqa: PLR0913, PLR0917 - columns
        self,
        moment: int,
        labels: int,
        most: int,
        numbers: Integers,
        moments: Integers,
        weights: Floats,
        kept: Floats,
        scores: Floats,
    ) -> None:
        """Load what `save` wrote."""
        self.labels, self.sums = labels, scores.tolist()
        self.lanes.load(moment, most, numbers, moments, weights, kept)


def _score(steps: StepCDF, label: float) -> float:
    """Return the continuous ranked probability score of a step CDF that ends at 1."""
    total = max(steps[0][0] - label, 0.0) + max(label - steps[-1][0], 0.0)
    for (low, below), (high, _) in pairwise(steps):
        middle = min(max(label, low), high)
        total += below * below * (middle - low)
        total += (1.0 - below) * (1.0 - below) * (high - middle)
    return total
