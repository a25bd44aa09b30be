"""Inductive Venn-Abers regression: an interval for the conditional mean of a bounded label.

A binary calibration set does the mathematics. A label is scaled to a share between 0 and 1. Then
isotonic regression cannot tell it from two binary labels with the same score: a 1 with the share as
its weight, and a 0 with the rest. So the set learns every label as two parts. It is always two, so
that a window of n observations is a window of 2n parts.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from abers.arrays import ONE
from abers.base import Capabilities
from abers.calibration import sets
from abers.exceptions import ParameterError
from abers.mathematics import PREDICT, REMOVE, Forgetting
from abers.regression.distribution_calibrator import BoundedCalibrator
from abers.serialization import pack, require, unpack
from abers.validation import shown

if TYPE_CHECKING:
    from abers.arrays import Bytes, Floats, Integers
    from abers.mathematics import Steps

__all__ = ["IVAR", "MeanInterval", "MeanIntervals", "checked_bounds"]

_BOUNDS_STRUCT = struct.Struct("<dd")

T = TypeVar("T", float, "Floats")


class _MeanEnds(NamedTuple, Generic[T]):
    low: T
    high: T

    @property
    def width(self) -> T:
        """The uncertainty about the mean: `high` - `low`."""
        return self.high - self.low

    @property
    def middle(self) -> T:
        """The midpoint; no mean in the interval is further from it than half the width."""
        return self.low + self.width / 2.0


class MeanInterval(_MeanEnds[float]):
    """An interval for the mean of a label, closed at both ends.

    Attributes
    ----------
    low, high
        The ends, in the unit of the label.
    """

    __slots__ = ()


class MeanIntervals(_MeanEnds["Floats"]):
    """Intervals for the means of many labels, as `MeanInterval` with arrays of shape (n,)."""

    __slots__ = ()


class IVAR(BoundedCalibrator[float, MeanInterval, MeanIntervals]):
    """Turn the scores of any regression model into intervals for the mean of the label.

    The isotonic regression of label on score is fitted with the query added, once with the lowest
    and once with the highest possible label; the two values at the query are the interval.

    At most one of `window`, `max_age` and `half_life` may be set; without any, the calibrator
    keeps all observations.

    Parameters
    ----------
    y_min, y_max
        Bounds of the label, which must be known in advance. Wider bounds give wider intervals.
    window, max_age, half_life
        How to forget old observations, as in `abers.VennAbers`.

    Raises
    ------
    ParameterError
        If the bounds are not finite or not in order, an option is invalid, or more than one of
        `window`, `max_age` and `half_life` is set.

    Notes
    -----
    **Guarantee.** With a scorer fixed before the calibration data and exchangeable observations,
    the interval contains a number V, the fit with the true label, that is perfectly calibrated:
    the mean of the label given V is V. The guarantee also holds with a `window`. It does not hold
    with a half-life, with a scorer that keeps learning, or under drift.

    **Ties** in the score are pooled, so `low` is never above `high`.

    **Rounding.** The distance of a label from `y_min` is rounded to the nearest multiple of
    (y_max - y_min) 2**-30. This moves an end of the interval by half of that at most. All sums are
    exact.

    **Times** and **threads** are as in `abers.VennAbers`. A prediction takes a few microseconds,
    for any number of observations. Learning a label takes about 0.1 ms alone, and a
    microsecond in an array.

    References
    ----------
    Petej & Vovk (2026), arXiv 2605.06646; Barlow, Bartholomew, Bremner & Brunk (1972), Statistical
    inference under order restrictions, for isotonic regression.

    Examples
    --------
    >>> from abers.batch import IVAR
    >>> calibrator = IVAR(0.0, 8.0)
    >>> calibrator.learn_many([1.0, 2.0, 3.0, 4.0], [1.5, 0.5, 4.0, 3.0])
    >>> calibrator.predict_one(3.0)
    MeanInterval(low=2.0, high=5.0)
    """

    capabilities = Capabilities(task="regression", answer="mean", weights=False)
    _magic: ClassVar[bytes] = b"abersIM\x01"
    _ends_name: ClassVar[str] = "bounds"

    def __init__(
        self,
        y_min: float,
        y_max: float,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        super().__init__(window, max_age, half_life)
        self._ends = checked_bounds(y_min, y_max)
        parts = None if self.window is None else 2 * self.window
        self._held = sets.empty(Forgetting(parts, self.max_age, self.half_life))

    @property
    def y_min(self) -> float:
        """The lowest possible label."""
        return self._ends[0]

    @property
    def y_max(self) -> float:
        """The highest possible label."""
        return self._ends[1]

    @property
    def late(self) -> int:
        """Number of labels that were too old to be learned when they came."""
        return super().late // 2

    def __len__(self) -> int:
        """Count the observations kept."""
        return super().__len__() // 2

    def _options(self) -> list[str]:
        return [*(f"{end!r}" for end in self._ends), *super()._options()]

    def _predict(self, score: float, weight: int, time: float, number: int) -> MeanInterval:
        low, high = self._unscaled(np.array(self._held.predict(score, weight, time))).tolist()
        return MeanInterval(low, high)

    def _learn(self, score: float, label: float, weight: int, time: float, number: int) -> bool:
        labels, weights = self._parts(np.array([label]))
        for part, part_weight in zip(labels.tolist(), weights.tolist(), strict=True):
            self._held.learn(score, part, part_weight, time)
        return True

    def _remove(self, score: float, label: float, weight: int) -> bool:
        labels, weights = (column.tolist() for column in self._parts(np.array([label])))
        if not self._held.remove(score, labels[0], weights[0]):
            return False
        if not self._held.remove(score, labels[1], weights[1]):
            self._held.learn(score, labels[0], weights[0])
            return False
        return True

    def _take(self, steps: Steps, held: Integers | None) -> tuple[MeanIntervals, int]:
        """Run the steps on the set: two for each label, one of each part, one for a prediction."""
        predicts = steps.kinds == PREDICT
        counts = np.where(predicts, 1, 2)  # of the set's steps, for each step
        stops = np.cumsum(counts)
        last = stops - 1
        rows = np.repeat(np.arange(len(counts)), counts)  # row of each of the set's steps
        is_second = np.zeros(len(rows), np.int64)
        is_second[last[~predicts]] = 1
        labels, weights = self._parts(np.where(predicts, self.y_min, steps.labels))
        part = 2 * rows + is_second
        set_steps = steps.take(rows)._replace(
            labels=labels[part], weights=np.where(predicts[rows], ONE, weights[part])
        )
        sizes = np.empty(len(rows), np.int64)
        p0, p1, done = sets.pairs(self._held, set_steps, sizes)
        if held is not None:
            held[:] = sizes[last] // 2
        intervals = MeanIntervals(self._unscaled(p0[last]), self._unscaled(p1[last]))
        return intervals, int(np.searchsorted(stops, done, side="right"))

    def _must_copy(self, steps: Steps) -> bool:
        return bool((steps.kinds == REMOVE).any()) or sets.may_overflow(self._held, steps)

    def _parts(self, ys: Floats) -> tuple[Bytes, Integers]:
        """Return labels and weights of the two parts of each label, one after the other.

        Both weights are above 0, so a label on a bound becomes two equal halves.
        """
        lo, hi = self._ends
        share = np.rint((ys - lo) / (hi - lo) * ONE) / ONE  # of label 1
        on_bound = (share == 0.0) | (share == 1.0)
        labels = np.stack([np.where(on_bound, share, 0.0), np.where(on_bound, share, 1.0)], axis=1)
        second = np.where(on_bound, 0.5, share)
        weights = np.stack([1.0 - second, second], axis=1)
        return labels.ravel().astype(np.uint8), np.rint(weights.ravel() * ONE).astype(np.int64)

    def _unscaled(self, p: Floats) -> Floats:
        """Return probabilities on the scale of the label."""
        lo, hi = self._ends
        # Rounding is monotone, so low stays below high. At p = 1 the sum may differ from hi.
        return np.where(p == 1.0, hi, np.minimum(lo + p * (hi - lo), hi))

    def _save(self) -> bytes:
        return pack([_BOUNDS_STRUCT.pack(*self._ends), sets.sealed(self._held)])

    def _load(self, payload: memoryview) -> None:
        bounds, parts = unpack(payload)
        held = sets.unsealed(parts)
        require(
            not (held.window % 2 or held.size % 2 or held.late % 2), "an observation lacks a part"
        )
        rule = Forgetting.of(held)
        window = None if rule.window is None else rule.window // 2
        self._forget_by(Forgetting(window, rule.max_age, rule.half_life))
        self._ends, self._held = checked_bounds(*_BOUNDS_STRUCT.unpack(bounds)), held


def checked_bounds(y_min: float, y_max: float) -> tuple[float, float]:
    """Check the bounds of a label."""
    try:
        lo, hi = float(y_min), float(y_max)
    except (TypeError, ValueError, OverflowError):
        lo = hi = math.nan
    if not (lo < hi and math.isfinite(hi - lo)):
        given = f"y_min={shown(y_min)}, y_max={shown(y_max)}"
        msg = f"{given} are not finite bounds in order; give y_min < y_max"
        raise ParameterError(msg)
    return lo + 0.0, hi + 0.0  # -0.0 becomes 0.0, so that equal bounds have equal bytes
