"""Experts of a protected distribution: what they forecast, and what they learn.

The base is a list of quantiles, or a number plus its last residuals. The others are its quantile
calibration, and inductive Venn-Abers predictions of all labels and of the last ones, drawn to the
base.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sortedcontainers import SortedList

from abers.arrays import ONE
from abers.backends import core
from abers.forgetting import Forgetting
from abers.regression import expert_forecasts, predictive_sets
from abers.serialization import MAX_COUNT, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers._core import PredictiveSet
    from abers.arrays import Floats

__all__ = ["EXPERTS", "PIECES", "DistributionExperts"]

EXPERTS = ("base", "recalibrated", "ivapr", "ivapr_1000")
"""Names of the experts, in order."""
PIECES = 3
"""Number of byte strings of saved experts: counts of PIT values, and the two sets."""

_LARGEST = np.finfo(np.float64).max
_WINDOW = 1000  # labels
_NO_GRID = np.empty(0)


class DistributionExperts:
    """Forecasts of all experts, of `members` quantiles each, within a support.

    Parameters
    ----------
    support
        The ends between which all labels lie.
    members
        Number of quantiles.
    pointwise
        Whether a score is a number, not a list of quantiles.
    """

    def __init__(self, support: tuple[float, float], members: int, *, pointwise: bool) -> None:
        self._support, self._members, self._pointwise = support, members, pointwise
        self.every: PredictiveSet = core.PredictiveSet()
        self._recent: PredictiveSet = core.PredictiveSet(_WINDOW)
        self._counts = np.zeros(members, np.int64)  # of PIT values, in bins of equal width
        self._residuals: SortedList[float] = SortedList()  # of the last labels
        self._arrived: list[float] = []  # the same, by arrival

    def forecasts(self, score: Any) -> Floats:
        """Return the forecasts of all experts, a row each."""
        if self._pointwise:
            at = self._clipped(score)
            base = self._clipped(expert_forecasts.moved(at, self._residuals, self._members))
        else:
            base = self._clipped(np.array(score))
        point = self._point(score)
        bands = (one.predict(point)[2] for one in (self.every, self._recent))
        rows = [
            base,
            expert_forecasts.recalibrated(base, self._counts),
            *(expert_forecasts.shrunk(band, base) for band in bands),
        ]
        return np.asarray(self._clipped(np.array(rows)))

    def learn(self, score: Any, label: float, base: Floats) -> bool:
        """Learn a label with the forecast of its base; return False if a set is full."""
        point = self._point(score)
        if not self.every.learn(point, label, ONE, math.nan):
            return False
        self._recent.learn(point, label, ONE, math.nan)
        level = expert_forecasts.pit(base, label)
        self._counts[min(int(level * self._members), self._members - 1)] += 1
        if self._pointwise:
            residual = label - float(self._clipped(score))
            self._residuals.add(residual)
            self._arrived.append(residual)
            if len(self._arrived) > _WINDOW:
                self._residuals.remove(self._arrived.pop(0))
        return True

    def _point(self, score: Any) -> float:
        """Return the score of the Venn-Abers experts: of quantiles, their mean."""
        if self._pointwise:
            return float(score)
        with np.errstate(over="ignore"):  # the sum of the largest numbers is rounded up
            mean = np.cumsum(np.array(score) / self._members)[-1]
        return float(np.clip(mean, -_LARGEST, _LARGEST)) + 0.0  # -0.0 becomes 0.0

    def _clipped(self, values: Any) -> Any:
        return np.clip(values, *self._support) + 0.0  # -0.0 becomes 0.0

    # Saving

    def dump(self) -> list[bytes]:
        """Return the state as byte strings."""
        held = (self.every, self._recent)
        saved = [predictive_sets.dump(one, self._support, _NO_GRID) for one in held]
        return [self._counts.astype("<i8").tobytes(), *saved]

    def load(self, pieces: Sequence[bytes]) -> None:
        """Load what `dump` returned; raise a ValueError for other bytes."""
        counted, *saved = pieces
        found = [predictive_sets.load(piece) for piece in saved]
        require(all((one.lo, one.hi) == self._support for _, one, _ in found), "support")
        self.every, self._recent = (one for one, *_ in found)
        rules = [str(Forgetting.of(one)) for one in (self.every, self._recent)]
        require(rules == ["", str(Forgetting(window=_WINDOW))], "rules")
        size, recent = int(self.every.size), int(self._recent.size)
        require(recent == min(size, _WINDOW) and size <= MAX_COUNT, "sizes")
        self._counts = np.frombuffer(counted, "<i8").astype(np.int64)
        sound = len(self._counts) == self._members and bool((self._counts >= 0).all())
        require(sound and int(self._counts.sum()) == size, "counts")
        if self._pointwise:  # residuals are those of the labels that the window holds
            scores, labels, *_ = predictive_sets.rows(self._recent)
            self._arrived = (labels - self._clipped(scores)).tolist()
            self._residuals = SortedList(self._arrived)
