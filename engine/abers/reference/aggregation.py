"""Protected mixture of experts in lanes: the specification of the native core.

The experts forecast when an observation is predicted, and learn when its label comes; the lane that
it holds in between weighs them.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.reference.elementary import logarithm
from abers.reference.experts import FixedShare, Jumper, OnlinePlatt, clipped, mixed
from abers.reference.lanes import Lanes

if TYPE_CHECKING:
    from abers.arrays import Bytes, Floats, Integers
    from abers.reference.lanes import Awaiting

__all__ = ["Aggregation", "Product"]

_SMALL, _SHIFT = 2.0**-512, 512
_PLATT = 5  # parameters of online Platt scaling
_LN2 = float.fromhex("0x1.62e42fefa39efp-1")
_OWN = 4  # experts beside those that the caller forecasts: raw, Platt, jumper, fixed share


class Product:
    """A product of probabilities, as a number and a power of two."""

    def __init__(self) -> None:
        self.number, self.exponent = 1.0, 0

    def multiply(self, p: float) -> None:
        """Multiply by a probability of at least 1e-6."""
        self.number *= p
        if self.number < _SMALL:
            self.number *= 2.0**_SHIFT
            self.exponent -= _SHIFT

    def loss(self) -> float:
        """Return minus the natural logarithm of the product."""
        return -(logarithm(self.number) + self.exponent * _LN2)


class Aggregation:
    """Mixture of the raw probability, shrunk calibrators, and their corrections.

    Experts are, in order: raw, those that the caller forecasts, online Platt scaling, the jumper,
    and fixed share over all before it. All forecasts are at least 1e-6 from 0 and 1.
    """

    def __init__(self, shrunk: int, raw_weight: float = 0.25) -> None:
        rest = 1.0 - raw_weight
        others = shrunk + _OWN - 2
        self.lanes = Lanes([raw_weight, *[rest / 2.0 / others] * others, rest / 2.0])
        self.platt, self.jumper = OnlinePlatt(), Jumper()
        self.share = FixedShare(self.experts - 1)
        self.labels = 0  # of observations that held a lane
        self.taught = 0  # labels that the experts learned
        self.products = [Product() for _ in range(self.experts + 1)]

    def moments(self, kinds: Bytes, numbers: Integers, out: Floats, known: Bytes) -> None:
        """Write, for each step, the moment of its prediction, and whether that awaits its label."""
        self.lanes.moments(kinds, numbers, out, known)

    def run(
        self, kinds: Bytes, numbers: Integers, labels: Bytes, given: Floats, out: Floats
    ) -> None:
        """Run steps with the raw and shrunk probabilities of each, and write the predictions."""
        rows = zip(kinds.tolist(), numbers.tolist(), labels.tolist(), given.tolist(), strict=True)
        for row, (kind, number, label, (raw, *shrunk)) in enumerate(rows):
            if kind == PREDICT:
                out[row] = self.predict(raw, shrunk, number)
            elif kind == LEARN:
                self.learn(raw, shrunk, label, number)
            elif kind == EXPIRE:
                self.expire(number)
            else:
                msg = "nothing is removed"
                raise ValueError(msg)

    def losses(self, out: Floats) -> None:
        """Write the total log loss of each expert, then of the mixture, over `labels`."""
        out[:] = [product.loss() for product in self.products]

    def weights(self, out: Floats) -> None:
        """Write the mean weight of each expert over the lanes; before the first, the prior."""
        self.lanes.mean_weights(out)

    # Saving

    @property
    def experts(self) -> int:
        """Number of experts."""
        return len(self.lanes.prior)

    @property
    def lane_count(self) -> int:
        """Number of lanes: the most observations that ever awaited labels at once."""
        return self.lanes.most

    @property
    def lane_rows(self) -> int:
        """Number of lanes that `save` writes: the last are dropped where no label came."""
        return len(self.lanes.table)

    @property
    def awaiting_count(self) -> int:
        """Number of observations that await their labels."""
        return len(self.lanes.awaiting)

    @property
    def moment(self) -> int:
        """Number of predictions."""
        return self.lanes.moment

    @property
    def parameter_count(self) -> int:
        """Number of parameters that `save` writes."""
        return _PLATT + len(self.jumper.weights) + len(self.share.weights) + len(self.products)

    def save(  # noqa: PLR0913, PLR0917 - columns
        self,
        own: Floats,
        exponents: Integers,
        numbers: Integers,
        moments: Integers,
        weights: Floats,
        forecasts: Floats,
    ) -> None:
        """Write the state: parameters, and for each lane what awaits a label there."""
        platt = self.platt
        own[:] = [
            *(platt.slope, platt.level, platt.p00, platt.p01, platt.p11),
            *self.jumper.weights,
            *self.share.weights,
            *(one.number for one in self.products),
        ]
        exponents[:] = [one.exponent for one in self.products]
        self.lanes.save(numbers, moments, weights, forecasts)

    def load(  # noqa: PLR0913, PLR0917 - columns
        self,
        moment: int,
        labels: int,
        taught: int,
        most: int,
        own: Floats,
        exponents: Integers,
        numbers: Integers,
        moments: Integers,
        weights: Floats,
        forecasts: Floats,
    ) -> None:
        """Load what `save` wrote."""
        self.labels, self.taught = labels, taught
        rest = iter(own.tolist())
        platt = self.platt
        platt.slope, platt.level, platt.p00, platt.p01, platt.p11 = islice(rest, _PLATT)
        self.jumper.weights = [*islice(rest, len(self.jumper.weights))]
        self.share.weights = [*islice(rest, len(self.share.weights))]
        for product, exponent in zip(self.products, exponents.tolist(), strict=True):
            product.number, product.exponent = next(rest), exponent
        self.lanes.load(moment, most, numbers, moments, weights, forecasts)

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
            self._settle(found.lane, forecasts, label)
            self.lanes.release(number)
        self.taught += 1
        self.platt.learn(forecasts[0], label)
        self.jumper.learn(forecasts[0], label)
        self.share.learn(forecasts[:-1], label)

    def expire(self, number: int) -> None:
        """Drop the label of an observation; its lane is idle again."""
        if self.lanes.find(number) is not None:
            self.lanes.release(number)

    def _settle(self, lane: int, forecasts: list[float], label: int) -> None:
        served = mixed(self.lanes.weights(lane), forecasts)
        likelihoods = [p if label else 1.0 - p for p in [*forecasts, served]]
        for product, p in zip(self.products, likelihoods, strict=True):
            product.multiply(p)
        self.lanes.multiply(lane, likelihoods[:-1])
        self.labels += 1
