"""Inductive Venn-Abers predictive distributions, updated one labelled observation at a time.

Governing rule: as in `abers.calibration.venn_abers`: this module checks, converts and explains; a
set of the chosen backend, or a grid of them, does the mathematics; and bad input changes nothing.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeAlias

import numpy as np

from abers._arrays import LEARN, ONE, PREDICT, REMOVE, unmasked
from abers._backend import core
from abers._sealed import seal, unseal
from abers._shown import shown
from abers.calibration import _checks
from abers.calibration._forgetting import Forgetting
from abers.exceptions import (
    ForgettingError,
    LabelError,
    NotHeldError,
    ParameterError,
    WeightError,
)
from abers.regression import _asked, _codec
from abers.regression._grid import GridSet
from abers.regression.distribution import PredictiveDistribution

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers._arrays import Bytes, Floats, Integers
    from abers._core import PredictiveSet

    Held: TypeAlias = PredictiveSet | GridSet

__all__ = ["IVAPR", "Quantiles"]

_NO_TIME = float("nan")
_NO_LEVELS = np.empty(0)


class Quantiles(NamedTuple):
    """Quantiles of predictions, a row an observation and a column a level.

    Attributes
    ----------
    merged
        Those of the merged CDF.
    low
        Those of the upper CDF: no CDF in the band has a smaller one.
    high
        Those of the lower CDF: no CDF in the band has a larger one.
    """

    merged: Floats
    low: Floats
    high: Floats


class _Steps(NamedTuple):
    """Checked columns, a row a step, as `PredictiveSet.run` takes them."""

    kinds: Bytes
    scores: Floats
    labels: Floats
    units: Integers | None
    when: Floats | None


class IVAPR:
    """Turn the scores of any regression model into calibrated predictive distributions.

    The inductive Venn-Abers predictor for regression: at every threshold t the binary Venn-Abers
    prediction of "the label is above t", exact, so that an observation gets a lower and an upper
    predictive CDF. The score is whatever the model says, larger for larger labels; it needs not be
    in the unit of the label.

    At most one of `window`, `max_age` and `half_life` may be given; with none, everything is kept.

    Parameters
    ----------
    window
        Keep only the last `window` learned observations.
    max_age
        Keep only observations whose event time is at most `max_age` before the newest time seen,
        in the unit of the times.
    half_life
        Let the weight of an observation halve every `half_life` of event time; after 30 half-lives
        it is dropped.
    support
        Where `PredictiveDistribution` puts the masses beyond the labels seen, a pair of finite
        ends between which all labels lie; by default the smallest and the largest label held, or
        the first and the last of `thresholds`.
    thresholds
        Ascending thresholds at which alone the CDFs are kept, for streams with many predictions:
        exact there, bracketed between. By default every label held is one.

    Raises
    ------
    ParameterError
        If more than one of the three is given, or an option makes no sense.

    Notes
    -----
    **Guarantee.** With a scorer fixed before the calibration data and exchangeable observations of
    equal weight, at every threshold and every step one of the two CDFs, the one that belongs to
    the true label, is perfectly calibrated, also with a `window` (Vovk & Petej 2014, Theorem 1,
    for each threshold). It holds at one threshold at a time, not for quantiles or intervals, whose
    coverage is close to their level in practice. A half-life, unequal weights, a scorer that keeps
    learning, or drift void it.

    **Ties** in the score and in the label are pooled; the order of arrival never matters.

    **Cost.** A prediction reads the observations near its score, as many as can matter (about
    n^(2/3) of n where the score tells much, in the worst case all), and a few quantiles take a
    fraction of the whole band. With `thresholds` a prediction takes a few microseconds
    for each of them, and so does a label.

    **Weights and times** are as in `abers.VennAbers`. **Threads** may share a calibrator.

    References
    ----------
    Petej (2018), Inductive Venn-Abers prediction for regression, Algorithm 2, here without its
    quadratic precomputation; Henzi, Ziegel & Gneiting (2021), Isotonic distributional regression,
    which lies in the band.

    Examples
    --------
    >>> from abers.regression import IVAPR
    >>> calibrator = IVAPR(support=(0.0, 10.0))
    >>> calibrator.learn_many([1.0, 2.0, 3.0, 4.0], [1.5, 1.0, 4.0, 3.0])
    >>> predicted = calibrator.predict_one(3.5)
    >>> predicted.lower(3.0), predicted.upper(3.0), round(predicted.quantile(0.5), 3)
    (0.3333333333333333, 0.6666666666666666, 3.0)
    """

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        *,
        support: tuple[float, float] | None = None,
        thresholds: ArrayLike | None = None,
    ) -> None:
        rule, self._ends = Forgetting(window, max_age, half_life), _ends(support)
        memory = core.PredictiveSet(rule.window or 0, rule.max_age or 0.0, rule.half_life or 0.0)
        self._begin(memory, rule, _grid(thresholds))

    def _begin(self, memory: PredictiveSet, rule: Forgetting, thresholds: Floats) -> None:
        self._forgetting, self._thresholds = rule, thresholds
        self._bounded = self._ends != (-np.inf, np.inf)
        self._hold(memory)
        self._heaviest = (memory.limit + 1) // 2
        self._lock = threading.Lock()

    def _hold(self, memory: PredictiveSet) -> None:
        age, grid = self._forgetting.max_age or 0.0, self._thresholds
        self._memory = memory
        self._held: Held = GridSet(memory, age, grid) if len(grid) else memory

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
        return self._held.late

    @property
    def support(self) -> tuple[float, float] | None:
        """The ends between which all labels lie, None if they were not given."""
        return self._ends if self._bounded else None

    @property
    def thresholds(self) -> Floats | None:
        """The fixed grid of thresholds, None without one."""
        return self._thresholds.copy() if len(self._thresholds) else None

    def __len__(self) -> int:
        """Count the observations held."""
        return self._held.size

    def __bool__(self) -> bool:
        """Be true even when nothing is held, so that `calibrator or default` keeps it."""
        return True

    def __repr__(self) -> str:
        """Name the options and the number of observations."""
        options = [str(self._forgetting)] if self._forgetting else []
        options += [f"support={self._ends}"] if self._bounded else []
        options += [f"{len(self._thresholds)} thresholds"] if len(self._thresholds) else []
        return f"<IVAPR({', '.join(options)}) of {len(self)} observations>"

    # One at a time

    def predict_one(self, score: float, time: float | None = None) -> PredictiveDistribution:
        """Predict the distribution of the label for one score.

        Parameters
        ----------
        score
            The model's score, any finite number; larger means larger labels are likelier.
        time
            Event time of the query, only with `max_age` or `half_life`; by default the newest
            time seen.

        Returns
        -------
        PredictiveDistribution
            The band; without any observation it is vacuous.

        Raises
        ------
        ScoreError, TimeError
            If an argument cannot be used.

        Examples
        --------
        >>> IVAPR().predict_one(0.3).interval(0.9)
        (-inf, inf)
        """
        score = _checks.score(score)
        when = _NO_TIME if time is None else self._forgetting.time(time)
        with self._lock:
            answer = self._held.predict(score, when)
        return self._distribution(*answer)

    def quantile_one(self, score: float, q: float, time: float | None = None) -> float:
        """Predict one quantile for one score, faster than by way of the whole distribution.

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

        Examples
        --------
        >>> calibrator = IVAPR()
        >>> calibrator.learn_many([1.0, 2.0, 3.0, 4.0], [1.5, 1.0, 4.0, 3.0])
        >>> calibrator.quantile_one(3.5, 0.5)
        3.0
        """
        score = _checks.score(score)
        when = _NO_TIME if time is None else self._forgetting.time(time)
        (level,) = _levels([q]).tolist()
        with self._lock:
            return self._held.quantile(score, level, when)

    def learn_one(
        self, score: float, y: float, *, weight: float = 1.0, time: float | None = None
    ) -> None:
        """Learn one labelled observation.

        Parameters
        ----------
        score
            The score with which the observation was predicted.
        y
            Its label, any finite number (inside the support, if one was given).
        weight
            Positive weight, rounded to a multiple of 2**-30.
        time
            Event time of the observation; required with `max_age` or `half_life`.

        Raises
        ------
        ScoreError, LabelError, WeightError, TimeError
            If an argument cannot be used; nothing is learned then.
        """
        score, y = _checks.score(score), self._inside(_checks.real(y))
        units = _checks.weight(weight, self._heaviest)
        when = (
            self._forgetting.time(time)
            if self._forgetting.by_time or time is not None
            else _NO_TIME
        )
        with self._lock:
            learned = self._held.learn(score, y, units, when)
        if not learned:
            raise WeightError(self._overflow())

    def remove_one(self, score: float, y: float, *, weight: float = 1.0) -> None:
        """Undo one `learn_one` with the same arguments, exactly.

        Parameters
        ----------
        score, y, weight
            As they were learned. Weights are pooled by score and label, so a different split of
            the same weight can be removed too.

        Raises
        ------
        NotHeldError
            If no such weight is held.
        ForgettingError
            If the calibrator forgets by itself.
        ScoreError, LabelError, WeightError
            If an argument cannot be used.
        """
        self._refuse_if_forgetting()
        score, y = _checks.score(score), _checks.real(y)
        units = _checks.weight(weight, self._heaviest)
        with self._lock:
            removed = self._held.remove(score, y, units)
        if not removed:
            raise NotHeldError(_not_held(score, y, units))

    # Arrays at once

    def predict_many(
        self, scores: ArrayLike, *, times: ArrayLike | None = None
    ) -> list[PredictiveDistribution]:
        """Predict for an array of scores; as `predict_one` for each.

        Parameters
        ----------
        scores
            Array of shape (n,).
        times
            Array of shape (n,), as in `predict_one`.

        Returns
        -------
        list of PredictiveDistribution
            One a score.

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one.

        Examples
        --------
        >>> calibrator = IVAPR()
        >>> calibrator.learn_many([1.0, 2.0, 3.0, 4.0], [1.5, 1.0, 4.0, 3.0])
        >>> [predicted.quantile(0.5) for predicted in calibrator.predict_many([1.5, 3.5])]
        [1.0, 3.0]
        """
        column = _checks.scores(scores)
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

        Examples
        --------
        >>> calibrator = IVAPR()
        >>> calibrator.learn_many([1.0, 2.0, 3.0, 4.0], [1.5, 1.0, 4.0, 3.0])
        >>> calibrator.quantiles_many([3.5], [0.5]).high.tolist()
        [[4.0]]
        """
        column = _checks.scores(scores)
        when = self._forgetting.times(times, len(column), required=False)
        kinds = np.full(len(column), PREDICT, np.uint8)
        return self._run(_Steps(kinds, column, column, None, when), _levels(levels))

    def learn_many(
        self,
        scores: ArrayLike,
        ys: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> None:
        """Learn arrays of observations; as `learn_one` for each, or nothing if a row is bad.

        Parameters
        ----------
        scores, ys
            Arrays of shape (n,).
        weights, times
            Arrays of shape (n,), as in `learn_one`.

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one.
        """
        n = len(column := _checks.scores(scores))
        labels = self._all_inside(_checks.reals(ys, n))
        units, when = self._units(weights, n), self._forgetting.times(times, n, required=True)
        self._run(_Steps(np.full(n, LEARN, np.uint8), column, labels, units, when), _NO_LEVELS)

    def run(  # noqa: PLR0913 - a column each
        self,
        steps: ArrayLike,
        scores: ArrayLike,
        ys: ArrayLike,
        *,
        levels: ArrayLike,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
        held: Integers | None = None,
    ) -> Quantiles:
        """Run any sequence of steps in one call, answering predictions by quantiles.

        Parameters
        ----------
        steps
            Array of shape (n,): 0 predicts, 1 learns, 2 removes.
        scores, ys
            Arrays of shape (n,); the label of a prediction may be anything, NaN too.
        levels
            Array of shape (k,) of levels in (0, 1).
        weights, times
            Arrays of shape (n,), as in `learn_one`.
        held
            An int64 array of shape (n,) to be filled with the number of observations held after
            each step.

        Returns
        -------
        Quantiles
            Three arrays of shape (n, k), NaN where nothing was predicted.

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one, and the calibrator is as it
            was.

        Examples
        --------
        >>> found = IVAPR().run([1, 0, 1, 0], [1.0] * 4, [2.0, 0.0, 3.0, 0.0], levels=[0.5])
        >>> found.merged.tolist()
        [[nan], [2.0], [nan], [2.0]]
        """
        n = len(column := _checks.scores(scores))
        kinds = _checks.steps(steps, n)
        if (kinds == REMOVE).any():
            self._refuse_if_forgetting()
        labels = self._labels_of(ys, kinds)
        units = self._units(weights, n)
        when = self._forgetting.times(times, n, required=bool((kinds == LEARN).any()))
        if held is not None and (held.dtype != np.int64 or held.shape != (n,)):
            msg = f"held is {held.dtype} of shape {held.shape}, not int64 of shape ({n},)"
            raise ParameterError(msg)
        return self._run(_Steps(kinds, column, labels, units, when), _levels(levels), held)

    def _run(self, steps: _Steps, levels: Floats, held: Integers | None = None) -> Quantiles:
        n = len(steps.kinds)
        quantiles = np.full((3, n, len(levels)), np.nan)
        with self._lock:
            risky = self._forgetting and self._may_overflow(steps)
            saved = self._dump() if risky else None
            done = self._held.run(*steps, levels, quantiles, held)
            if done < n:
                self._undo(steps, done, saved)
        if done < n:
            self._refuse(steps, done)
        return Quantiles(*quantiles)

    def _may_overflow(self, steps: _Steps) -> bool:
        units = steps.units
        added = len(steps.kinds) * ONE if units is None else units.sum(dtype=float)
        return self._held.total + float(added) > 2.0**57

    def _undo(self, steps: _Steps, done: int, saved: bytes | None) -> None:
        """Take back the steps of a batch that was refused half-way."""
        if saved is not None:
            self._hold(_codec.load(saved)[0])
            return
        back = np.flatnonzero(steps.kinds[:done] != PREDICT)[::-1]
        inverse = np.where(steps.kinds[back] == LEARN, REMOVE, LEARN).astype(np.uint8)
        units = None if steps.units is None else steps.units[back]
        nothing = np.empty((3, len(back), 0))
        self._held.run(
            inverse, steps.scores[back], steps.labels[back], units, None, _NO_LEVELS, nothing
        )

    def _refuse(self, steps: _Steps, at: int) -> NoReturn:
        if steps.kinds[at] == LEARN:
            msg = f"row {at}: {self._overflow()}"
            raise WeightError(msg)
        units = ONE if steps.units is None else int(steps.units[at])
        what = _not_held(float(steps.scores[at]), float(steps.labels[at]), units)
        msg = f"row {at}: {what}"
        raise NotHeldError(msg)

    # Saving

    def state_bytes(self) -> bytes:
        """Give what is remembered in canonical form: equal for calibrators that answer alike.

        Returns
        -------
        bytes
            The payload of `to_bytes`, without version and checksum.
        """
        with self._lock:
            return self._dump()

    def _dump(self) -> bytes:
        return _codec.dump(
            self._memory, self._forgetting.max_age or 0.0, self._ends, self._thresholds
        )

    def to_bytes(self) -> bytes:
        """Save the calibrator: versioned, with a checksum, the same on both backends.

        Returns
        -------
        bytes
            What `from_bytes` takes.
        """
        return seal(_codec.MAGIC, self.state_bytes())

    @classmethod
    def from_bytes(cls, blob: bytes) -> IVAPR:
        """Restore a calibrator that goes on bit for bit as the saved one would have.

        Parameters
        ----------
        blob
            What `to_bytes` gave.

        Returns
        -------
        IVAPR
            The calibrator.

        Raises
        ------
        StateError
            If the bytes are damaged or of an unknown version.

        Examples
        --------
        >>> calibrator = IVAPR(window=1000)
        >>> calibrator.learn_one(0.7, 1.5)
        >>> IVAPR.from_bytes(calibrator.to_bytes())
        <IVAPR(window=1000) of 1 observations>
        """
        payload = unseal(_codec.MAGIC, bytes(blob), "a saved regression calibrator")
        memory, header, thresholds = _codec.load(payload)
        rule = Forgetting(header.window or None, header.max_age or None, header.half_life or None)
        restored = cls.__new__(cls)
        restored._ends = header.lo, header.hi  # noqa: SLF001 - of the same class
        restored._begin(memory, rule, thresholds)  # noqa: SLF001 - of the same class
        return restored

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        """Pickle and copy by way of the saved form."""
        return type(self).from_bytes, (self.to_bytes(),)

    def _check(self) -> None:
        """Assert every invariant of the core; an AssertionError shows the state."""
        with self._lock:
            self._held.check()

    # Weights, labels and answers

    def _units(self, weights: ArrayLike | None, length: int) -> Integers | None:
        return None if weights is None else _checks.weights(weights, length, self._heaviest)

    def _refuse_if_forgetting(self) -> None:
        if self._forgetting:
            msg = f"{self!r} forgets by itself; only a calibrator that keeps all can remove"
            raise ForgettingError(msg)

    def _overflow(self) -> str:
        return (
            f"the total weight would pass {self._held.limit / ONE:.0f}; "
            "scale the weights down or forget earlier"
        )

    def _inside(self, y: float) -> float:
        if not self._ends[0] <= y <= self._ends[1]:
            msg = f"label {y!r} lies outside the support {self._ends}; widen it"
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

    def _labels_of(self, ys: ArrayLike, kinds: Bytes) -> Floats:
        """Check the labels of a run; those of predictions are put aside."""
        ys = unmasked(ys)
        column = np.array(ys, dtype=None if np.asarray(ys).dtype.kind in "fiub" else object)
        asked = kinds == PREDICT
        if column.shape == kinds.shape:
            column[asked] = np.clip(0.0, *self._ends)
        return self._all_inside(_checks.reals(column, len(kinds)))

    def _distribution(
        self, smallest: float, largest: float, table: Floats
    ) -> PredictiveDistribution:
        ends = self._ends if self._bounded else (smallest, largest)
        return PredictiveDistribution(table[0, 1:], table[1], table[2], support=ends)


def _ends(support: tuple[float, float] | None) -> tuple[float, float]:
    if support is None:
        return -np.inf, np.inf
    try:
        lo, hi = (float(end) for end in support)
    except (TypeError, ValueError, OverflowError):
        lo = hi = np.nan
    if not (np.isfinite(lo) and np.isfinite(hi) and lo <= hi):
        msg = f"support={shown(support)} is no pair of finite ends in order; give (lo, hi)"
        raise ParameterError(msg)
    return lo + 0.0, hi + 0.0


def _grid(thresholds: ArrayLike | None) -> Floats:
    if thresholds is None:
        return np.empty(0)
    grid = _asked.numbers(thresholds, "thresholds") + 0.0
    apart = grid.ndim == 1 and (np.nextafter(grid[:-1], np.inf) < grid[1:]).all()
    if not grid.size or not apart or not np.isfinite(grid).all():
        msg = f"thresholds={shown(thresholds)} are no finite numbers that ascend; sort them"
        raise ParameterError(msg)
    return grid


def _levels(levels: ArrayLike) -> Floats:
    column = np.ascontiguousarray(_asked.numbers(levels, "levels"))
    bad = column[~((column > 0.0) & (column < 1.0))] if column.ndim == 1 else column.ravel()
    if column.ndim != 1 or bad.size:
        msg = f"levels={shown(levels)} is no list of levels inside (0, 1); give probabilities"
        raise ParameterError(msg)
    return column


def _not_held(score: float, label: float, units: int) -> str:
    return (
        f"no weight {units / ONE:g} of score {score!r} with label {label!r} is held; "
        "remove only what was learned, with the weight it had"
    )
