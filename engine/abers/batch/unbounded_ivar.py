"""Inductive Venn-Abers regression without bounds: an interval for the mean of any label.

A mean set of the chosen backend does the mathematics.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from abers import validation
from abers.arrays import packed, parsed
from abers.backends import core
from abers.base import Capabilities
from abers.calibration import venn_abers
from abers.exceptions import InputError, LabelError, ParameterError
from abers.mathematics import Forgetting
from abers.regression.distribution_calibrator import BoundedCalibrator
from abers.serialization import MAX_COUNT, require
from abers.validation import shown

if TYPE_CHECKING:
    from abers._core import MeanSet
    from abers.arrays import Floats, Integers
    from abers.mathematics import Steps

__all__ = ["UnboundedIVAR", "UnboundedMean", "UnboundedMeans"]

_HEADER_STRUCT = struct.Struct("<QdQdQ")
_FULL = 2.0**59  # units, beyond which a batch might be refused half-way
_GREATEST_M = 1 << 31

T = TypeVar("T", float, "Floats")


class _Ends(NamedTuple, Generic[T]):
    low: T
    high: T
    lowest: T
    highest: T

    @property
    def width(self) -> T:
        """The uncertainty about the mean: `high` - `low`."""
        return self.high - self.low


class UnboundedMean(_Ends[float]):
    """An interval for the mean of a label, closed at both ends.

    Attributes
    ----------
    low, high
        The ends, in the unit of the label; infinite before 2m labels came.
    lowest, highest
        The labels that the query had for `low` and for `high`.
    """

    __slots__ = ()

    @property
    def merged(self) -> float:
        """The mean between the ends that the paper merges from them; NaN if they are infinite."""
        return float(_merged(*(np.array([end]) for end in self))[0])


class UnboundedMeans(_Ends["Floats"]):
    """Intervals for the means of many labels, as `UnboundedMean` with arrays of shape (n,)."""

    __slots__ = ()

    @property
    def merged(self) -> Floats:
        """As of `UnboundedMean`."""
        return _merged(*self)


class UnboundedIVAR(BoundedCalibrator[float, UnboundedMean, UnboundedMeans]):
    """Turn the scores of any regression model into intervals for the mean, without known bounds.

    As `IVAR`, but the extreme labels of the query are labels that came: the m-th smallest and the
    m-th largest. The m largest and the m smallest labels are clipped to their neighbours.

    Parameters
    ----------
    m
        How many labels at either end may count for less than they are. The interval is wider for a
        smaller one, and the clipped label differs more often from the label for a greater one.
    resolution
        Labels are rounded to multiples of it; a power of two rounds nothing else.
    window, max_age
        How to forget old observations, as in `abers.VennAbers`. At most one of them may be given.

    Raises
    ------
    ParameterError
        If an option is invalid, or both `window` and `max_age` are given.

    Notes
    -----
    **Guarantee.** With a scorer fixed before the calibration data and exchangeable observations,
    the interval contains a number V that is perfectly calibrated for the clipped label Y': the mean
    of Y' given V is V. Y' is the label, but for a probability of at most 2m / (k + 1), where k is
    the number of labels kept. It holds with a `window` too. It does not hold with a scorer that
    keeps learning, or under drift. The interval is not a confidence interval: the error of its
    middle may be larger than its width.

    **Few labels.** The interval has no limits while fewer than 2m labels are kept.

    **Ties** in score and label are pooled, so `low` is never above `high`.

    **Rounding.** A label moves by at most half a resolution, and so does an end. All sums are
    exact. The number of labels times the largest of them, in resolutions, may be 2**60 at most; a
    label beyond is refused.

    **Times** and **threads** are as in `abers.VennAbers`. An event takes a few microseconds for any
    number of observations, more with a large m.

    References
    ----------
    Petej & Vovk (2026), arXiv 2605.06646.

    Examples
    --------
    >>> from abers.batch import UnboundedIVAR
    >>> calibrator = UnboundedIVAR()
    >>> calibrator.learn_many([1.0, 2.0, 3.0, 4.0], [1.5, 0.5, 4.0, 3.0])
    >>> found = calibrator.predict_one(3.0)
    >>> round(found.low, 3), round(found.merged, 3), round(found.high, 3)
    (1.75, 2.154, 3.667)
    """

    capabilities = Capabilities(
        task="regression", answer="mean", weights=False, forgetting=("window", "max_age")
    )
    _magic: ClassVar[bytes] = b"abersIU\x01"
    _ends_name: ClassVar[str] = "bounds"
    _refusal: ClassVar[type[InputError]] = LabelError

    def __init__(
        self,
        m: int = 1,
        resolution: float = 2.0**-20,
        window: int | None = None,
        max_age: float | None = None,
    ) -> None:
        super().__init__(window, max_age)
        least = _count(m)
        self._hold(least, _resolution(resolution))

    def _hold(self, m: int, resolution: float) -> None:
        rule = self._forgetting
        self._ends = -math.inf, math.inf
        self._held: MeanSet = core.MeanSet(m, resolution, rule.window or 0, rule.max_age or 0.0)

    @property
    def m(self) -> int:
        """Number of labels that are clipped at either end."""
        return int(self._held.m)

    @property
    def resolution(self) -> float:
        """What labels are rounded to multiples of."""
        return float(self._held.resolution)

    def _options(self) -> list[str]:
        return [f"m={self.m}", f"resolution={self.resolution!r}", *super()._options()]

    # The core answers plain calls, as those of `abers.VennAbers`.

    @venn_abers.predicts(UnboundedMean)
    def predict_one(
        self,
        score: float,
        time: float | None = None,
        weight: float = 1.0,
        *,
        number: float | None = None,
    ) -> UnboundedMean:
        """Predict for one score, as all calibrators do: `abers.base.Calibrator.predict_one`."""
        return super().predict_one(score, time, weight, number=number)

    @venn_abers.learns
    def learn_one(
        self,
        score: float,
        label: float,
        *,
        weight: float = 1.0,
        time: float | None = None,
        number: float | None = None,
    ) -> None:
        """Learn one observation, as all calibrators do: `abers.base.Calibrator.learn_one`."""
        super().learn_one(score, label, weight=weight, time=time, number=number)

    def _predict(self, score: float, weight: int, time: float, number: int) -> UnboundedMean:
        return UnboundedMean(*self._held.predict(score, time))

    def _learn(self, score: float, label: float, weight: int, time: float, number: int) -> bool:
        return self._held.learn(score, label, time)

    def _remove(self, score: float, label: float, weight: int) -> bool:
        return self._held.remove(score, label)

    def _take(self, steps: Steps, held: Integers | None) -> tuple[UnboundedMeans, int]:
        table = np.full((4, len(steps.kinds)), np.nan)
        done = self._held.run(*steps[:3], steps.times, table, held)
        return UnboundedMeans(*table), done

    def _must_copy(self, steps: Steps) -> bool:
        furthest = np.abs(steps.labels).max(initial=0.0) / self.resolution
        most = (len(self) + len(steps.kinds)) * max(float(furthest), float(self._held.furthest))
        return bool(self._forgetting) and most > _FULL

    def _overflow(self) -> str:
        return (
            "this label, or the number of labels times the largest, would pass 2**60 resolutions "
            f"of {self.resolution}; give a coarser resolution, or forget earlier"
        )

    def _save(self) -> bytes:
        held = self._held
        count = held.observation_count()
        scores, labels, times = np.empty(count), np.empty(count, np.int64), np.empty(count)
        held.observations(scores, labels, times)
        columns = [scores, labels.astype(float), *([times] if held.lifetime else [])]
        header = _HEADER_STRUCT.pack(held.m, held.resolution, held.window, held.lifetime, held.late)
        return b"".join([header, *(part for column in columns for part in packed(column))])

    def _load(self, payload: memoryview) -> None:
        m, resolution, window, max_age, late = _HEADER_STRUCT.unpack_from(payload)
        ages = math.isfinite(max_age) and max_age >= 0.0 and not (window and max_age)
        require(ages and 0 < m <= _GREATEST_M and window < 1 << 63 and late <= MAX_COUNT, "header")
        columns = parsed(payload, _HEADER_STRUCT.size)
        shape = "ddd" if max_age else "dd"
        require("".join(letter for letter, _ in columns) == shape, "columns")
        require(len({len(column) for _, column in columns}) == 1, "columns")
        scores, labels, *rest = (column + 0.0 for _, column in columns)
        times = rest[0] if rest else np.full(len(scores), np.nan)
        require(np.isfinite(scores).all() and not (rest and not np.isfinite(times).all()), "rows")
        require((np.abs(labels) <= 2.0 * _FULL).all() and (labels == np.rint(labels)).all(), "rows")
        require(not late or (max_age and len(scores)), "late")
        self._forget_by(Forgetting(window or None, max_age or None))
        self._hold(m, _resolution(resolution))
        require(self._held.load_observations(scores, labels.astype(np.int64), times, late), "rows")


def _merged(low: Floats, high: Floats, lowest: Floats, highest: Floats) -> Floats:
    """Weigh each end with its distance from the label that its query had."""
    with np.errstate(invalid="ignore"):
        above, weight = highest - high, (low - lowest) + (highest - high)
        share = np.divide(above, weight, out=np.full_like(low, 0.5), where=weight > 0.0)
        return np.minimum(low + share * (high - low), high)


def _count(m: Any) -> int:
    count = validation.count(m, "m", 1)
    if count > _GREATEST_M:
        msg = f"m={shown(m)} is above {_GREATEST_M}; m is a small number of labels, such as 1"
        raise ParameterError(msg)
    return count


def _resolution(resolution: float) -> float:
    try:
        number = float(resolution)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number > 0.0):
        msg = f"resolution={shown(resolution)} is not a positive, finite number; 2.0**-20 is usual"
        raise ParameterError(msg)
    return number
