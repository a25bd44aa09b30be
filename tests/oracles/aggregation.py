"""Protected mixture of experts in lanes: the specification of the native core.

The experts forecast when an observation is predicted, and learn when its label comes; the lane that
it holds in between weighs them.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from tests.oracles.experts import Jumper, OnlinePlatt, clipped, mixed
from tests.oracles.mixture import BaseAggregation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracles.lanes import Awaiting

    from abers.arrays import Bytes, Floats, Integers

__all__ = ["Aggregation"]

_PLATT = 5  # parameters of online Platt scaling
_OWN = 4  # experts beside those that the caller forecasts: raw, Platt, jumper, fixed share


class Aggregation(BaseAggregation):
    """Mixture of the raw probability, shrunk calibrators, and their corrections.

    Experts are, in order: raw, those that the caller forecasts, online Platt scaling, the jumper,
    and fixed share over all before it. All forecasts are at least 1e-6 from 0 and 1.
    """

    def __init__(self, shrunk: int, raw_weight: float = 0.25) -> None:
        super().__init__(shrunk + _OWN, raw_weight)
        self.platt, self.jumper = OnlinePlatt(), Jumper()

    def run(
        self, kinds: Bytes, numbers: Integers, labels: Bytes, given: Floats, out: Floats
    ) -> None:
        """Run steps with the raw and shrunk probabilities of each, and write the predictions."""

        def predict(row: int) -> None:
            raw, *shrunk = given[row].tolist()
            out[row] = self.predict(raw, shrunk, int(numbers[row]))

        def learn(row: int) -> None:
            raw, *shrunk = given[row].tolist()
            self.learn(raw, shrunk, int(labels[row]), int(numbers[row]))

        self._steps(kinds, numbers, predict, learn)

    def forecasts(self, raw: float, shrunk: list[float]) -> list[float]:
        """Return the forecasts of all experts: before the first label, the raw probability."""
        if not self.taught:
            return [clipped(raw)] * self.experts
        found = [clipped(raw), *map(clipped, shrunk)]
        found += [self.platt.forecast(found[0]), self.jumper.forecast(found[0])]
        return [*found, self.share.forecast(found)]

    def predict(self, raw: float, shrunk: list[float], number: int = -1) -> float:
        """Return the probability; an observation with a number occupies a lane from now on."""
        found = self.lanes.find(number)
        if found is not None:
            return mixed(self.lanes.weights(found.lane), found.forecasts)
        forecasts = self.forecasts(raw, shrunk)
        probability = mixed(self.lanes.weights(self.lanes.next()), forecasts)
        if number >= 0:
            self.lanes.occupy(number, forecasts)
        return probability

    def learn(self, raw: float, shrunk: list[float], label: int, number: int = -1) -> None:
        """Learn a label.

        Of an awaiting observation the forecasts are those of its prediction; an observation with
        another number teaches the experts alone; one without a number is predicted and learned.
        """
        if number < 0:
            found: Awaiting | None = self.lanes.occupy(number, self.forecasts(raw, shrunk))
        else:
            found = self.lanes.find(number)
        if found is None:
            forecasts = self.forecasts(raw, shrunk)
        else:
            forecasts = found.forecasts
            served = mixed(self.lanes.weights(found.lane), forecasts)
            likelihoods = [p if label else 1.0 - p for p in [*forecasts, served]]
            self.settle(number, found.lane, likelihoods)
        self.taught += 1
        self.platt.learn(forecasts[0], label)
        self.jumper.learn(forecasts[0], label)
        self.share.learn(forecasts[:-1], label)

    # Saving

    def _own(self) -> list[float]:
        platt = self.platt
        return [platt.slope, platt.level, platt.p00, platt.p01, platt.p11, *self.jumper.weights]

    def _become(self, own: Iterator[float]) -> None:
        platt = self.platt
        platt.slope, platt.level, platt.p00, platt.p01, platt.p11 = islice(own, _PLATT)
        self.jumper.weights = [*islice(own, len(self.jumper.weights))]
