"""Inductive Venn-Abers regression: an interval for the conditional mean of a bounded label.

Governing rule: a label is a share of label 1 and the rest of label 0, on the scale of its bounds,
and isotonic regression sees no more of it than that; so a binary calibrator that learns both parts
of every observation does the mathematics.

An observation is always two parts, so that a window of n observations is one of 2n parts.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers._arrays import ONE, REMOVE
from abers._sealed import REMEDY, seal, unseal
from abers._shown import shown
from abers.calibration import _checks
from abers.calibration._forgetting import Forgetting
from abers.calibration._packing import pack, unpack
from abers.calibration.venn_abers import VennAbers
from abers.exceptions import (
    ForgettingError,
    LabelError,
    NotHeldError,
    ParameterError,
    StateError,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers._arrays import Bytes, Floats

__all__ = ["IVAR", "MeanInterval"]

_MAGIC = b"abersIM\x01"
_BOUNDS = struct.Struct("<dd")


class MeanInterval(NamedTuple):
    """An interval for the mean of a label, closed at both ends.

    Attributes
    ----------
    low, high
        Its ends, in the unit of the label.
    """

    low: float
    high: float

    @property
    def width(self) -> float:
        """What the calibrator does not know: `high` - `low`."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """The point in the middle, which is nowhere further than half the width from the mean."""
        return self.low + self.width / 2.0


class IVAR:
    """Turn the scores of any regression model into intervals for the mean of the label.

    The isotonic regression of label on score is fitted with the query added, once with the lowest
    and once with the highest label there can be; the two values at the query are the interval.

    At most one of `window`, `max_age` and `half_life` may be given; with none, everything is kept.

    Parameters
    ----------
    y_min, y_max
        Bounds of the label, which have to be known in advance: the wider they are, the wider are
        the intervals.
    window, max_age, half_life
        How to forget, as of `abers.VennAbers`.

    Raises
    ------
    ParameterError
        If the bounds are not finite or not in order, an option makes no sense, or more than one
        rule of forgetting is given.

    Notes
    -----
    **Guarantee.** With a scorer fixed before the calibration data and exchangeable observations,
    the interval contains a number V, the fit with the true label, that is perfectly calibrated:
    the mean of the label given V is V. Also with a `window`. A half-life, a scorer that keeps
    learning, or drift void it.

    **Ties** in the score are pooled, so `low` is never above `high`.

    **Rounding.** A label is kept as a multiple of (y_max - y_min) 2**-30, the nearest one, which
    moves an end of the interval by half of that at most. All sums are exact.

    **Times** and **threads** are as in `abers.VennAbers`. A prediction costs some microseconds
    however much is held, a label about 0.1 ms alone and a microsecond in an array.

    References
    ----------
    Petej & Vovk (2026), arXiv 2605.06646; Barlow, Bartholomew, Bremner & Brunk (1972), Statistical
    inference under order restrictions, for isotonic regression.

    Examples
    --------
    >>> from abers.regression import IVAR
    >>> calibrator = IVAR(0.0, 8.0)
    >>> calibrator.learn_many([1.0, 2.0, 3.0, 4.0], [1.5, 0.5, 4.0, 3.0])
    >>> calibrator.predict_one(3.0)
    MeanInterval(low=2.0, high=5.0)
    """

    def __init__(
        self,
        y_min: float,
        y_max: float,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        ends = _bounds(y_min, y_max)
        rule = Forgetting(window, max_age, half_life)
        parts = None if rule.window is None else 2 * rule.window
        self._set(ends, rule, VennAbers(parts, rule.max_age, rule.half_life))

    def _set(self, ends: tuple[float, float], rule: Forgetting, held: VennAbers) -> None:
        self._ends, self._forgetting, self._held = ends, rule, held

    @property
    def y_min(self) -> float:
        """The lowest label there can be."""
        return self._ends[0]

    @property
    def y_max(self) -> float:
        """The highest label there can be."""
        return self._ends[1]

    @property
    def window(self) -> int | None:
        """Number of observations kept at most, None without a window."""
        return self._forgetting.window

    @property
    def max_age(self) -> float | None:
        """Greatest age of an observation, None without one."""
        return self._forgetting.max_age

    @property
    def half_life(self) -> float | None:
        """Time in which a weight halves, None if weights stay."""
        return self._forgetting.half_life

    @property
    def late(self) -> int:
        """Number of labels that came too old to be learned."""
        return self._held.late // 2

    def __len__(self) -> int:
        """Count the observations held."""
        return len(self._held) // 2

    def __bool__(self) -> bool:
        """Be true even when nothing is held, so that `calibrator or default` keeps it."""
        return True

    def __repr__(self) -> str:
        """Name the options and the number of observations."""
        options = [f"{end!r}" for end in self._ends]
        options += [str(self._forgetting)] if self._forgetting else []
        return f"<IVAR({', '.join(options)}) of {len(self)} observations>"

    def predict_one(self, score: float, time: float | None = None) -> MeanInterval:
        """Predict an interval for the mean of the label for one score.

        Parameters
        ----------
        score
            The model's score, any finite number; larger means larger labels are likelier.
        time
            Event time of the query, only with `max_age` or `half_life`; by default the newest
            time seen.

        Returns
        -------
        MeanInterval
            The interval; without any observation it goes from `y_min` to `y_max`.

        Raises
        ------
        ScoreError, TimeError
            If an argument cannot be used.

        Examples
        --------
        >>> IVAR(0.0, 10.0).predict_one(0.3)
        MeanInterval(low=0.0, high=10.0)
        """
        pair = self._held.predict_one(score, time)
        low, high = self._unscaled(np.array([pair.p0, pair.p1])).tolist()
        return MeanInterval(low, high)

    def learn_one(self, score: float, y: float, *, time: float | None = None) -> None:
        """Learn one labelled observation.

        Parameters
        ----------
        score
            The score with which the observation was predicted.
        y
            Its label, between `y_min` and `y_max`.
        time
            Event time of the observation; required with `max_age` or `half_life`.

        Raises
        ------
        ScoreError, LabelError, TimeError
            If an argument cannot be used; nothing is learned then.
        """
        column, label = np.array([_checks.score(score)]), self._inside(_checks.real(y))
        timed = self._forgetting.by_time or time is not None
        self._learn(column, np.array([label]), [self._forgetting.time(time)] if timed else None)

    def remove_one(self, score: float, y: float) -> None:
        """Undo one `learn_one` with the same arguments, exactly.

        Parameters
        ----------
        score, y
            As they were learned. Labels of a score are pooled, so others of the same number and
            sum can be removed too.

        Raises
        ------
        NotHeldError
            If no such observation is held.
        ForgettingError
            If the calibrator forgets by itself.
        ScoreError, LabelError
            If an argument cannot be used.
        """
        if self._forgetting:
            msg = f"{self!r} forgets by itself; only a calibrator that keeps all can remove"
            raise ForgettingError(msg)
        score, y = _checks.score(score), self._inside(_checks.real(y))
        labels, weights = self._parts(np.array([y]))
        try:
            self._held.run([REMOVE, REMOVE], [score, score], labels, weights=weights)
        except NotHeldError:
            msg = f"score {score!r} with label {y!r} is not held; remove only what was learned"
            raise NotHeldError(msg) from None

    def predict_many(
        self, scores: ArrayLike, *, times: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        """Predict for an array of scores; as `predict_one` for each.

        Parameters
        ----------
        scores
            Array of shape (n,).
        times
            Array of shape (n,), as in `predict_one`.

        Returns
        -------
        tuple of numpy.ndarray
            The low and the high ends, each of shape (n,).

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one.

        Examples
        --------
        >>> calibrator = IVAR(0.0, 1.0)
        >>> calibrator.learn_many([1.0, 2.0], [0.25, 0.75])
        >>> low, high = calibrator.predict_many([1.0, 2.0])
        >>> low.tolist(), high.tolist()
        ([0.125, 0.375], [0.625, 0.875])
        """
        p0, p1 = self._held.predict_many(scores, times=times)
        return self._unscaled(p0), self._unscaled(p1)

    def learn_many(
        self, scores: ArrayLike, ys: ArrayLike, *, times: ArrayLike | None = None
    ) -> None:
        """Learn arrays of observations; as `learn_one` for each, or nothing if a row is bad.

        Parameters
        ----------
        scores, ys, times
            Arrays of shape (n,), as in `learn_one`.

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one.
        """
        column = _checks.scores(scores)
        labels = self._all_inside(_checks.reals(ys, len(column)))
        self._learn(column, labels, self._forgetting.times(times, len(column), required=True))

    def _learn(self, scores: Floats, ys: Floats, times: ArrayLike | None) -> None:
        labels, weights = self._parts(ys)
        twice = None if times is None else np.repeat(times, 2)
        self._held.learn_many(np.repeat(scores, 2), labels, weights=weights, times=twice)

    # Labels and their parts

    def _inside(self, y: float) -> float:
        if not self._ends[0] <= y <= self._ends[1]:
            msg = f"label {y!r} lies outside the bounds {self._ends}; widen them"
            raise LabelError(msg)
        return y

    def _all_inside(self, labels: Floats) -> Floats:
        outside = np.flatnonzero((labels < self._ends[0]) | (labels > self._ends[1]))
        if outside.size:
            try:
                self._inside(float(labels[outside[0]]))
            except LabelError as error:
                msg = f"row {outside[0]}: {error}"
                raise LabelError(msg) from None
        return labels

    def _parts(self, ys: Floats) -> tuple[Bytes, Floats]:
        """Split each label into two parts of weight 1 together; one that is an end into halves."""
        lo, hi = self._ends
        share = np.rint((ys - lo) / (hi - lo) * ONE) / ONE  # of label 1
        whole = (share == 0.0) | (share == 1.0)
        labels = np.stack([np.where(whole, share, 0.0), np.where(whole, share, 1.0)], axis=1)
        ones = np.where(whole, 0.5, share)
        weights = np.stack([1.0 - ones, ones], axis=1)
        return labels.ravel().astype(np.uint8), weights.ravel()

    def _unscaled(self, p: Floats) -> Floats:
        lo, hi = self._ends
        # Each rounding keeps the order of the two ends; the largest sum may miss y_max by one.
        return np.where(p == 1.0, hi, np.minimum(lo + p * (hi - lo), hi))

    # Saving

    def to_bytes(self) -> bytes:
        """Save the calibrator: versioned, with a checksum, the same on both backends.

        Returns
        -------
        bytes
            What `from_bytes` takes.
        """
        return seal(_MAGIC, pack([_BOUNDS.pack(*self._ends), self._held.to_bytes()]))

    @classmethod
    def from_bytes(cls, blob: bytes) -> IVAR:
        """Restore a calibrator that goes on bit for bit as the saved one would have.

        Parameters
        ----------
        blob
            What `to_bytes` gave.

        Returns
        -------
        IVAR
            The calibrator.

        Raises
        ------
        StateError
            If the bytes are damaged, of another kind or of an unknown version.

        Examples
        --------
        >>> calibrator = IVAR(0.0, 1.0, window=1000)
        >>> calibrator.learn_one(0.7, 0.5)
        >>> IVAR.from_bytes(calibrator.to_bytes())
        <IVAR(0.0, 1.0, window=1000) of 1 observations>
        """
        pieces = unpack(unseal(_MAGIC, bytes(blob), "a saved IVAR"))
        restored = cls.__new__(cls)
        try:
            bounds, parts = pieces
            ends, held = _bounds(*_BOUNDS.unpack(bounds)), VennAbers.from_bytes(parts)
            if (held.window or 0) % 2 or len(held) % 2:
                msg = "an observation lacks a part"
                raise ValueError(msg)  # noqa: TRY301 - reported as all other inconsistencies
            window = None if held.window is None else held.window // 2
            rule = Forgetting(window, held.max_age, held.half_life)
        except (ValueError, struct.error) as error:
            msg = f"saved calibrator is inconsistent ({error}); {REMEDY}"
            raise StateError(msg) from None
        restored._set(ends, rule, held)  # noqa: SLF001 - of the same class
        return restored

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        """Pickle and copy by way of the saved form."""
        return type(self).from_bytes, (self.to_bytes(),)


def _bounds(y_min: float, y_max: float) -> tuple[float, float]:
    try:
        lo, hi = float(y_min), float(y_max)
    except (TypeError, ValueError, OverflowError):
        lo = hi = math.nan
    if not (lo < hi and math.isfinite(hi - lo)):
        given = f"y_min={shown(y_min)}, y_max={shown(y_max)}"
        msg = f"{given} are no finite bounds in order; give y_min < y_max"
        raise ParameterError(msg)
    return lo + 0.0, hi + 0.0
