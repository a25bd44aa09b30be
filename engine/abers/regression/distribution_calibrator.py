"""What calibrators that answer with a predictive distribution share: labels, levels, quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from abers import validation
from abers.arrays import EXPIRE, PREDICT, unmasked
from abers.calibration.sets import HeldCalibrator
from abers.exceptions import LabelError, ParameterError
from abers.mathematics import Many, One
from abers.regression.distribution import PredictiveDistribution
from abers.validation import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Bytes, Floats, Integers

__all__ = [
    "NO_LEVELS",
    "BoundedCalibrator",
    "DistributionCalibrator",
    "Quantiles",
    "require_range",
    "support_ends",
]

S = TypeVar("S")  # a score


class BoundedCalibrator(HeldCalibrator[S, float, One, Many], Generic[S, One, Many]):
    """A calibrator of labels between two ends, which may be infinite."""

    _ends: tuple[float, float]
    _ends_name: ClassVar[str]

    def _label(self, label: object) -> float:
        y = validation.real(label)
        if not self._ends[0] <= y <= self._ends[1]:
            raise LabelError(self._outside(y))
        return y

    def _labels(self, labels: ArrayLike, length: int) -> Floats:
        column = validation.reals(labels, length)
        outside = np.flatnonzero((column < self._ends[0]) | (column > self._ends[1]))
        if outside.size:
            msg = f"row {outside[0]}: {self._outside(float(column[outside[0]]))}"
            raise LabelError(msg)
        return column

    def _step_labels(self, labels: ArrayLike, kinds: Bytes) -> Floats:
        """Check the labels of a run; those of predictions and expiries are ignored."""
        given = unmasked(labels)
        column = np.array(given, dtype=None if np.asarray(given).dtype.kind in "fiub" else object)
        if column.shape == kinds.shape:
            column[(kinds == PREDICT) | (kinds == EXPIRE)] = np.clip(0.0, *self._ends)
        return self._labels(column, len(kinds))

    def _outside(self, y: float) -> str:
        name = self._ends_name
        return f"label {y!r} lies outside the {name} {self._ends}; widen the {name}"


NO_LEVELS = np.empty(0)
_FURTHEST = 1e290  # from 0: the sum of as many distances as there are labels is finite
_NARROWEST = 1e-290  # width of a range: losses divided by it are finite, and exact


class Quantiles(NamedTuple):
    """Quantiles of predictions: a row for each observation, a column for each level.

    Attributes
    ----------
    merged
        Those of the merged CDF.
    low
        Those of the upper CDF: no CDF in the band has a smaller one.
    high
        Those of the lower CDF: no CDF in the band has a larger one.

    Notes
    -----
    **Guarantee** of those of `abers.regression.IVAPR`, under its conditions: at each level q,
    P(label < low) <= q and P(label > high) <= 1 - q. So low at a / 2 and high at 1 - a / 2 cover
    the label with a probability of at least 1 - a. The merged ones carry none.
    """

    merged: Floats
    low: Floats
    high: Floats


class DistributionCalibrator(BoundedCalibrator[S, PredictiveDistribution, Quantiles], Generic[S]):
    """A calibrator with batches that take `levels` and return quantiles."""

    _ends_name: ClassVar[str] = "support"
    _own_columns = ("levels",)

    def _interleaved(self, extra: Any, rows: Integers) -> Any:
        return extra  # levels are not a column

    def _extra(self, columns: dict[str, Any], length: int) -> Floats:
        levels = columns.pop("levels", None)
        super()._extra(columns, length)
        return NO_LEVELS if levels is None else validation.level_list(levels)


def support_ends(support: tuple[float, float] | None) -> tuple[float, float]:
    """Check a support; None has infinite ends."""
    if support is None:
        return -np.inf, np.inf
    try:
        lo, hi = (float(end) for end in support)
    except (TypeError, ValueError, OverflowError):
        lo = hi = np.nan
    if not (np.isfinite(lo) and np.isfinite(hi) and lo <= hi):
        msg = f"support={shown(support)} is not a pair of finite ends in order; give (lo, hi)"
        raise ParameterError(msg)
    return lo + 0.0, hi + 0.0


def require_range(ends: tuple[float, float]) -> None:
    """Refuse a support that is no range, or so wide or narrow that sums or shares are infinite."""
    low, high = ends
    if max(-low, high) > _FURTHEST or high - low < _NARROWEST:
        msg = (
            f"support={ends} is not a declared range of labels; give support=(lowest, highest), at "
            f"least {_NARROWEST} apart and from {-_FURTHEST} to {_FURTHEST}"
        )
        raise ParameterError(msg)
