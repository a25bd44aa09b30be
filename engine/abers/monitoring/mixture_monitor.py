"""Monitor of the mixtures that make predictions: what they promise, and their weights.

Only the number of labels is part of the state. Weights and losses are those of the mixtures at the
moment.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from abers.monitoring.base import Figure, Monitor, consistency_bands
from abers.monitoring.measures import Measure, Number
from abers.monitoring.mixture import Expert
from abers.serialization import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers.arrays import Floats
    from abers.monitoring.base import BandMaker
    from abers.monitoring.mixture import Mixture
    from abers.monitoring.scored_rows import ScoredRows

__all__ = ["LANES", "WEIGHT", "LossWords", "MixtureMonitor", "experts", "experts_of"]

LANES = Measure(
    "lanes",
    "most predictions that waited together",
    "observations",
    "Largest number of observations that ever awaited their labels together.",
    brief="",
    chart="",
)
WEIGHT = Measure("expert_weight", "", "ratio", "Mean weight of a method over the lanes.")


class LossWords(NamedTuple):
    """Words for the loss by which the methods of a mixture are weighed.

    Attributes
    ----------
    loss, unit
        Name and unit of the loss, such as "log loss" and "nats".
    base, of_base
        The base in a column, and in a sentence, such as "raw" and "the raw probability".
    mixture
        What the mixture predicts, such as "the protected probability".
    mixing
        Sentence without an end: what the weights mix.
    """

    loss: str
    unit: str
    base: str
    of_base: str
    mixture: str
    mixing: str


class MixtureMonitor(Monitor):
    """What mixtures promise, and the weights of their methods.

    Parameters
    ----------
    labels
        Number of predictions scored.

    Attributes
    ----------
    mixtures
        Mixtures that make the predictions: one, of a total all, and none in a window.
    price, price_per_label, loss
        Measures of the bound in total and a label, and of the total loss of a method.
    words
        Words for the loss.
    """

    price: ClassVar[Measure]
    price_per_label: ClassVar[Measure]
    loss: ClassVar[Measure]
    words: ClassVar[LossWords]

    def __init__(self, labels: int = 0) -> None:
        self.labels = labels
        self.mixtures: list[Mixture] = []

    def watch(self, mixture: Mixture) -> None:
        """Read the weights and losses of the mixture that makes the predictions."""
        self.mixtures = [mixture]

    def update(self, scored: ScoredRows) -> None:
        """Add labelled predictions."""
        self.labels += len(scored)

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Add up monitors of different predictions, and their mixtures."""
        whole = cls(*map(sum, zip(*(one.state() for one in many), strict=True)))
        whole.mixtures = [mixture for one in many for mixture in one.mixtures]
        return whole

    def summary(self) -> list[Number]:
        """Return the price and the methods, if there is a mixture."""
        if not self.mixtures:
            return []
        price = math.fsum(one.price for one in self.mixtures)
        a_label = price / self.labels if self.labels else float("nan")
        found = [
            Number(LANES, sum(one.lanes for one in self.mixtures)),
            Number(self.price, price),
            Number(self.price_per_label, a_label),
        ]
        each = self.experts()
        for name, one in each.items():
            if one.weight is not None:
                found.append(Number(WEIGHT, one.weight, labels={"expert": name}))
        for name, one in each.items():
            found.append(Number(self.loss, one.loss, labels={"expert": name}))
        return found

    def experts(self) -> dict[str, Expert]:
        """Return the methods of all mixtures by name, as `experts` finds them in a summary."""
        return experts_of(*self.expert_rows()) if self.mixtures else {}

    def expert_rows(self) -> tuple[list[str], Floats]:
        """Return the names of the methods of all mixtures, and a row for each.

        It has the mean weight over all lanes, which is NaN for the mixture itself, and the loss.
        """
        lanes = [max(one.lanes, 1) for one in self.mixtures]
        both = zip(self.mixtures, lanes, strict=True)
        summed = _added([one.expert_table() * (count, 1.0) for one, count in both])
        return [*self.mixtures[0].experts, "protected"], summed / (sum(lanes), 1.0)

    def figures(self, bands: BandMaker = consistency_bands) -> list[Figure]:
        """Return the figure of the weights now."""
        del bands
        found = self.experts() if self.labels else {}
        if not found:
            return []
        weights = {name: one.weight for name, one in found.items() if one.weight is not None}
        words, base = self.words, next(iter(found.values()))
        return [
            Figure(
                "experts",
                "Weights of the methods",
                "bars",
                {"bars": weights, "x_name": "weight", "y_name": "expert"},
                f"{words.mixing} by these weights. A method gains weight while its {words.loss} "
                f"is smaller than that of the others. The table has the total {words.loss} "
                f"({words.unit}).",
                ["expert", "weight", words.loss, f"above {words.base}"],
                [[name, one.weight, one.loss, one.loss - base.loss] for name, one in found.items()],
            )
        ]

    def state(self) -> tuple[Any, ...]:
        """Return the number of labels."""
        return (self.labels,)

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the monitor with a number of labels."""
        (labels,) = state
        return cls(count(labels, "labels"))


def experts_of(names: Sequence[str], rows: Floats) -> dict[str, Expert]:
    """Return by name the methods of `MixtureMonitor.expert_rows`."""
    return {
        name: Expert(None if math.isnan(weight) else weight, loss)
        for name, (weight, loss) in zip(names, rows.tolist(), strict=True)
    }


def _added(tables: Sequence[Floats]) -> Floats:
    """Return the sum of tables of one shape, each number rounded once."""
    if len(tables) == 1:
        return tables[0]
    cells = zip(*(one.ravel().tolist() for one in tables), strict=True)
    return np.array([*map(math.fsum, cells)]).reshape(tables[0].shape)


def experts(numbers: Iterable[Number]) -> dict[str, Expert]:
    """Return the methods among the numbers of a summary: the base first, "protected" last.

    Parameters
    ----------
    numbers
        Such as `Monitor.summary` returns.

    Returns
    -------
    dict of str to Expert
        By name; "protected" is the mixture. Empty if no mixture made the predictions.
    """
    weights: dict[str, float] = {}
    losses: dict[str, float] = {}
    for one in numbers:
        if "expert" in one.labels:
            (weights if one.measure == WEIGHT else losses)[one.labels["expert"]] = one.value
    return {name: Expert(weights.get(name), loss) for name, loss in losses.items()}
