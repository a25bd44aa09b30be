"""What calibrators that answer with a predictive distribution share: labels, levels, quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from abers import validation
from abers.exceptions import ParameterError
from abers.regression.bounded_labels import BoundedCalibrator
from abers.regression.distribution import PredictiveDistribution
from abers.validation import shown

if TYPE_CHECKING:
    from abers.arrays import Floats, Integers

__all__ = ["NO_LEVELS", "DistributionCalibrator", "Quantiles", "require_range", "support_ends"]

NO_LEVELS = np.empty(0)
_FURTHEST = 1e290  # from 0: the sum of as many distances as there are labels is finite
_NARROWEST = 1e-290  # width of a range: losses divided by it are finite, and exact

S = TypeVar("S")  # a score


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
