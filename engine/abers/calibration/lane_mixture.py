"""What calibrators share that are mixtures of experts in lanes."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.exceptions import ParameterError
from abers.validation import shown

if TYPE_CHECKING:
    from abers._core import ClassMixture, DistributionPool, MethodMixture
    from abers.arrays import Floats

__all__ = ["LaneMixture", "ProbabilityMixture", "first_weight"]

_DOUBLE = 8  # bytes


def first_weight(value: object, name: str) -> float:
    """Return the weight of an expert at first; raise a ParameterError unless in (0, 1)."""
    weight = float(value) if isinstance(value, Real) else math.nan
    if not 0.0 < weight < 1.0:
        msg = f"{name}={shown(value)} must be a number between 0 and 1, without the ends"
        raise ParameterError(msg)
    return weight


class LaneMixture:
    """A mixin of calibrators: experts with a weight in each lane."""

    _mixture: MethodMixture | ClassMixture | DistributionPool
    _lock: Any

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the experts, in order."""
        raise NotImplementedError

    @property
    def lanes(self) -> int:
        """Largest number of observations that ever awaited their labels together."""
        with self._lock:
            return int(self._mixture.lane_count)

    @property
    def awaiting(self) -> int:
        """Number of observations that await their labels."""
        with self._lock:
            return int(self._mixture.awaiting_count)

    @property
    def awaiting_bytes(self) -> int:
        """Bytes of the weights and of what an observation keeps that awaits its label."""
        return _DOUBLE * (len(self.experts) + self._mixture.kept_size)

    def expert_table(self) -> Floats:
        """Return mean weight and total loss of each expert, and of the mixture, a row each.

        Returns
        -------
        numpy.ndarray
            Rows in the order of `experts`; the last is the mixture, and its weight is NaN.
        """
        count = len(self.experts)
        rows, column = np.full((count + 1, 2), np.nan), np.empty(count + 1)
        with self._lock:
            self._mixture.weights(column[:count])
            rows[:count, 0] = column[:count]
            self._mixture.losses(column)
        rows[:, 1] = column + 0.0  # -0.0 becomes 0.0
        return rows

    def expert_weights(self) -> dict[str, float]:
        """Return the mean weight of each expert over the lanes.

        Returns
        -------
        dict of str to float
            Weights that sum to one, by the names of `experts`.
        """
        return dict(zip(self.experts, self.expert_table()[:-1, 0].tolist(), strict=True))

    def _totals(self) -> dict[str, float]:
        """Return the total loss of each expert, and of the mixture as "protected"."""
        names = (*self.experts, "protected")
        return dict(zip(names, self.expert_table()[:, 1].tolist(), strict=True))


class ProbabilityMixture(LaneMixture):
    """A mixin of calibrators: experts with weights that follow their log losses."""

    _raw_weight: float

    @property
    def raw_weight(self) -> float:
        """Weight of the raw probabilities at first."""
        return self._raw_weight

    @property
    def price(self) -> float:
        """Bound on the log loss in excess of that of the raw probabilities, in nats, in total."""
        return self.lanes * -math.log(self._raw_weight)

    def expert_losses(self) -> dict[str, float]:
        """Return the total log loss of each expert, and of the mixture as "protected".

        Returns
        -------
        dict of str to float
            Losses in nats over the labels of awaited observations, and of those without numbers.
        """
        return self._totals()
