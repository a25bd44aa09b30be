"""Inductive Venn-Abers predictive distributions, updated one labelled observation at a time.

A predictive set of the chosen backend, or a grid of calibration sets, does the mathematics.

Predictive sets of the core in their saved form: header, grid, and what is remembered. The bytes are
a function of what is remembered alone, and bytes that no calibrator could have written are refused.

After a fixed header come columns (see `abers.arrays`): the grid, empty without one, then score,
label, weight and, with an age, time of what is remembered: without forgetting the distinct pairs of
score and label in order, with a window the observations by arrival, with an age those in the order
of time, score, label, weight.

A fixed grid of thresholds, kept up to date with every label. A CDF at a threshold is the
probability of a label up to it, which falls as the score grows; so each threshold has a binary
calibration set of negated scores. Its two probabilities are the lower and the upper CDF there, to
the last bit.

Between two thresholds the CDFs are bracketed: the lower stays at its value at the left threshold,
the upper has its value at the right threshold already just after the left.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np

from abers import validation
from abers.arrays import ONE, is_whole, narrow, packed, parsed, total, widened
from abers.backends import core
from abers.base import NO_TIME, Capabilities
from abers.cdfs import merged, reached
from abers.exceptions import ParameterError
from abers.mathematics import PREDICT, Forgetting, Steps
from abers.regression.distribution import PredictiveDistribution
from abers.regression.distribution_calibrator import (
    NO_LEVELS,
    DistributionCalibrator,
    Quantiles,
    support_ends,
)
from abers.serialization import MAX_COUNT, require
from abers.validation import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from abers._core import CalibrationSet, PredictiveSet
    from abers.arrays import Bytes, Floats, Integers

    Rows: TypeAlias = tuple[Floats, Floats, Integers, Floats]
    Answer: TypeAlias = tuple[float, float, Floats]
    Held: TypeAlias = "PredictiveSet | GridSet"

__all__ = ["IVAPR", "GridSet", "Header", "Quantiles", "dump_held", "held_rows", "load_held"]

_HEADER_STRUCT = struct.Struct("<QddddQQB")


class Header(NamedTuple):
    """The values saved before the columns."""

    window: int
    max_age: float
    half_life: float
    lo: float  # ends of the support; infinite without one
    hi: float
    size: int
    late: int
    unit: int


def held_rows(held: PredictiveSet) -> Rows:
    """Return what is remembered: scores, labels, weights and times."""
    forgets = held.window or held.lifetime
    n = held.observation_count() if forgets else held.pooled_count()
    columns = (np.empty(n), np.empty(n), np.empty(n, np.int64), np.full(n, np.nan))
    if forgets:
        held.observations(*columns)
    else:
        held.pooled(*columns[:3])
    return columns


def dump_held(held: PredictiveSet, support: tuple[float, float], grid: Floats) -> bytes:
    """Return the saved form of what a calibrator remembers."""
    scores, labels, weights, times = held_rows(held)
    unit = is_whole(weights)
    columns = [grid, scores, labels, narrow(weights, unit=unit)]
    columns += [times] if held.lifetime else []
    max_age = 0.0 if held.half_life else held.lifetime
    header = Header(held.window, max_age, held.half_life, *support, held.size, held.late, unit)
    return b"".join([_HEADER_STRUCT.pack(*header), *(part for c in columns for part in packed(c))])


def load_held(payload: bytes | memoryview) -> tuple[PredictiveSet, Header, Floats]:
    """Return the set that `dump` saved, its header and its grid; refuse other bytes."""
    header = Header(*_HEADER_STRUCT.unpack_from(payload))
    columns = parsed(payload, _HEADER_STRUCT.size)
    _check_header(header)
    ages = (header.max_age + 0.0, header.half_life + 0.0)  # no calibrator writes -0.0
    shape = "dddu" + "d" * any(ages)
    kinds = "".join("d" if letter == "d" else "u" for letter, _ in columns)
    require(kinds == shape and len({len(column) for _, column in columns[1:]}) == 1, "columns")
    held: PredictiveSet = core.PredictiveSet(header.window, *ages)
    arrays = [column for _, column in columns]
    grid = arrays[0] + 0.0
    require(bool(np.isfinite(grid).all() and (grid[:-1] < grid[1:]).all()), "grid")
    require(((header.lo <= grid) & (grid <= header.hi)).all(), "support")
    _fill(held, header, arrays[1:])
    return held, header, grid


def _check_header(header: Header) -> None:
    ages = (header.max_age, header.half_life)
    sound = (
        sum(map(bool, header[:3])) <= 1
        and all(math.isfinite(age) and age >= 0 for age in ages)
        and header.window < 1 << 63
        and max(header.size, header.late) <= MAX_COUNT
        and header.unit in {0, 1}
        and header.lo <= header.hi
        and ((any(ages) and header.size > 0) or not header.late)
    )
    require(sound, "header")


def _fill(held: PredictiveSet, header: Header, columns: list[NDArray[Any]]) -> None:
    """Check saved columns, and load them into an empty set."""
    scores, labels = columns[0] + 0.0, columns[1] + 0.0
    units = widened(columns[2], held.limit, unit=bool(header.unit))
    times = columns[3] + 0.0 if held.lifetime else np.full(len(scores), np.nan)
    require(bool(np.isfinite(scores).all() and np.isfinite(labels).all()), "scores or labels")
    require(bool(((header.lo <= labels) & (labels <= header.hi)).all()), "support")
    sound = units is not None and bool((units > 0).all()) and total(units) <= held.limit
    require(sound, "weights")
    units = cast("Integers", units)
    if not (held.window or held.lifetime):
        weight = total(units)
        require(header.size <= weight and bool(header.size) == bool(weight), "weights")
        ascends = (scores[:-1] < scores[1:]) | (
            (scores[:-1] == scores[1:]) & (labels[:-1] < labels[1:])
        )
        require(bool(ascends.all()), "order")
        held.load_pooled(scores, labels, units, header.size)
        return
    if held.lifetime:
        require(bool(np.isfinite(times).all()), "times")
        require(not len(times) or times[0] >= times[-1] - held.lifetime, "times")
        furthest = float(np.abs(times).max(initial=0.0))
        require(not held.half_life or validation.resolvable(furthest, held.half_life), "times")
    else:
        require(len(scores) <= held.window, "window")
    held.load_observations(scores, labels, units, times, header.late)


_CHUNK = 4096  # steps of a run with CDFs in memory at once


class GridSet:
    """The CDFs at the thresholds of a grid, and the `PredictiveSet` that it is filled from."""

    def __init__(self, memory: PredictiveSet, thresholds: Floats) -> None:
        """Make a calibration set for each threshold, filled with what `memory` remembers."""
        self.memory, self.thresholds = memory, thresholds
        max_age = 0.0 if memory.half_life else memory.lifetime
        rule = (memory.window, max_age, memory.half_life)
        self._sets: list[CalibrationSet] = [core.CalibrationSet(*rule) for _ in thresholds]
        # Where a CDF steps: the lower at a threshold, the upper just after it.
        with np.errstate(over="ignore"):  # after the largest double comes infinity
            after = np.nextafter(thresholds, np.inf)
        self._points = np.concatenate(([-np.inf], np.stack([thresholds, after]).T.ravel()))
        if memory.size:
            self._fill()

    @property
    def size(self) -> int:
        """Number of observations kept."""
        return self.memory.size

    @property
    def total(self) -> int:
        """Total weight as it was learned."""
        return self.memory.total

    @property
    def late(self) -> int:
        """Number of labels that came too late."""
        return self.memory.late

    def _fill(self) -> None:
        """Fill the set of each threshold from the observations in memory."""
        scores, labels, weights, times = held_rows(self.memory)
        if self.memory.window or self.memory.lifetime:
            for t, cdf in zip(self.thresholds.tolist(), self._sets, strict=True):
                cdf.load_observations(-scores + 0.0, _up_to(labels, t), weights, times, self.late)
            return
        starts = np.flatnonzero(np.append(True, scores[1:] != scores[:-1]))
        groups = np.ascontiguousarray(-scores[starts][::-1]) + 0.0
        for t, cdf in zip(self.thresholds.tolist(), self._sets, strict=True):
            below = np.where(labels <= t, weights, 0)
            above, up_to = (
                np.add.reduceat(part, starts)[::-1].copy() for part in (weights - below, below)
            )
            cdf.load_groups(groups, above, up_to, self.size)

    def learn(self, score: float, label: float, weight: int, time: float) -> bool:
        """Learn an observation at every threshold."""
        if not self.memory.learn(score, label, weight, time):
            return False
        for t, cdf in zip(self.thresholds.tolist(), self._sets, strict=True):
            cdf.learn(-score + 0.0, label <= t, weight, time)
        return True

    def remove(self, score: float, label: float, weight: int) -> bool:
        """Remove an observation at every threshold."""
        if not self.memory.remove(score, label, weight):
            return False
        for t, cdf in zip(self.thresholds.tolist(), self._sets, strict=True):
            cdf.remove(-score + 0.0, label <= t, weight)
        return True

    def predict(self, score: float, time: float = math.nan) -> Answer:
        """Return both CDFs at `score`, bracketed between the thresholds."""
        pairs = [cdf.predict(-score + 0.0, time=time) for cdf in self._sets]
        lower, upper = np.array(pairs).T
        return self._answer(lower, upper)

    def quantile(self, score: float, level: float, time: float = math.nan) -> float:
        """Return the quantile of the bracketed merged CDF at `score`."""
        return float(reached(self.predict(score, time)[2], np.array([level]))[0, 0])

    def predict_many(self, scores: Floats, times: Floats | None) -> list[Answer]:
        """Return `predict` of every score."""
        kinds = np.full(len(scores), PREDICT, np.uint8)
        lower, upper = self._cdfs(kinds, scores, scores, None, times)
        return [self._answer(*pair) for pair in zip(lower.T, upper.T, strict=True)]

    def run(
        self,
        steps: Bytes,
        scores: Floats,
        labels: Floats,
        weights: Integers | None,
        times: Floats | None,
        levels: Floats,
        quantiles: Floats,
        held: Integers | None = None,
    ) -> int:
        """Run steps as `PredictiveSet.run` does; the quantiles are those of the bracketed CDFs."""
        none = np.empty((3, len(steps), 0))
        done = self.memory.run(steps, scores, labels, weights, times, levels[:0], none, held)
        for start in range(0, done, _CHUNK):
            part = slice(start, min(start + _CHUNK, done))
            lower, upper = self._cdfs(
                steps[part],
                scores[part],
                labels[part],
                None if weights is None else weights[part],
                None if times is None else times[part],
            )
            predicts = steps[part] == PREDICT
            quantiles[:, part][:, predicts] = self._quantiles(
                lower[:, predicts], upper[:, predicts], levels
            )
        return done

    def _cdfs(
        self,
        steps: Bytes,
        scores: Floats,
        labels: Floats,
        weights: Integers | None,
        times: Floats | None,
    ) -> tuple[Floats, Floats]:
        """Run steps at every threshold; return a row for each threshold, a column for each step."""
        lower, upper = np.full((2, len(self._sets), len(steps)), np.nan)
        if weights is not None:  # a prediction is for a label of weight 1
            weights = np.where(steps == PREDICT, ONE, weights)
        for i, (t, cdf) in enumerate(zip(self.thresholds.tolist(), self._sets, strict=True)):
            below = _up_to(labels, t)
            cdf.run(steps, -scores + 0.0, below, weights, times, lower[i], upper[i])
        return lower, upper

    def _bracketed(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return the values of both CDFs before and from each point on, along the first axis."""
        ends = np.ones((1, *upper.shape[1:]))
        most = np.concatenate([np.repeat(upper, 2, axis=0), ends])
        least = np.concatenate([0.0 * ends, np.repeat(lower, 2, axis=0)])
        return least, most

    def _answer(self, lower: Floats, upper: Floats) -> Answer:
        least, most = self._bracketed(lower, upper)
        steps = np.flatnonzero(np.append(True, (least[1:] != least[:-1]) | (most[1:] != most[:-1])))
        table = np.stack([self._points[steps], least[steps], most[steps]])
        return float(self._points[1]), float(self._points[-1]), table

    def _quantiles(self, lower: Floats, upper: Floats, levels: Floats) -> NDArray[np.float64]:
        least, most = self._bracketed(lower, upper)
        points = np.append(self._points, np.inf)
        # The number of values below a level is the index of the first that reaches it.
        cdfs = (merged(least, most), most, least)
        found = np.empty((3, lower.shape[1], len(levels)))
        for i, cdf in enumerate(cdfs):
            for j, level in enumerate(levels):
                found[i, :, j] = points[(cdf < level).sum(axis=0)]
        return found

    def check(self) -> None:
        """Raise an AssertionError if an invariant does not hold."""
        self.memory.check()
        for cdf in self._sets:
            cdf.check()
            assert cdf.size == self.size, (cdf.size, self.size)  # noqa: S101


def _up_to(labels: Floats, t: float) -> Bytes:
    return (labels <= t).astype(np.uint8)


class IVAPR(DistributionCalibrator[float]):
    """Turn the scores of any regression model into calibrated predictive distributions.

    The inductive Venn-Abers predictor for regression: at every threshold t the binary Venn-Abers
    prediction of "the label is above t", exact, so that an observation gets a lower and an upper
    predictive CDF. The score may be any output of the model that is larger for larger labels, in
    any unit.

    At most one of `window`, `max_age` and `half_life` may be given; with none, everything is kept.

    Parameters
    ----------
    window, max_age, half_life
        How to forget, as of `abers.VennAbers`.
    support
        Where `PredictiveDistribution` puts the masses beyond the labels seen, a pair of finite
        ends between which all labels lie; by default the smallest and the largest label kept, or
        the first and the last of `grid`.
    grid
        Ascending thresholds at which alone the CDFs are kept, for streams with many predictions:
        exact there, bracketed between. By default every label kept is one.

    Raises
    ------
    ParameterError
        If more than one of the three is given, or an option is invalid.

    Notes
    -----
    **Guarantee.** With a scorer fixed before the calibration data and exchangeable observations of
    equal weight, at every step, also with a `window`:

    - At every threshold one of the two CDFs, the one that belongs to the true label, is perfectly
      calibrated (Vovk & Petej 2014, Theorem 1, for each threshold).
    - For every level q at once, P(label < low) <= q and P(label > high) <= 1 - q, where low is the
      smallest and high the largest t at which a CDF of the band can reach q. So
      ``interval(level, band=True)`` covers the label with a probability of at least `level`.

    Proof. Let F be the CDF that the fit with the true label has at the score, and Q the smallest t
    at which F reaches q. F lies in the band, so low <= Q <= high. The fit is symmetric in its
    n + 1 observations, and its quantiles are the isotonic regressions of the quantile: among the
    observations with one value of Q, at most a share q of the labels is below it, and at most
    1 - q above. The query is equally likely to be any of them. So this holds given Q too, which is
    not seen, but lies in [low, high]; the coverage is not conditional on both ends together.

    Infinite ends are part of it. Quantiles of the merged CDF carry no guarantee; their coverage is
    close to their level in practice. A half-life, unequal weights, a scorer that keeps learning,
    labels that come late or never because of their value, or drift void all of it.

    **Ties** in the score and in the label are pooled; the order of arrival never matters.

    **Cost.** A prediction reads the observations near its score, as many as can matter (about
    n^(2/3) of n where the score tells much, in the worst case all), and a few quantiles take a
    fraction of the whole band. With `grid` a prediction takes a few microseconds
    for each of them, and so does a label.

    **Weights and times** are as in `abers.VennAbers`. **Threads** may share a calibrator.

    References
    ----------
    Petej (2018), Inductive Venn-Abers prediction for regression, Algorithm 2, here without its
    quadratic precomputation; Henzi, Ziegel & Gneiting (2021), Isotonic distributional regression,
    which lies in the band; Allen, Gavrilopoulos, Henzi, Kleger & Ziegel (2025), In-sample
    calibration yields conformal calibration guarantees: this band is their conformal isotonic
    distributional regression.

    Examples
    --------
    >>> from abers.regression import IVAPR
    >>> calibrator = IVAPR(support=(0.0, 10.0))
    >>> calibrator.learn_many([1.0, 2.0, 3.0, 4.0], [1.5, 1.0, 4.0, 3.0])
    >>> predicted = calibrator.predict_one(3.5)
    >>> predicted.lower(3.0), predicted.upper(3.0), round(predicted.quantile(0.5), 3)
    (0.3333333333333333, 0.6666666666666666, 3.0)
    >>> [predicted.quantile(0.5) for predicted in calibrator.predict_many([1.5, 3.5])]
    [1.0, 3.0]
    >>> calibrator.quantile_one(3.5, 0.5), calibrator.quantiles_many([3.5], [0.5]).high.tolist()
    (3.0, [[4.0]])
    >>> predicted.interval(0.3, band=True), predicted.interval(0.9, band=True)
    ((1.0, inf), (-inf, inf))
    """

    capabilities = Capabilities(task="regression", answer="distribution", columns=("levels",))
    _magic: ClassVar[bytes] = b"abersIR\x01"

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        *,
        support: tuple[float, float] | None = None,
        grid: ArrayLike | None = None,
    ) -> None:
        super().__init__(window, max_age, half_life)
        rule, self._ends, self._grid = self._forgetting, support_ends(support), _grid(grid)
        self._hold(core.PredictiveSet(rule.window or 0, rule.max_age or 0.0, rule.half_life or 0.0))

    def _hold(self, memory: PredictiveSet) -> None:
        self._bounded = self._ends != (-np.inf, np.inf)
        self._memory, grid = memory, self._grid
        self._held: Held = GridSet(memory, grid) if len(grid) else memory

    @property
    def support(self) -> tuple[float, float] | None:
        """The ends between which all labels lie, None if they were not given."""
        return self._ends if self._bounded else None

    @property
    def grid(self) -> Floats | None:
        """The thresholds at which alone the CDFs are kept, None without a grid."""
        return self._grid.copy() if len(self._grid) else None

    def _options(self) -> list[str]:
        support = [f"support={self._ends}"] if self._bounded else []
        grid = [f"grid of {len(self._grid)}"] if len(self._grid) else []
        return [*super()._options(), *support, *grid]

    def quantile_one(self, score: float, q: float, time: float | None = None) -> float:
        """Predict one quantile for one score, without making the whole distribution.

        Parameters
        ----------
        score, time
            As in `predict_one`.
        q
            The level, in (0, 1).

        Returns
        -------
        float
            The same as ``predict_one(score, time).quantile(q)``.

        Raises
        ------
        ScoreError, TimeError, ParameterError
            If an argument cannot be used.
        """
        score = validation.score(score)
        when = NO_TIME if time is None else self._forgetting.time(time)
        (level,) = validation.level_list([q]).tolist()
        with self._lock:
            return self._held.quantile(score, level, when)

    def predict_many(  # type: ignore[override]  # not quantiles
        self,
        scores: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
    ) -> list[PredictiveDistribution]:
        """Return the distributions, a list, for an array of scores; only times change them."""
        column = validation.scores(scores)
        self._weights(weights, len(column))
        when = self._forgetting.times(times, len(column), required=False)
        with self._lock:
            answers = self._held.predict_many(column, when)
        return [self._distribution(*answer) for answer in answers]

    def quantiles_many(
        self, scores: ArrayLike, levels: ArrayLike, *, times: ArrayLike | None = None
    ) -> Quantiles:
        """Predict quantiles for an array of scores, without building the whole distributions.

        Parameters
        ----------
        scores
            Array of shape (n,).
        levels
            Array of shape (k,) of levels in (0, 1).
        times
            Array of shape (n,), as in `predict_one`.

        Returns
        -------
        Quantiles
            Three arrays of shape (n, k).

        Raises
        ------
        InputError
            If a row or a level cannot be used.
        """
        column = validation.scores(scores)
        when = self._forgetting.times(times, len(column), required=False)
        kinds = np.full(len(column), PREDICT, np.uint8)
        steps = Steps(kinds, column, column, None, when, extra=validation.level_list(levels))
        found: Quantiles = self._transact(self._take, steps)
        return found

    def _predict(
        self, score: float, weight: int, time: float, number: int
    ) -> PredictiveDistribution:
        return self._distribution(*self._held.predict(score, time))

    def _take(self, steps: Steps, held: Integers | None) -> tuple[Quantiles, int]:
        levels = NO_LEVELS if steps.extra is None else steps.extra
        quantiles = np.full((3, len(steps.kinds), len(levels)), np.nan)
        done = self._held.run(*steps[:5], levels, quantiles, held)
        return Quantiles(*quantiles), done

    def _save(self) -> bytes:
        return dump_held(self._memory, self._ends, self._grid)

    def _load(self, payload: memoryview) -> None:
        memory, header, self._grid = load_held(payload)
        self._forget_by(Forgetting.of(memory))
        self._ends = header.lo, header.hi
        self._hold(memory)

    def _distribution(
        self, smallest: float, largest: float, table: Floats
    ) -> PredictiveDistribution:
        ends = self._ends if self._bounded else (smallest, largest)
        return PredictiveDistribution(table[0, 1:], table[1], table[2], support=ends)


def _grid(given: ArrayLike | None) -> Floats:
    if given is None:
        return np.empty(0)
    grid = validation.numbers(given, "grid") + 0.0
    apart = grid.ndim == 1 and (np.nextafter(grid[:-1], np.inf) < grid[1:]).all()
    if not grid.size or not apart or not np.isfinite(grid).all():
        msg = f"grid={shown(given)} is not a list of ascending finite numbers; sort them"
        raise ParameterError(msg)
    return grid
