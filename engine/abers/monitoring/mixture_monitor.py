"""Monitors of the mixtures that make predictions: what they promise, weights and losses.

Only the number of labels is part of the state. Weights and losses are those of the mixtures at the
moment.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from abers.backends import core
from abers.monitoring.base import Figure, Monitor, consistency_bands
from abers.monitoring.measures import Expert, Measure, Number
from abers.serialization import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers._core import OutsideCount
    from abers.arrays import Floats
    from abers.monitoring.base import BandMaker
    from abers.monitoring.measures import Mixture, ScoredRows

__all__ = [
    "LANES",
    "WEIGHT",
    "DistributionProtectionMonitor",
    "LossWords",
    "MixtureMonitor",
    "ProtectionMonitor",
    "experts",
    "experts_of",
]

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


_OUTSIDE = Measure(
    "outside_interval",
    "p outside its interval",
    "ratio",
    "Share of predictions with a p outside its interval, as other methods have weight.",
    brief="",
    chart="share of p outside its interval",
    gauge="",
)
_PRICE_NATS = Measure(
    "price_nats",
    "worst case against raw, nats in total",
    "nats",
    "Bound on the total log loss in excess of that of the raw probability.",
    brief="",
    chart="",
)
_PRICE_PER_LABEL = Measure(
    "price_per_label",
    "worst case against raw, nats a label",
    "nats",
    "Bound on the mean log loss in excess of that of the raw probability.",
    brief="",
    chart="",
    gauge="",
)
_LOG_LOSS = Measure(
    "expert_log_loss_nats", "", "nats", "Total log loss of a method, and of the mixture."
)
_UNIT = "unit of the label"
_PRICE_CRPS = Measure(
    "price_crps",
    "worst case against the base, in total",
    _UNIT,
    "Bound on the total CRPS in excess of that of the base.",
    brief="",
    chart="",
)
_PRICE_CRPS_PER_LABEL = Measure(
    "price_crps_per_label",
    "worst case against the base, a label",
    _UNIT,
    "Bound on the mean CRPS in excess of that of the base.",
    brief="",
    chart="",
    gauge="",
)
_CRPS = Measure("expert_crps", "", _UNIT, "Total CRPS of a method, and of the mixture.")


class ProtectionMonitor(MixtureMonitor):
    """How often protected probabilities leave the interval, and the weights of the methods.

    Parameters
    ----------
    labels, outside
        Number of predictions scored, and of those outside their intervals.

    Notes
    -----
    Without a mixture, which `watch` adds, the summary has only the share outside the interval.

    Examples
    --------
    >>> from abers import ProtectedVennAbers
    >>> from abers.monitoring import ScoredRows, experts
    >>> monitor, calibrator = ProtectionMonitor(), ProtectedVennAbers()
    >>> monitor.watch(calibrator)
    >>> p = calibrator.predict_one(0.9, number=0)
    >>> calibrator.learn_one(0.9, 1, number=0)
    >>> outside = np.array([not p.p0 <= p.probability <= p.p1])
    >>> monitor.update(ScoredRows(np.array([1.0]), outside=outside))
    >>> [(one.name, round(one.value, 2)) for one in monitor.summary()[:4]]
    [('outside_interval', 0.0), ('lanes', 1), ('price_nats', 1.39), ('price_per_label', 1.39)]
    >>> round(experts(monitor.summary())["raw"].loss, 3)
    0.105
    """

    name = "protection"
    price, price_per_label, loss = _PRICE_NATS, _PRICE_PER_LABEL, _LOG_LOSS
    measures = (_OUTSIDE, LANES, price, price_per_label, WEIGHT, loss)
    words = LossWords(
        loss="log loss",
        unit="nats",
        base="raw",
        of_base="the raw probability",
        mixture="the protected probability",
        mixing="The protected probability p is the mean of the methods' probabilities",
    )

    def __init__(self, labels: int = 0, outside: int = 0) -> None:
        self._core = core.OutsideCount()
        self._core.outside = outside
        super().__init__(labels)

    @property
    def core(self) -> OutsideCount:
        """The counts in the core."""
        counts: OutsideCount = self._core
        return counts

    @property
    def outside(self) -> int:
        """Number of predictions outside their intervals."""
        return int(self._core.outside)

    @property
    def labels(self) -> int:
        """Number of predictions scored."""
        return int(self._core.labels)

    @labels.setter
    def labels(self, labels: int) -> None:
        self._core.labels = labels

    def update(self, scored: ScoredRows) -> None:
        """Add labelled predictions."""
        super().update(scored)
        if scored.outside is not None:
            self._core.outside += int(np.count_nonzero(scored.outside))

    def summary(self) -> list[Number]:
        """Return the share outside, and if there is a mixture, its price and methods."""
        share = self.outside / self.labels if self.labels else float("nan")
        return [Number(_OUTSIDE, share), *super().summary()]

    def state(self) -> tuple[Any, ...]:
        """Return both counts."""
        return (self.labels, self.outside)

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the monitor with both counts."""
        labels, outside = state
        return cls(count(labels, "labels"), count(outside, "outside", labels))


class DistributionProtectionMonitor(MixtureMonitor):
    """What a protected distribution may lose to its base, and the weights of the methods.

    Parameters
    ----------
    labels
        Number of predictions scored.

    Examples
    --------
    >>> from abers.monitoring import ScoredRows, experts
    >>> from abers.regression import ProtectedIVAPR
    >>> monitor, calibrator = DistributionProtectionMonitor(), ProtectedIVAPR((0.0, 10.0))
    >>> monitor.watch(calibrator)
    >>> predicted = calibrator.predict_one(4.0, number=0)
    >>> calibrator.learn_one(4.0, 5.0, number=0)
    >>> monitor.update(ScoredRows(np.array([5.0])))
    >>> [(one.name, round(one.value, 2)) for one in monitor.summary()[:3]]
    [('lanes', 1), ('price_crps', 13.86), ('price_crps_per_label', 13.86)]
    >>> experts(monitor.summary())["base"].loss
    1.0
    """

    name = "distribution_protection"
    price, price_per_label, loss = _PRICE_CRPS, _PRICE_CRPS_PER_LABEL, _CRPS
    measures = (LANES, price, price_per_label, WEIGHT, loss)
    words = LossWords(
        loss="CRPS",
        unit=_UNIT,
        base="base",
        of_base="the base",
        mixture="the protected distribution",
        mixing="The CDF of the protected distribution is the mean of those of the methods",
    )
