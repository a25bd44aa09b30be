"""What mixtures of experts in lanes share: the specification of the native core."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from tests.oracles.elementary import logarithm
from tests.oracles.experts import FixedShare
from tests.oracles.lanes import Lanes

from abers.arrays import EXPIRE, LEARN, PREDICT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from abers.arrays import Bytes, Floats, Integers

__all__ = ["BaseAggregation", "ExpertLanes", "ProbabilityLanes", "Product"]

_SMALL, _SHIFT = 2.0**-512, 512
_LN2 = float.fromhex("0x1.62e42fefa39efp-1")


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


class ExpertLanes:
    """Experts that the lane of an observation weighs."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.labels = 0  # of observations that held a lane

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
        """Number of observations that ever kept a lane."""
        return self.lanes.moment

    def expire(self, number: int) -> None:
        """Drop the label of an observation; its lane is idle again."""
        if self.lanes.find(number) is not None:
            self.lanes.release(number)

    def weights(self, out: Floats) -> None:
        """Write the mean weight of each expert over the lanes; before the first, the prior."""
        self.lanes.mean_weights(out)


class ProbabilityLanes(ExpertLanes):
    """Lanes that weigh experts by the probabilities that they gave to the labels.

    The first expert is raw, the last ones share weights among those before.
    """

    def __init__(self, experts: int, shares: int, raw_weight: float, kept: int) -> None:
        half = (1.0 - raw_weight) / 2.0
        others = experts - 1 - shares
        prior = [raw_weight, *[half / others] * others, *[half / shares] * shares]
        super().__init__(Lanes(prior, kept))
        self.taught = 0  # labels that the experts learned
        self.products = [Product() for _ in range(experts + 1)]  # of experts, of the mixture

    def losses(self, out: Floats) -> None:
        """Write the total log loss of each expert, then of the mixture, over `labels`."""
        out[:] = [product.loss() for product in self.products]

    def settle(self, number: int, lane: int, likelihoods: list[float]) -> None:
        """Weigh a lane by the probabilities of a label: of the experts, then of the mixture."""
        for product, p in zip(self.products, likelihoods, strict=True):
            product.multiply(p)
        self.lanes.multiply(lane, likelihoods[:-1])
        self.lanes.release(number)
        self.labels += 1

    # Saving

    @property
    def parameter_count(self) -> int:
        """Number of parameters that `save` writes."""
        return len(self.parameters())

    def parameters(self) -> list[float]:
        """Return the state of the experts, and the products of their probabilities."""
        raise NotImplementedError

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
        own[:] = self.parameters()
        exponents[:] = [one.exponent for one in self.products]
        self.lanes.save(numbers, moments, weights, forecasts)


class BaseAggregation(ProbabilityLanes):
    """Mixture of probabilities: raw, others, and fixed share over all of these."""

    def __init__(self, experts: int, raw_weight: float, width: int = 1) -> None:
        super().__init__(experts, 1, raw_weight, experts * width)
        self.share = FixedShare(experts - 1)

    def moments(self, kinds: Bytes, numbers: Integers, out: Floats, known: Bytes) -> None:
        """Write, for each step, the moment of its prediction, and whether that awaits its label."""
        self.lanes.moments(kinds, numbers, out, known)

    def _steps(
        self,
        kinds: Bytes,
        numbers: Integers,
        predict: Callable[[int], None],
        learn: Callable[[int], None],
    ) -> None:
        """Run steps, each by one of the calls, which get its row."""
        calls = {PREDICT: predict, LEARN: learn}
        for row, (kind, number) in enumerate(zip(kinds.tolist(), numbers.tolist(), strict=True)):
            if kind == EXPIRE:
                self.expire(number)
            elif kind in calls:
                calls[kind](row)
            else:
                msg = "nothing is removed"
                raise ValueError(msg)

    # Saving

    def parameters(self) -> list[float]:
        """Return the state of the experts, and the products of their probabilities."""
        return [*self._own(), *self.share.weights, *(one.number for one in self.products)]

    def _own(self) -> list[float]:
        """Return the parameters of the experts before fixed share."""
        return []

    def _become(self, own: Iterator[float]) -> None:
        """Take what `_own` returned off an iterator."""

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
        self._become(rest)
        self.share.weights = [*islice(rest, len(self.share.weights))]
        for product, exponent in zip(self.products, exponents.tolist(), strict=True):
            product.number, product.exponent = next(rest), exponent
        self.lanes.load(moment, most, numbers, moments, weights, forecasts)
