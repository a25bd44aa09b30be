"""Monitors of protected predictions: of probabilities by log loss, of distributions by CRPS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abers.backends import core
from abers.monitoring.measures import Measure, Number
from abers.monitoring.mixture_monitor import LANES, WEIGHT, LossWords, MixtureMonitor
from abers.serialization import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers._core import OutsideCount
    from abers.monitoring.scored_rows import ScoredRows

__all__ = ["DistributionProtectionMonitor", "ProtectionMonitor"]

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
        mixing="The CDF of the protected distribution is the mean of those of the experts",
    )
