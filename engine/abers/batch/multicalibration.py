"""Venn multicalibration: intervals for a mean that are right in overlapping segments at once.

Least squares on segment indicators: exact sums, and what they say of a query. The sums are
integers, so that what leaves leaves no trace, and equal observations have equal sums in any order.
The factors of their matrix are made anew when a query follows a change: d**3 / 3 multiplications
for d columns. An update of the factors would take d**2 of them, but its rounding would stay: a
calibrator would depend on what it forgot, and on whether it was restored.
"""

from __future__ import annotations

import math
import struct
from collections import Counter, deque
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from abers import validation
from abers.arrays import LEARN, PREDICT, REMOVE, packed, parsed
from abers.base import Calibrator, Capabilities
from abers.batch.ivar import MeanInterval, MeanIntervals, checked_bounds
from abers.exceptions import LabelError, ParameterError, ScoreError
from abers.mathematics import Forgetting
from abers.serialization import require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Bytes, Floats, Integers
    from abers.exceptions import InputError
    from abers.mathematics import Steps

    Row: TypeAlias = tuple[bytes, int]  # indicators, a byte each, and the residual in units

__all__ = ["MOST", "SegmentSums", "VennMulticalibration"]

MOST = 1 << 62
"""The greatest sum of residuals, in units, each without its sign."""

_LEAST_PIVOT = 2.0**-40  # of a column's own square: what is below is rounding
_LEAST_REST = 2.0**-20  # of an indicator, likewise


class SegmentSums:
    """The sums of p p' and of p r, for rows p = (1, indicators) and whole residuals r."""

    def __init__(self, segments: int) -> None:
        size = segments + 1
        self.total = 0  # of residuals without their signs
        self._squares = np.zeros((size, size), np.int64)
        self._products = np.zeros(size, np.int64)
        self._factors: tuple[Floats, Floats, Floats] | None = None

    def add(self, row: NDArray[np.int64], residual: int, count: int) -> None:
        """Add an observation `count` times; below 0, take it away."""
        self.total += abs(residual) * count
        self._squares += count * np.outer(row, row)
        self._products += count * residual * row
        self._factors = None

    def query(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return p' A^-1 b and p' A^-1 p of each column p of `rows`, with A and b the two sums.

        The second is infinite for a p that is no combination of the rows added. Each number is
        computed alone, in one order of operations, however many columns there are.
        """
        lower, pivots, targets = self._factors = self._factors or self._factored()
        rest, size = rows.astype(float), rows.shape[1]
        mean, leverage, apart = np.zeros(size), np.zeros(size), np.zeros(size, bool)
        # Invariant: `rest` is what the columns of A before k leave of each p.
        for k, pivot in enumerate(pivots.tolist()):
            part = rest[k].copy()
            if pivot == 0.0:
                apart |= np.abs(part) > _LEAST_REST
                continue
            share = part / pivot
            mean += share * targets[k]
            leverage += share * part
            rest[k + 1 :] -= lower[k + 1 :, k, np.newaxis] * part
        leverage[apart] = np.inf
        return mean, leverage

    def _factored(self) -> tuple[Floats, Floats, Floats]:
        """Return L and D of A = L D L', and L^-1 b; a pivot is 0 where a column depends on others.

        Then the whole rest of the column is 0, since A has no negative squares.
        """
        rest, targets = self._squares.astype(float), self._products.astype(float)
        lower, pivots = np.zeros_like(rest), np.zeros_like(targets)
        for k, own in enumerate(np.diag(self._squares).tolist()):
            pivot = float(rest[k, k])
            if pivot <= _LEAST_PIVOT * own:
                continue
            pivots[k] = pivot
            lower[k + 1 :, k] = column = rest[k + 1 :, k] / pivot
            rest[k + 1 :, k + 1 :] -= np.outer(column, rest[k, k + 1 :])
            targets[k + 1 :] -= column * targets[k]
        return lower, pivots, targets


_HEADER_STRUCT = struct.Struct("<ddQQ")
_MOST_SEGMENTS = 1_000
_STEP = 2.0**-30  # of the range of labels, to which residuals are rounded


class VennMulticalibration(Calibrator["Sequence[float]", float, MeanInterval, MeanIntervals]):
    """Correct a model in overlapping segments at once, with an interval for the mean.

    A score is the prediction f of a fixed model, then 0 or 1 for each segment: whether the
    observation belongs to it. The correction is linear in the indicators, and a constant for all.
    It is fitted by least squares with the query added, with the lowest and with the highest
    possible label.

    Parameters
    ----------
    y_min, y_max
        Bounds of the label, which must be known in advance.
    segments
        Number of segments; an observation may belong to any of them, to several, or to none.
    window
        Keep only the last `window` labels; all by default.

    Raises
    ------
    ParameterError
        If the bounds are not finite or not in order, or a number is not a positive whole one.

    Notes
    -----
    **Guarantee.** With f and segments fixed before the calibration data and exchangeable
    observations, the interval contains a number V, the fit with the true label, for which the mean
    of label minus V is 0: in all, and in each segment. It holds at any number of labels, and with a
    `window`. A model that learns from the same labels, and drift, void it.

    **Few labels.** As long as no labels determine the correction of an observation, its interval is
    [`y_min`, `y_max`], as for the first observation of a segment. Segments that are combinations of
    others, such as all of a partition, are no obstacle.

    **Ends** may lie outside the bounds of the label where the model does, or nearly.

    **Removal.** The calibrator keeps label minus f. So it removes any observation in the same
    segments with the same difference.

    **Rounding.** Label minus f is rounded to a multiple of (y_max - y_min) 2**-30. Sums are exact,
    and an end is right to about 12 digits. What is removed or forgotten leaves no trace.

    **Cost.** For d segments a prediction after a label takes about d**3 / 3 multiplications, others
    d**2, and so does a label: both together 0.3 ms for 10 segments and 1.2 ms for 50.

    References
    ----------
    van der Laan & Alaa (2025), Generalized Venn and Venn-Abers calibration, arXiv 2502.05676.

    Examples
    --------
    >>> from abers.batch import VennMulticalibration
    >>> calibrator = VennMulticalibration(0.0, 1.0, segments=2)
    >>> in_segments = [(1, 0), (1, 1), (0, 1), (0, 0)] * 50
    >>> labels = [1.0, 1.0, 0.0, 0.0] * 50
    >>> calibrator.learn_many([(0.5, *row) for row in in_segments], labels)
    >>> low, high = calibrator.predict_one((0.5, 1, 0))
    >>> round(low, 3), round(high, 3)
    (0.985, 1.0)
    """

    capabilities = Capabilities(
        task="regression", score="segments", answer="mean", weights=False, forgetting=("window",)
    )
    _magic: ClassVar[bytes] = b"abersMC\x01"
    _width: ClassVar[int] = 2
    _lowest = math.nan  # a number is not all of a score
    _refusal: ClassVar[type[InputError]] = LabelError

    def __init__(
        self, y_min: float, y_max: float, segments: int, window: int | None = None
    ) -> None:
        super().__init__(window)
        self._bounds = checked_bounds(y_min, y_max)
        self._segments = validation.count(segments, "segments", 1)
        if self._segments > _MOST_SEGMENTS:
            msg = f"segments={segments} is above {_MOST_SEGMENTS}; merge or drop segments"
            raise ParameterError(msg)
        self._begin()

    def _begin(self) -> None:
        self._sums = SegmentSums(self._segments)
        self._kept: Counter[Row] = Counter()
        self._arrived: deque[Row] = deque()  # with a window, oldest first
        self._size = 0

    @property
    def y_min(self) -> float:
        """The lowest possible label."""
        return self._bounds[0]

    @property
    def y_max(self) -> float:
        """The highest possible label."""
        return self._bounds[1]

    @property
    def segments(self) -> int:
        """Number of segments."""
        return self._segments

    def __len__(self) -> int:
        """Count the observations kept."""
        return self._size

    def _options(self) -> list[str]:
        return [*(f"{end!r}" for end in self._bounds), f"{self._segments}", *super()._options()]

    # Checks

    def _score(self, score: object) -> list[float]:
        table = self._scores([score])
        row: list[float] = table[:, 0].tolist()
        return row

    def _scores(self, scores: ArrayLike) -> Floats:
        width = 1 + self._segments
        rule = f"a score is a prediction and {self._segments} indicators of segments"
        table = validation.array(scores, rule)
        if table.ndim and not len(table):
            return np.empty((width, 0))
        if table.ndim != 2 or table.shape[1] != width:  # noqa: PLR2004 - a row each
            msg = f"{rule}: {width} numbers, not an array of shape {table.shape[1:]}"
            raise ParameterError(msg)
        columns = np.stack([validation.scores(column) for column in table.T])
        bad = np.argwhere((columns[1:] != 0.0) & (columns[1:] != 1.0))
        if bad.size:
            at, row = bad[0].tolist()
            msg = f"row {row}: segment {at} is {columns[1 + at, row]:g}; give 0 or 1"
            raise ScoreError(msg)
        return columns

    def _label(self, label: object) -> float:
        y = validation.real(label)
        if not self._bounds[0] <= y <= self._bounds[1]:
            msg = f"label {y!r} lies outside the bounds {self._bounds}; widen the bounds"
            raise LabelError(msg)
        return y

    def _labels(self, labels: ArrayLike, length: int) -> Floats:
        column = validation.reals(labels, length)
        outside = np.flatnonzero((column < self._bounds[0]) | (column > self._bounds[1]))
        if outside.size:
            row = int(outside[0])
            validation.at(f"row {row}", self._label, float(column[row]))
        return column

    def _step_labels(self, labels: ArrayLike, kinds: Bytes) -> Floats:
        column = np.array(labels, object)
        if column.shape == kinds.shape:
            column[(kinds != REMOVE) & (kinds != LEARN)] = self._bounds[0]
        return self._labels(column, len(kinds))

    # The mathematics

    def _predict(
        self, score: Sequence[float], weight: int, time: float, number: int
    ) -> MeanInterval:
        low, high = self._intervals(np.array(score)[:, np.newaxis])
        return MeanInterval(float(low[0]), float(high[0]))

    def _intervals(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return both ends for each column: a prediction, and its indicators."""
        rows = scores.copy()
        rows[0] = 1.0
        mean, leverage = self._sums.query(rows)
        lo, hi = self._bounds
        apart = np.isinf(leverage)
        share = np.where(apart, 0.0, leverage)
        fitted = scores[0] + mean * _STEP * (hi - lo)
        low, high = ((fitted + share * end) / (1.0 + share) for end in (lo, hi))
        return np.where(apart, lo, low), np.where(apart, hi, high)

    def _row(self, score: Sequence[float], label: float) -> Row | None:
        """Return what is kept of an observation; None if its residual is too large for any sum."""
        lo, hi = self._bounds
        units = (label - score[0]) / (hi - lo) / _STEP
        if not abs(units) <= MOST:
            return None
        return bytes(int(one) for one in score[1:]), round(units)

    def _learn(
        self, score: Sequence[float], label: float, weight: int, time: float, number: int
    ) -> bool:
        row = self._row(score, label)
        if row is None or self._sums.total + abs(row[1]) > MOST:
            return False
        if self.window is not None and self._size == self.window:
            self._add(self._arrived.popleft(), -1)
        if self.window is not None:
            self._arrived.append(row)
        self._add(row, 1)
        return True

    def _remove(self, score: Sequence[float], label: float, weight: int) -> bool:
        row = self._row(score, label)
        if row is None or not self._kept[row]:
            return False
        self._add(row, -1)
        return True

    def _add(self, row: Row, count: int) -> None:
        self._kept[row] += count
        if not self._kept[row]:
            del self._kept[row]
        self._size += count
        self._sums.add(np.array([1, *row[0]], np.int64), row[1], count)

    def _take(self, steps: Steps, held: Integers | None) -> tuple[MeanIntervals, int]:
        if (steps.kinds == PREDICT).all():
            if held is not None:
                held[:] = self._size
            return MeanIntervals(*self._intervals(steps.scores)), len(steps.kinds)
        answers: MeanIntervals
        answers, done = super()._take(steps, held)
        return answers, done

    def _predictions(self, *columns: Floats) -> MeanIntervals:
        return MeanIntervals(*columns)

    def _must_copy(self, steps: Steps) -> bool:
        """Return whether a step may be refused: the removal of what is not there, or a sum."""
        lo, hi = self._bounds
        learned = steps.kinds == LEARN
        with np.errstate(over="ignore"):
            residuals = np.abs(steps.labels[learned] - steps.scores[0, learned])
            most = self._sums.total + float((residuals / (hi - lo) / _STEP).sum())
        return bool((steps.kinds == REMOVE).any()) or not most < MOST / 2

    def _overflow(self) -> str:
        return "the residuals would pass 64 bits; give predictions near the bounds of the label"

    # Saved state

    def _save(self) -> bytes:
        """Return bounds and options, then a row for each observation, or each kind of them."""
        rows = list(self._arrived) if self.window else sorted(self._kept)
        counts = [1] * len(rows) if self.window else [self._kept[row] for row in rows]
        columns = [
            np.frombuffer(b"".join(row[0] for row in rows), np.uint8),
            np.array([row[1] for row in rows], float),
            np.array(counts, np.uint64),
        ]
        header = _HEADER_STRUCT.pack(*self._bounds, self._segments, self.window or 0)
        return b"".join([header, *(part for column in columns for part in packed(column))])

    def _load(self, payload: memoryview) -> None:
        lo, hi, segments, window = _HEADER_STRUCT.unpack_from(payload)
        require(0 < segments <= _MOST_SEGMENTS and window < 1 << 63, "header")
        columns = parsed(payload, _HEADER_STRUCT.size)
        require("".join(letter for letter, _ in columns) == "BdQ", "columns")
        indicators, residuals, counts = (column for _, column in columns)
        n = len(residuals)
        require(len(counts) == n and len(indicators) == n * segments, "columns")
        require((indicators <= 1).all() and (counts > 0).all(), "rows")
        require(
            (np.abs(residuals) <= MOST).all() and (residuals == np.rint(residuals)).all(), "rows"
        )
        total = sum(
            count * abs(int(units))
            for units, count in zip(residuals.tolist(), counts.tolist(), strict=True)
        )
        require(total <= MOST and sum(counts.tolist()) <= 1 << 48, "sums")
        require(not window or (n <= window and (counts == 1).all()), "window")
        self._forget_by(Forgetting(window or None))
        self._bounds, self._segments = checked_bounds(lo, hi), segments
        self._begin()
        table = indicators.reshape(n, segments)
        for row, units, count in zip(table, residuals.tolist(), counts.tolist(), strict=True):
            kept = (row.tobytes(), int(units))
            if window:
                self._arrived.append(kept)
            self._add(kept, count)
