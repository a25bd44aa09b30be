"""What mixtures of experts in lanes share: the specification of the native core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracles.elementary import logarithm
from tests.oracles.lanes import Lanes

if TYPE_CHECKING:
    from abers.arrays import Floats, Integers

__all__ = ["ExpertLanes", "ProbabilityLanes", "Product"]

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
    def kept_size(self) -> int:
        """How many numbers an observation keeps."""
        return self.lanes.kept_size

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
