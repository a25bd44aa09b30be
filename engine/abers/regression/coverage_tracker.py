"""Tracker of coverage: central intervals with a share of hits near their level on any sequence.

Both ends of an interval move by one margin, which grows after a miss and shrinks after a hit. When
hits and misses are too far from the level, the interval is the whole support, or empty.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from abers import validation
from abers.exceptions import LabelError, ParameterError
from abers.regression.distribution_calibrator import require_range, support_ends
from abers.serialization import MAX_COUNT, Saveable, pack, require, unpack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers

__all__ = ["CoverageTracker", "PredictionInterval", "PredictionIntervals"]

T = TypeVar("T", float, "Floats")


class _LabelEnds(NamedTuple, Generic[T]):
    low: T
    high: T


class PredictionInterval(_LabelEnds[float]):
    """An interval for a label, closed at both ends.

    Attributes
    ----------
    low, high
        The ends, in the unit of the label, which may be infinite. If `low` is above `high`, no
        label is in it.

    Examples
    --------
    >>> interval = PredictionInterval(1.0, 2.0)
    >>> interval.covers(2.0), interval.is_empty, PredictionInterval(2.0, 1.0).is_empty
    (True, False, True)
    """

    __slots__ = ()

    @property
    def is_empty(self) -> bool:
        """Whether no label is in it."""
        return self.low > self.high

    def covers(self, label: float) -> bool:
        """Return whether a label is in it."""
        return self.low <= label <= self.high


class PredictionIntervals(_LabelEnds["Floats"]):
    """Intervals for many labels, as `PredictionInterval` with arrays of shape (n,)."""

    __slots__ = ()

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Whether no label is in it, for each."""
        return self.low > self.high

    def covers(self, labels: Floats) -> NDArray[np.bool_]:
        """Return whether each label is in its interval."""
        return (self.low <= labels) & (labels <= self.high)


_RATE = 0.05
_AWAITING = 352  # bytes that Python takes, as measured: two pairs of floats, and a number
_HEADER = struct.Struct("<dddddQQQ")


EMPTY = PredictionInterval(math.inf, -math.inf)


class _Served(NamedTuple):
    """What an observation keeps until its label comes."""

    given: tuple[float, float]
    interval: PredictionInterval


class CoverageTracker(Saveable):
    """Move prediction intervals so that they cover a given share of the labels.

    Parameters
    ----------
    level
        The share of labels that intervals are to cover, in (0, 1).
    support
        The pair of ends between which all labels lie, at least 1e-290 apart and from -1e290 to
        1e290.
    slack
        By how many hits or misses the count may be off before the whole support, or the empty
        interval, is served.

    Raises
    ------
    ParameterError
        If `level` is not in (0, 1), `support` is no such pair, or `slack` is negative or infinite.

    Notes
    -----
    **Guarantee.** On any sequence of intervals and labels within the support, with any delays, in
    any order, and labels lost or not: after T labels, the share of the labels that the *served*
    intervals cover differs from `level` by at most (`slack` + C) / T, both ways. C is `waited`, the
    largest number of observations that ever awaited their labels together, the newest included.

    Let S be the sum, over the labels that came, of `level` less 1 if the label was covered. When S
    is above `slack`, the whole support is served, which covers; when S is below -`slack`, the empty
    interval, which does not. While S stays above `slack`, only intervals from before it rose there
    can add to it, and at most C of them await labels, each adding less than 1. So S is never above
    `slack` + C; and by the same argument never below -(`slack` + C). The share differs from the
    level by S / T.

    The empty interval is honest: a point could be hit by a label, so no other answer misses for
    certain. It says that the last intervals covered too much, as they do where labels hardly vary.

    **One margin** for both ends. Two ends with a margin each, sorted when they cross, have no bound
    of this kind: an adversary brings the coverage of the quartiles to 0 and to 1.

    **The margin** changes, when a label comes, by (.05 / sqrt(C)) m (`level` - covered). Here m is
    the mean distance of labels from the middles of the given intervals. The margin may be
    negative.

    References
    ----------
    Gibbs & Candes (2021), Adaptive conformal inference under distribution shift; Angelopoulos,
    Candes & Tibshirani (2023), Conformal PID control for time series prediction, for saturation.

    Examples
    --------
    >>> from abers.regression import CoverageTracker
    >>> tracker = CoverageTracker(0.8, (0.0, 100.0))
    >>> tracker.predict_one(40.0, 60.0, number=0)
    PredictionInterval(low=40.0, high=60.0)
    >>> tracker.learn_one(70.0, number=0)
    >>> tracker.predict_one(40.0, 60.0, number=1)  # wider by .05 x 20 x .8 on both sides
    PredictionInterval(low=39.2, high=60.8)
    """

    _magic: ClassVar[bytes] = b"abersCT\x01"

    def __init__(self, level: float, support: tuple[float, float], *, slack: float = 100.0) -> None:
        self._become(level, support_ends(support), slack)

    def _become(self, level: float, ends: tuple[float, float], slack: float) -> None:
        self._level = validation.fraction(level, "level")
        self._ends = ends
        words = "a finite number of 0 or more"
        self._slack = validation.number(slack, "slack", words, lambda one: 0.0 <= one < math.inf)
        require_range(ends)
        self._margin = self._distances = 0.0
        self._covered = self._labels = self._waited = 0
        self._awaiting: dict[int, _Served] = {}

    @property
    def level(self) -> float:
        """Share of labels that intervals are to cover."""
        return self._level

    @property
    def support(self) -> tuple[float, float]:
        """Ends between which all labels lie."""
        return self._ends

    @property
    def slack(self) -> float:
        """How far hits or misses may be off before the whole support, or nothing, is served."""
        return self._slack

    @property
    def labels(self) -> int:
        """Number of labels T of awaited observations."""
        return self._labels

    @property
    def covered(self) -> int:
        """Number of these labels that their served intervals cover."""
        return self._covered

    @property
    def coverage(self) -> float:
        """Share of these labels that their served intervals cover; NaN without labels."""
        return self._covered / self._labels if self._labels else math.nan

    @property
    def margin(self) -> float:
        """How far both ends are moved outwards; negative if inwards."""
        return self._margin

    @property
    def waited(self) -> int:
        """Largest number of observations that ever awaited their labels together."""
        return self._waited

    @property
    def awaiting_bytes(self) -> int:
        """Bytes of an observation that awaits its label."""
        return _AWAITING

    @property
    def bound(self) -> float:
        """Bound on the difference of `coverage` and `level`; infinite without labels."""
        return (self._slack + self._waited) / self._labels if self._labels else math.inf

    def __repr__(self) -> str:
        """Return the level, and what was covered."""
        of = f"of {self._labels} labels covered"
        return f"<CoverageTracker({self._level}, {self._ends}): {self._covered} {of}>"

    def predict_one(self, low: float, high: float, *, number: int) -> PredictionInterval:
        """Return the interval that is served in place of a predicted one.

        Parameters
        ----------
        low, high
            Ends of the predicted interval; those beyond the support, also infinite, are taken as
            its ends.
        number
            Number of the observation, a whole one; one that awaits its label is given its first
            interval again.

        Returns
        -------
        PredictionInterval
            The interval, within the support; it may be empty.

        Raises
        ------
        ParameterError
            If the ends are not in order, or the number is not a whole one of 0 or more.
        """
        of = validation.observation(number)
        ends = validation.places([low, high])
        if not ends[0] <= ends[1]:
            msg = f"interval ({low!r}, {high!r}) is not in order; give the lower end first"
            raise ParameterError(msg)
        given = (float(np.clip(ends[0], *self._ends)), float(np.clip(ends[1], *self._ends)))
        with self._lock:
            found = self._awaiting.get(of)
            if found is None:
                found = self._awaiting[of] = _Served(given, self._served(*given))
                self._waited = max(self._waited, len(self._awaiting))
        return found.interval

    def learn_one(self, label: float, *, number: int) -> None:
        """Learn whether the label of an observation was covered; unknown numbers have no effect.

        Parameters
        ----------
        label
            The label.
        number
            The number with which its interval was predicted.

        Raises
        ------
        LabelError
            If the label is not a number within the support; nothing is learned then.
        ParameterError
            If the number is not a whole one of 0 or more.
        """
        of, y = validation.observation(number), validation.real(label)
        if not self._ends[0] <= y <= self._ends[1]:
            msg = f"label {y!r} lies outside the support {self._ends}; widen the support"
            raise LabelError(msg)
        with self._lock:
            found = self._awaiting.pop(of, None)
            if found is None:
                return
            low, high = found.given
            self._labels += 1
            self._distances += abs(y - (low + (high - low) / 2.0))
            covered = found.interval.covers(y)
            self._covered += covered
            step = _RATE / math.sqrt(self._waited) * (self._distances / self._labels)
            self._margin += step * (self._level - covered)

    def expire_one(self, number: int) -> None:
        """Stop waiting for a label, as calibrators do: `abers.base.Calibrator.expire_one`."""
        of = validation.observation(number)
        with self._lock:
            self._awaiting.pop(of, None)

    def _served(self, low: float, high: float) -> PredictionInterval:
        missed = self._labels * self._level - self._covered
        if missed > self._slack:
            return PredictionInterval(*self._ends)
        low, high = max(low - self._margin, self._ends[0]), min(high + self._margin, self._ends[1])
        if missed < -self._slack or low > high:
            return EMPTY
        return PredictionInterval(low, high)

    # Saving

    def _save(self) -> bytes:
        header = _HEADER.pack(
            *(self._level, *self._ends, self._slack, self._margin),
            *(self._covered, self._labels, self._waited),
        )
        awaiting = sorted(self._awaiting.items())
        numbers: Integers = np.array([number for number, _ in awaiting], np.int64)
        rows = [(*one.given, *one.interval) for _, one in awaiting]
        table: Floats = np.array(rows, np.float64).ravel()
        sums = struct.pack("<d", self._distances)
        return pack([header, sums, numbers.astype("<i8").tobytes(), table.astype("<f8").tobytes()])

    def _load(self, payload: memoryview) -> None:
        header, sums, numbers, rows = unpack(payload)
        level, lo, hi, slack, margin, covered, labels, waited = _HEADER.unpack(header)
        self._become(level, (lo, hi), slack)
        (distances,) = struct.unpack("<d", sums)
        known = np.frombuffer(numbers, "<i8").tolist()
        table = np.frombuffer(rows, "<f8").reshape(-1, 4).tolist()
        require(math.isfinite(margin) and 0.0 <= distances < math.inf, "margin")
        require(covered <= labels <= MAX_COUNT and len(known) <= waited <= MAX_COUNT, "counts")
        require(len(known) == len(table) and len({*known}) == len(known), "numbers")
        require(all(number >= 0 for number in known) and bool(waited) >= bool(labels), "numbers")
        for number, (low, high, *ends) in zip(known, table, strict=True):
            interval = PredictionInterval(*ends)
            inside = lo <= interval.low <= interval.high <= hi
            require(lo <= low <= high <= hi and (interval == EMPTY or inside), "intervals")
            self._awaiting[number] = _Served((low, high), interval)
        self._margin, self._distances = margin, distances
        self._covered, self._labels, self._waited = covered, labels, waited
