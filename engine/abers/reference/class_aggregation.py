"""Protected mixture of vectors of class probabilities: the specification of the native core.

It is `Aggregation` with a vector in place of a probability. Experts are weighed by the probability
that each gave to the class that came true, so weights and lanes are the same.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.reference.aggregation import Product
from abers.reference.experts import FixedShare, mean
from abers.reference.lanes import Lanes

if TYPE_CHECKING:
    from abers.arrays import Bytes, Floats, Integers

__all__ = ["ClassAggregation"]


class ClassAggregation:
    """Mixture of raw class probabilities, shrunk calibrators, and fixed share over both.

    Experts are, in order: raw, the `shrunk` ones that the caller forecasts, and fixed share. The
    caller gives vectors of positive probabilities that sum to one.
    """

    def __init__(self, classes: int, shrunk: int, raw_weight: float = 0.25) -> None:
        rest = 1.0 - raw_weight
        prior = [raw_weight, *[rest / 2.0 / shrunk] * shrunk, rest / 2.0]
        self.classes = classes
        self.share = FixedShare(shrunk + 1)
        self.lanes = Lanes(prior, classes)
        self.products = [Product() for _ in range(len(prior) + 1)]  # of experts, of the mixture
        self.labels = 0  # of observations that held a lane
        self.taught = 0  # labels that the experts learned

    def moments(self, kinds: Bytes, numbers: Integers, out: Floats, known: Bytes) -> None:
        """Write the moments of steps, as `Lanes.moments`."""
        self.lanes.moments(kinds, numbers, out, known)

    def run(
        self, kinds: Bytes, numbers: Integers, labels: Integers, given: Floats, out: Floats
    ) -> None:
        """Run steps with the raw and shrunk vectors of each, and write the predictions."""
        rows = zip(kinds.tolist(), numbers.tolist(), labels.tolist(), given.tolist(), strict=True)
        for row, (kind, number, label, vectors) in enumerate(rows):
            if kind == PREDICT:
                out[row] = self.predict(vectors, number)
            elif kind == LEARN:
                self.learn(vectors, label, number)
            elif kind == EXPIRE:
                self.expire(number)
            else:
                msg = "nothing is removed"
                raise ValueError(msg)

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
            for product, p in zip(self.products, [*likelihoods, served], strict=True):
                product.multiply(p)
            self.lanes.multiply(found.lane, likelihoods)
            self.lanes.release(number)
            self.labels += 1
        self.taught += 1
        self.share.learn(likelihoods[:-1], 1)

    def expire(self, number: int) -> None:
        """Drop the label of an observation; its lane is idle again."""
        if self.lanes.find(number) is not None:
            self.lanes.release(number)

    def forecasts(self, given: list[list[float]]) -> list[float]:
        """Return the vectors of all experts, one after the other.

        Before the first label all are the raw vector.
        """
        if not self.taught:
            return given[0] * self.experts
        flat = [p for vector in given for p in vector]
        return flat + _blended(self.share.weights, flat, self.classes)

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
        """Number of lanes that `save` writes."""
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
        return len(self.share.weights) + len(self.products)

    def save(  # noqa: PLR0913, PLR0917 - columns
        self,
        own: Floats,
        exponents: Integers,
        numbers: Integers,
        moments: Integers,
        weights: Floats,
        forecasts: Floats,
    ) -> None:
        """Write the state, as `Aggregation.save`."""
        own[:] = [*self.share.weights, *(one.number for one in self.products)]
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
        self.share.weights = [*islice(rest, len(self.share.weights))]
        for product, exponent in zip(self.products, exponents.tolist(), strict=True):
            product.number, product.exponent = next(rest), exponent
        self.lanes.load(moment, most, numbers, moments, weights, forecasts)


def _blended(weights: list[float], vectors: list[float], classes: int) -> list[float]:
    """Return the mean by weight of vectors that stand one after the other."""
    return [mean(weights, vectors[label::classes]) for label in range(classes)]
