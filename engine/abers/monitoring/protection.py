"""Monitor of protected probabilities: how often they leave the interval, and who is trusted.

What is counted is part of the state. Weights and losses are those of the mixtures at the moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abers.monitoring.base import Figure, Monitor, consistency_bands
from abers.monitoring.measures import Measure, Number
from abers.monitoring.mixture import Expert
from abers.serialization import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers.monitoring.base import BandMaker
    from abers.monitoring.mixture import Mixture
    from abers.monitoring.scored_rows import ScoredRows

__all__ = ["ProtectionMonitor", "experts"]

_OUTSIDE = Measure(
    "outside_interval",
    "p outside its interval",
    "ratio",
    "Share of predictions with a p outside its interval, since other experts are trusted.",
    brief="",
    chart="share of p outside its interval",
    gauge="",
)
_LANES = Measure(
    "lanes",
    "most labels awaited at once",
    "observations",
    "Largest number of observations that ever awaited their labels together.",
    brief="",
    chart="",
)
_PRICE = Measure(
    "price_nats",
    "bound on the loss above raw, nats in all",
    "nats",
    "Bound on the total log loss in excess of that of the raw probability.",
    brief="",
    chart="",
)
_PRICE_A_LABEL = Measure(
    "price_per_label",
    "bound on the loss above raw, nats a label",
    "nats",
    "Bound on the mean log loss in excess of that of the raw probability.",
    brief="",
    chart="",
    gauge="",
)
_WEIGHT = Measure("expert_weight", "", "ratio", "Mean weight of an expert over the lanes.")
_LOSS = Measure(
    "expert_log_loss_nats", "", "nats", "Total log loss of an expert, and of the mixture."
)
_RAW = "raw"


class ProtectionMonitor(Monitor):
    """How often protected probabilities leave the interval, and who is trusted.

    Parameters
    ----------
    labels, outside
        Number of predictions scored, and of those outside their intervals.

    Attributes
    ----------
    mixtures
        Mixtures that make the predictions: one, of a total all, and none in a window.

    Notes
    -----
    Without a mixture, which `watch` adds, the summary has only the share outside the interval.

    Examples
    --------
    >>> from abers import ProtectedVennAbers
    >>> from abers.monitoring import ScoredRows
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

    measures = (_OUTSIDE, _LANES, _PRICE, _PRICE_A_LABEL, _WEIGHT, _LOSS)

    def __init__(self, labels: int = 0, outside: int = 0) -> None:
        self.labels, self.outside = labels, outside
        self.mixtures: list[Mixture] = []

    def watch(self, mixture: Mixture) -> None:
        """Read the weights and losses of the mixture that makes the predictions."""
        self.mixtures = [mixture]

    def update(self, scored: ScoredRows) -> None:
        """Add predictions whose labels came."""
        self.labels += len(scored)
        if scored.outside is not None:
            self.outside += int(np.count_nonzero(scored.outside))

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Add up monitors of different predictions, and their mixtures."""
        whole = cls(sum(one.labels for one in many), sum(one.outside for one in many))
        whole.mixtures = [mixture for one in many for mixture in one.mixtures]
        return whole

    def summary(self) -> list[Number]:
        """Return the share outside, and if there is a mixture, its price and experts."""
        share = self.outside / self.labels if self.labels else float("nan")
        found = [Number(_OUTSIDE, share)]
        if not self.mixtures:
            return found
        price = sum(one.price for one in self.mixtures)
        a_label = price / self.labels if self.labels else float("nan")
        found += [
            Number(_LANES, sum(one.lanes for one in self.mixtures)),
            Number(_PRICE, price),
            Number(_PRICE_A_LABEL, a_label),
        ]
        for name, weight in self._weights().items():
            found.append(Number(_WEIGHT, weight, labels={"expert": name}))
        for name, loss in self._losses().items():
            found.append(Number(_LOSS, loss, labels={"expert": name}))
        return found

    def _weights(self) -> dict[str, float]:
        """Return the mean weights over all lanes of all mixtures."""
        shares = [(max(one.lanes, 1), one.expert_weights()) for one in self.mixtures]
        lanes = sum(count for count, _ in shares)
        return {
            name: sum(count * weights[name] for count, weights in shares) / lanes
            for name in shares[0][1]
        }

    def _losses(self) -> dict[str, float]:
        losses = [one.expert_losses() for one in self.mixtures]
        return {name: sum(one[name] for one in losses) for name in losses[0]}

    def figures(self, bands: BandMaker = consistency_bands) -> list[Figure]:
        """Return the figure of the weights now."""
        del bands
        found = experts(self.summary()) if self.labels else {}
        if not found:
            return []
        weights = {name: one.weight for name, one in found.items() if one.weight is not None}
        raw = found[_RAW].loss
        return [
            Figure(
                "experts",
                "Trusted experts",
                "bars",
                {"bars": weights, "x_name": "weight", "y_name": "expert"},
                "The protected probability p is the mean of the experts' probabilities by these "
                "weights. An expert gains weight while its log loss is smaller than that of the "
                "others. The table has total log losses in nats.",
                ["expert", "weight", "log loss", "above raw"],
                [[name, one.weight, one.loss, one.loss - raw] for name, one in found.items()],
            )
        ]

    def state(self) -> tuple[Any, ...]:
        """Return both counts."""
        return (self.labels, self.outside)

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the monitor with both counts."""
        labels, outside = state
        return cls(count(labels, "labels"), count(outside, "outside", labels))


def experts(numbers: Iterable[Number]) -> dict[str, Expert]:
    """Return the experts among the numbers of a summary, by name; last "protected", the mixture.

    Parameters
    ----------
    numbers
        Such as `Monitor.summary` returns.

    Returns
    -------
    dict of str to Expert
        Empty if no mixture made the predictions.
    """
    weights: dict[str, float] = {}
    losses: dict[str, float] = {}
    for one in numbers:
        if one.measure == _WEIGHT:
            weights[one.labels["expert"]] = one.value
        elif one.measure == _LOSS:
            losses[one.labels["expert"]] = one.value
    return {name: Expert(weights.get(name), loss) for name, loss in losses.items()}
