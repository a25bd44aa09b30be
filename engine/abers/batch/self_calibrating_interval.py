"""Intervals that cover the label given its calibrated mean, by self-calibrating conformal.

The self-calibrating interval of a query: the labels that are near their own isotonic mean. Let the
query have the label y. Its isotonic mean m ascends with y, so m stands for y: if m is known its
level set B is, too. B has the labels with the score of the query; of the isotonic mean of the
labels below it, the blocks with a mean of m or more; and of that of the labels above it, the blocks
with a mean of m or less. Then y = m (N + 1) - S, for the N labels of B and their sum S. So there
are pieces of the line of m, with one B each, between the means of the blocks, where labels with
equal means belong to B together.

On a piece y conforms if fewer than K = ceil(level (N + 1)) labels v of B are nearer to m than y is.
Let y be below m. Then v is nearer if y < v < 2m - y. As y ascends, v ceases to be nearer at y = v
if v is below S / N, else where v = 2m - y, that is y = (2S - v (N + 1)) / (N - 1). So the least y
of a piece is the K-th largest of these, or the end of the piece.

The lower end is that of the first piece from below with a label that conforms; the label that is
its own mean does, so there is one. The upper end is the lower end of the mirror image.

Numbers are divided once and last, so ends are as exact as the sums of labels.

References
----------
van der Laan & Alaa (2024), Self-calibrating conformal prediction, arXiv 2402.07307, for the
definition; theirs searches a grid of labels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from abers.arrays import ONE
from abers.backends import core
from abers.base import Capabilities
from abers.batch.conformal_interval import LevelCalibrator
from abers.regression.distribution_calibrator import NO_LEVELS
from abers.regression.ivapr import held_rows
from abers.serialization import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers
    from abers.mathematics import Steps

__all__ = ["CalibratedInterval", "CalibratedIntervals", "Neighbours", "SelfCalibratingInterval"]


class _Blocks(NamedTuple):
    """Blocks of an isotonic mean on one side of a query, in the order of their means."""

    sums: Floats
    counts: Integers

    @classmethod
    def of(cls, scores: Floats, labels: Floats) -> Self:
        starts, sums = np.empty(len(scores), np.int64), np.empty(len(scores))
        count = core.isotonic_blocks(scores, labels, starts, sums)
        return cls(sums[:count].copy(), np.diff(starts[:count], append=len(scores)))

    @property
    def means(self) -> Floats:
        return self.sums / self.counts

    def mirrored(self) -> Self:
        return type(self)(-self.sums[::-1], self.counts[::-1])


class Neighbours(NamedTuple):
    """The labels of a calibrator as a query sees them.

    Attributes
    ----------
    labels
        All labels in the order of their scores; those before `start` have lower scores than the
        query, and those from `stop` on higher ones.
    left, right
        The isotonic means on both sides.
    """

    labels: Floats
    start: int
    stop: int
    left: _Blocks
    right: _Blocks

    @classmethod
    def of(cls, scores: Floats, labels: Floats, query: float) -> Self:
        """Return the neighbours of a query among labels sorted by their scores."""
        start, stop = (int(np.searchsorted(scores, query, side)) for side in ("left", "right"))
        left = _Blocks.of(scores[:start], labels[:start])
        return cls(labels, start, stop, left, _Blocks.of(scores[stop:], labels[stop:]))

    def interval(self, level: float) -> tuple[float, float, float]:
        """Return the least and the greatest label that conform, or their limits, and the mean."""
        search, other = _LabelSearch(self, level), _LabelSearch(self._mirrored(), level)
        return search.lower(), -other.lower(), self._mean(search)

    def _mean(self, search: _LabelSearch) -> float:
        """Return the isotonic mean of the query without its label; NaN without labels.

        Between two blocks it may be any number between their means, and is the middle.
        """
        nearest = [*self.left.means[-1:].tolist(), *self.right.means[:1].tolist()]
        if self.start == self.stop and nearest == sorted(nearest):
            return math.fsum(nearest) / len(nearest) if nearest else math.nan
        own = np.flatnonzero(search.breaks * search.below.counts >= search.below.sums)
        part = search.below.at(int(own[0])) if own.size else search.last
        return part.total / part.number

    def _mirrored(self) -> Neighbours:
        n, sides = len(self.labels), (self.right.mirrored(), self.left.mirrored())
        return Neighbours(-self.labels[::-1], n - self.stop, n - self.start, *sides)


class _LevelSet(NamedTuple):
    """A level set without the query: where its labels are, their number and their sum."""

    start: int
    stop: int
    number: int
    total: float


class _LevelSets(NamedTuple):
    """Level sets: a row each."""

    starts: Integers
    stops: Integers
    sums: Floats

    @property
    def counts(self) -> Integers:
        return self.stops - self.starts

    def at(self, row: int) -> _LevelSet:
        start, stop = int(self.starts[row]), int(self.stops[row])
        return _LevelSet(start, stop, stop - start, float(self.sums[row]))


class _LabelSearch:
    """The search for the least label that conforms, over the pieces in ascending order.

    `below` has the level sets of the pieces that end at each break, `points` those of the breaks
    themselves, and `last` is that of the piece after the last break.
    """

    def __init__(self, near: Neighbours, level: float) -> None:
        self._labels, self._level = near.labels, level
        left, right = near.left, near.right
        means = np.concatenate((left.means, right.means))
        self.breaks, first = np.unique(means, return_index=True)
        # Breaks as fractions: sum and number of labels of a block with that mean.
        self._sums = np.concatenate((left.sums, right.sums))[first]
        self._counts = np.concatenate((left.counts, right.counts))[first]
        tied = math.fsum(near.labels[near.start : near.stop])
        from_left = near.start - np.append(np.cumsum(left.counts[::-1])[::-1], 0)
        left_sums = np.append(np.cumsum(left.sums[::-1])[::-1], 0.0)
        to_right = near.stop + np.append(0, np.cumsum(right.counts))
        right_sums = np.append(0.0, np.cumsum(right.sums))

        def parts(out: Integers, within: Integers) -> _LevelSets:
            sums = left_sums[out] + tied + right_sums[within]
            return _LevelSets(from_left[out], to_right[within], sums)

        out = np.searchsorted(left.means, self.breaks, "left")
        self.below = parts(out, np.searchsorted(right.means, self.breaks, "left"))
        self.points = parts(out, np.searchsorted(right.means, self.breaks, "right"))
        ends = np.array([len(left.means)]), np.array([len(right.means)])
        self.last = parts(*ends).at(0)

    def lower(self) -> float:
        """Return the least label that conforms, or its limit."""
        for row in np.flatnonzero(self._open()).tolist():
            piece = self.below.at(row)
            if self._conforms_below(row, piece):
                return self._least(piece, self._label(row - 1) if row else -math.inf)
            if self._conforms_at(row):
                return self._label(row)
        return self._least(self.last, self._label(-1) if len(self.breaks) else -math.inf)

    def _needed(self, count: int) -> int:
        """Return K, the least whole number with K / (N + 1) of at least the level."""
        needed = math.ceil(self._level * (count + 1))
        return needed - ((needed - 1) / (count + 1) >= self._level)

    def _open(self) -> NDArray[np.bool_]:
        """Return the breaks where a label may conform: not all of B is nearer for certain."""
        found = np.zeros(len(self.breaks), np.bool_)
        if not found.size:
            return found
        lowest, highest = np.min(self._labels), np.max(self._labels)
        for parts in (self.below, self.points):
            n = parts.counts
            least = np.ceil(self._level * (n + 1)) > n
            ends = self._ends(self._sums, self._counts, n, parts.sums)
            wide = (ends[0] < lowest * self._counts) & (ends[1] > highest * self._counts)
            found |= ~wide | least | (n <= 1)
        return found

    @staticmethod
    def _ends(
        break_sum: Floats, break_count: Integers, n: Integers, total: Floats
    ) -> tuple[Floats, Floats]:
        """Return the label y at a break, and 2m - y, both times the number of the break."""
        low = break_sum * (n + 1) - total * break_count
        return low, 2.0 * break_sum - low

    def _label(self, row: int) -> float:
        """Return the label that has a break as its mean; it is the same on both sides."""
        part = self.points.at(row)
        count = int(self._counts[row])
        return float(self._sums[row] * (part.number + 1) - part.total * count) / count

    def _conforms_below(self, row: int, piece: _LevelSet) -> bool:
        """Return whether any label of the piece below a break conforms."""
        needed = self._needed(piece.number)
        count, total = int(self._counts[row]), float(self._sums[row])
        if needed > piece.number or piece.number <= 1 or piece.total * count < total * piece.number:
            return True
        low, high = self._ends(*np.array([total, count, piece.number, piece.total])[:, np.newaxis])
        scaled = self._labels[piece.start : piece.stop] * count
        return bool(np.count_nonzero((low <= scaled) & (scaled <= high)) < needed)

    def _conforms_at(self, row: int) -> bool:
        """Return whether the label at a break conforms."""
        part, count = self.points.at(row), int(self._counts[row])
        needed = self._needed(part.number)
        if needed > part.number or part.number <= 1:
            return True
        ends = np.array([self._sums[row], count, part.number, part.total])[:, np.newaxis]
        low, high = self._ends(*ends)
        scaled = self._labels[part.start : part.stop] * count
        return bool(np.count_nonzero((low < scaled) & (scaled < high)) < needed)

    def _least(self, piece: _LevelSet, start: float) -> float:
        """Return the least label that conforms of a piece that has one and starts at a label."""
        needed, n = self._needed(piece.number), piece.number
        if needed > n or n <= 1:
            return start
        values = self._labels[piece.start : piece.stop]
        reflected = (2.0 * piece.total - values * (n + 1)) / (n - 1)
        at = np.where(values * n <= piece.total, values, reflected)
        return max(start, float(np.partition(at, n - needed)[n - needed]))


_FURTHEST = 1e280  # from 0: sums of labels, times two counts of labels, are finite

T = TypeVar("T", float, "Floats")


class _EndsAndMean(NamedTuple, Generic[T]):
    low: T
    high: T
    mean: T


class CalibratedInterval(_EndsAndMean[float]):
    """An interval for a label, closed at both ends, and its calibrated mean.

    Attributes
    ----------
    low, high
        The ends, in the unit of the label, which may be infinite.
    mean
        The isotonic mean of the labels at the score; NaN without labels.
    """

    __slots__ = ()

    def covers(self, label: float) -> bool:
        """Return whether a label is in it."""
        return self.low <= label <= self.high


class CalibratedIntervals(_EndsAndMean["Floats"]):
    """Intervals for many labels, as `CalibratedInterval` with arrays of shape (n,)."""

    __slots__ = ()

    def covers(self, labels: Floats) -> NDArray[np.bool_]:
        """Return whether each label is in its interval."""
        return (self.low <= labels) & (labels <= self.high)


class SelfCalibratingInterval(LevelCalibrator[float, CalibratedInterval, CalibratedIntervals]):
    """Turn scores into a calibrated mean, and an interval that holds among equal means.

    The score may be any output of a regression model that is larger for larger labels, in any unit.
    For each label that the query could have, the isotonic mean is fitted with it. The label
    conforms if its distance from the mean is not among the largest 1 - `level` of all observations
    with that mean. The interval reaches from the least to the greatest label that conforms.

    At most one of `window` and `max_age` may be set.

    Parameters
    ----------
    level
        The probability with which an interval is to cover the label, in (0, 1).
    window, max_age
        How to forget, as in `abers.VennAbers`.

    Raises
    ------
    ParameterError
        If the level is not inside (0, 1), or a rule of forgetting is invalid.

    Notes
    -----
    **Guarantee.** With a scorer fixed before the calibration data and exchangeable observations,
    the interval covers the label with a probability of at least `level` given V, the isotonic mean
    fitted with the true label; also with a `window`. V is perfectly calibrated: the mean of the
    label given V is V. `mean` is the fit without the label, always inside the interval, and differs
    from V by little where many labels share a mean. A scorer that keeps learning, or drift, void
    the guarantee.

    **Open ends.** Where fewer than about 1 / (1 - `level`) labels share a mean, every label
    conforms. So ends may be infinite, and with few labels intervals are wider than those of
    `ConformalInterval`.

    **Ties** in the score are pooled, and blocks with equal means are one; the order of arrival
    never matters.

    **Rounding.** Sums are those of doubles. Where labels are whole numbers, or multiples of a power
    of two, they are exact, and ends are correctly rounded.

    **Weights** are refused: a quantile of residuals has to know which observation each is.

    **Cost.** A prediction reads all labels: less than 1 ms for 10,000. With `max_age` labels are
    sorted anew after each change.

    **Times** and **threads** are as in `abers.VennAbers`.

    References
    ----------
    van der Laan & Alaa (2024), Self-calibrating conformal prediction, arXiv 2402.07307; here
    without a grid of labels, and with the isotonic mean itself.

    Examples
    --------
    >>> from abers.batch import SelfCalibratingInterval
    >>> calibrator = SelfCalibratingInterval(0.5)
    >>> calibrator.learn_many([1.0, 1.0, 1.0, 2.0, 2.0], [1.0, 2.0, 6.0, 8.0, 9.0])
    >>> calibrator.predict_one(1.0)
    CalibratedInterval(low=1.0, high=6.0, mean=3.0)
    """

    capabilities = Capabilities(
        task="regression",
        answer="prediction interval",
        weights=False,
        forgetting=("window", "max_age"),
    )
    _magic: ClassVar[bytes] = b"abersSC\x01"
    _width: ClassVar[int] = 3
    _ends = (-_FURTHEST, _FURTHEST)

    def __init__(
        self, level: float, window: int | None = None, max_age: float | None = None
    ) -> None:
        super().__init__(level, window, max_age)
        self._sorted: tuple[Floats, Floats, Floats] | None = None

    def _predict(self, score: float, weight: int, time: float, number: int) -> CalibratedInterval:
        scores, labels = self._seen(time)
        return CalibratedInterval(*Neighbours.of(scores, labels, score).interval(self._level))

    def _seen(self, time: float) -> tuple[Floats, Floats]:
        """Return scores, ascending, and labels that are young enough for a query."""
        if self._sorted is None:
            self._sorted = self._columns()
        scores, labels, times = self._sorted
        if self.max_age is None or not len(times):
            return scores, labels
        young = times >= np.fmax(np.max(times), time) - self.max_age
        return scores[young], labels[young]

    def _columns(self) -> tuple[Floats, Floats, Floats]:
        if self.max_age is not None:
            scores, labels, _, times = held_rows(self._held)
            order = np.lexsort((labels, scores))
            return scores[order], labels[order], times[order]
        n = self._held.pooled_count()
        scores, labels, weights = np.empty(n), np.empty(n), np.empty(n, np.int64)
        self._held.pooled(scores, labels, weights)
        copies = weights // ONE
        return scores.repeat(copies), labels.repeat(copies), NO_LEVELS

    def _learn(self, score: float, label: float, weight: int, time: float, number: int) -> bool:
        self._sorted = None
        return super()._learn(score, label, weight, time, number)

    def _remove(self, score: float, label: float, weight: int) -> bool:
        self._sorted = None
        return super()._remove(score, label, weight)

    def _learn_all(self, steps: Steps, held: Integers | None) -> tuple[Any, int]:
        self._sorted = None
        nothing = np.empty((3, len(steps.kinds), 0))
        return None, self._held.run(*steps[:5], NO_LEVELS, nothing, held)

    def _predictions(self, *columns: Floats) -> CalibratedIntervals:
        return CalibratedIntervals(*columns)

    def _outside(self, y: float) -> str:
        return (
            f"label {y!r} is further than {_FURTHEST} from 0, where sums of labels are infinite; "
            "drop the observation or scale labels down"
        )

    def _load(self, payload: memoryview) -> None:
        super()._load(payload)
        require(self.half_life is None, "half-life")
        labels = held_rows(self._held)[1]
        require(bool((np.abs(labels) <= _FURTHEST).all()), "labels")
        self._sorted = None
