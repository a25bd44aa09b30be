"""Protected mixture of vectors of class probabilities: the specification of the native core.

It is `Aggregation` with a vector in place of a probability. Experts are weighed by the probability
that each gave to the class that came true, so weights and lanes are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracles.experts import mean
from tests.oracles.mixture import BaseAggregation

if TYPE_CHECKING:
    from abers.arrays import Bytes, Floats, Integers

__all__ = ["ClassAggregation"]


class ClassAggregation(BaseAggregation):
    """Mixture of raw class probabilities, shrunk calibrators, and fixed share over both.

    Experts are, in order: raw, the `shrunk` ones that the caller forecasts, and fixed share. The
    caller gives vectors of positive probabilities that sum to one.
    """

    def __init__(self, classes: int, shrunk: int, raw_weight: float = 0.25) -> None:
        super().__init__(shrunk + 2, raw_weight, classes)
        self.classes = classes

    def run(
        self, kinds: Bytes, numbers: Integers, labels: Integers, given: Floats, out: Floats
    ) -> None:
        """Run steps with the raw and shrunk vectors of each, and write the predictions."""

        def predict(row: int) -> None:
            out[row] = self.predict(given[row].tolist(), int(numbers[row]))

        def learn(row: int) -> None:
            self.learn(given[row].tolist(), int(labels[row]), int(numbers[row]))

        self._steps(kinds, numbers, predict, learn)

    def predict(self, given: list[list[float]], number: int = -1) -> list[float]:
        """Return the vector; an observation with a number occupies a lane from now on."""
        found = self.lanes.find(number)
        forecasts = self.forecasts(given) if found is None else found.forecasts
        lane = self.lanes.next() if found is None else found.lane
        if found is None and number >= 0:
            self.lanes.occupy(number, forecasts)
        return _blended(self.lanes.weights(lane), forecasts, self.classes)

    def learn(self, given: list[list[float]], label: int, number: int = -1) -> None:
        """Learn the number of a class, as `Aggregation.learn` learns a label."""
        found = self.lanes.find(number)
        forecasts = self.forecasts(given) if found is None else found.forecasts
        if found is None and number < 0:
            found = self.lanes.occupy(number, forecasts)
        likelihoods = forecasts[label :: self.classes]
        if found is not None:
            served = mean(self.lanes.weights(found.lane), likelihoods)
            self.settle(number, found.lane, [*likelihoods, served])
        self.taught += 1
        self.share.learn(likelihoods[:-1], 1)

    def forecasts(self, given: list[list[float]]) -> list[float]:
        """Return the vectors of all experts, one after the other.

        Before the first label all are the raw vector.
        """
        if not self.taught:
            return given[0] * self.experts
        flat = [p for vector in given for p in vector]
        return flat + _blended(self.share.weights, flat, self.classes)


def _blended(weights: list[float], vectors: list[float], classes: int) -> list[float]:
    """Return the mean by weight of vectors that stand one after the other."""
    return [mean(weights, vectors[label::classes]) for label in range(classes)]
