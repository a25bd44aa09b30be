"""The incremental Venn-Abers calibrator, the class that everything else stands on.

Governing rule: this module checks, converts and explains; the calibration set
of the chosen backend does the mathematics, and all its steps go through one
primitive, so there is no fast engine beside a right one.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from abers._backend import core
from abers._sealed import seal, unseal
from abers.calibration import _checks, _codec, _steps
from abers.calibration._forgetting import Forgetting
from abers.calibration._steps import Steps
from abers.calibration.interval import VennInterval
from abers.exceptions import (
    ForgettingError,
    NotHeldError,
    ParameterError,
    WeightError,
)
from abers.reference import LEARN, ONE, PREDICT, REMOVE

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from abers._core import CalibrationSet
    from abers.calibration._typing import Floats, Integers

__all__ = ["Hull", "VennAbers"]

_NO_TIME = float("nan")
_LARGEST = sys.float_info.max
_new_tuple = tuple.__new__  # a VennInterval from a pair without a second look at it


class Hull(NamedTuple):
    """The isotonic regression of label on score, a row a block.

    Attributes
    ----------
    lower, upper
        Smallest and largest score of each block, ascending.
    weight
        Total weight of each block.
    positives
        Weight of label 1 in each block.
    value
        The fitted probability, positives / weight, strictly increasing.
    """

    lower: Floats
    upper: Floats
    weight: Floats
    positives: Floats
    value: Floats


class VennAbers:
    """Calibrate the scores of any binary model, one labelled observation at a time.

    The inductive Venn-Abers predictor (IVAP) with an exact incremental update: a
    prediction costs about a microsecond whether a thousand or a million
    observations are held, and equals the definition to the last bit.

    At most one of `window`, `max_age` and `half_life` may be given; with none,
    everything is kept.

    Parameters
    ----------
    window
        Keep only the last `window` learned observations.
    max_age
        Keep only observations whose event time is at most `max_age` before the
        newest time seen, in the unit of the times.
    half_life
        Let the weight of an observation halve every `half_life` of event time;
        after 30 half-lives it is dropped.

    Raises
    ------
    ParameterError
        If more than one of the three is given, or one is not positive.

    Notes
    -----
    **Guarantee.** With a scorer fixed before the calibration data and
    exchangeable observations of equal weight, one of `p0` and `p1` is perfectly
    calibrated at every step, also with a `window` (Vovk & Petej 2014, Theorem 1).
    Unequal weights, a half-life, a scorer that keeps learning, or drift void the
    guarantee. It is marginal at each step, not conditional on the past.

    **Ties** in the score are pooled; the order of arrival never matters.

    **Weights** are rounded to multiples of 2**-30 on entry; all sums are exact,
    and may total 2**33 (2**28 with a half-life).

    **Time.** A prediction at a time answers as if everything too old by then
    were gone, but changes nothing. A label too old to be kept is counted in
    `late` and not learned. Predictions whose times jump back and forth over a
    range move the observations of that range out and in each time.

    **Threads** may share a calibrator: every call is atomic, and a call on arrays
    releases the interpreter lock while it runs.

    References
    ----------
    Vovk & Petej (2014), Venn-Abers predictors, section 4; Vovk, Petej & Fedorova
    (2015), Large-scale probabilistic predictors with and without guarantees of
    validity, section 3.

    Examples
    --------
    >>> from abers import VennAbers
    >>> calibrator = VennAbers()
    >>> for score, label in [(0.1, 0), (0.4, 1), (0.35, 0), (0.8, 1)]:
    ...     calibrator.learn_one(score, label)
    >>> calibrator.predict_one(0.5)
    VennInterval(p0=0.5, p1=1.0)
    >>> round(calibrator.predict_one(0.5).log, 4)
    0.6667
    """

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        rule = Forgetting(window, max_age, half_life)
        ages = rule.max_age or 0.0, rule.half_life or 0.0
        self._set(core.CalibrationSet(rule.window or 0, *ages), rule)

    def _set(self, held: CalibrationSet, rule: Forgetting) -> None:
        self._held = held
        self._forgetting, self._by_time = rule, rule.by_time
        self._heaviest = (held.limit + 1) // 2
        self._lock = threading.Lock()
        # The calls for one observation take the lock by hand and check the common case in place:
        # `with` and another call would cost them as much as the prediction itself.
        self._acquire, self._release = self._lock.acquire, self._lock.release

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

    def __len__(self) -> int:
        """Count the observations held."""
        return self._held.size

    def __bool__(self) -> bool:
        """Be true even when nothing is held, so that `calibrator or default` keeps it."""
        return True

    def __repr__(self) -> str:
        """Name the rule of forgetting and the number of observations."""
        return f"<VennAbers({self._forgetting}) of {len(self)} observations>"

    # One at a time

    def predict_one(
        self, score: float, time: float | None = None, weight: float = 1.0
    ) -> VennInterval:
        """Predict the probability of label 1 for one score.

        Parameters
        ----------
        score
            The model's score, any finite number; larger means label 1 is likelier.
        time
            Event time of the query, only with `max_age` or `half_life`; by default
            the newest time seen.
        weight
            Weight that the observation will have when it is learned.

        Returns
        -------
        VennInterval
            The pair (p0, p1); (0, 1) when nothing is held.

        Raises
        ------
        ScoreError, TimeError, WeightError
            If an argument cannot be used.

        Examples
        --------
        >>> VennAbers().predict_one(0.3)
        VennInterval(p0=0.0, p1=1.0)
        """
        if type(score) is not float or not -_LARGEST <= score <= _LARGEST:
            score = _checks.score(score)
        plain = type(weight) is float and weight == 1.0
        units = ONE if plain else _checks.weight(weight, self._heaviest)
        when = _NO_TIME if time is None else self._forgetting.time(time)
        self._acquire()
        try:
            pair = self._held.predict(score + 0.0, units, when)  # -0.0 becomes 0.0
        finally:
            self._release()
        return _new_tuple(VennInterval, pair)

    def learn_one(
        self, score: float, label: int, *, weight: float = 1.0, time: float | None = None
    ) -> None:
        """Learn one labelled observation.

        Parameters
        ----------
        score
            The score with which the observation was predicted.
        label
            0 or 1 (False or True).
        weight
            Positive weight, rounded to a multiple of 2**-30.
        time
            Event time of the observation; required with `max_age` or `half_life`.

        Raises
        ------
        ScoreError, LabelError, WeightError, TimeError
            If an argument cannot be used; nothing is learned then.
        """
        if type(score) is not float or not -_LARGEST <= score <= _LARGEST:
            score = _checks.score(score)
        label = _checks.label(label)
        plain = type(weight) is float and weight == 1.0
        units = ONE if plain else _checks.weight(weight, self._heaviest)
        timed = self._by_time or time is not None
        when = self._forgetting.time(time) if timed else _NO_TIME
        self._acquire()
        try:
            learned = self._held.learn(score + 0.0, label, units, when)
        finally:
            self._release()
        if not learned:
            raise WeightError(self._overflow())

    def remove_one(self, score: float, label: int, *, weight: float = 1.0) -> None:
        """Undo one `learn_one` with the same arguments, exactly.

        Parameters
        ----------
        score, label, weight
            As they were learned. Weights are pooled by score and label, so a
            different split of the same weight can be removed too.

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
        score, label = _checks.score(score), _checks.label(label)
        units = _checks.weight(weight, self._heaviest)
        with self._lock:
            removed = self._held.remove(score, label, units)
        if not removed:
            raise NotHeldError(_steps.not_held(score, label, units))

    # Many at a time

    def predict_many(
        self,
        scores: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> tuple[Floats, Floats]:
        """Predict for an array of scores; as `predict_one` for each.

        Parameters
        ----------
        scores
            Array of shape (n,).
        weights, times
            Arrays of shape (n,), as in `predict_one`.

        Returns
        -------
        p0, p1
            Two arrays of shape (n,).

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one.

        Examples
        --------
        >>> calibrator = VennAbers()
        >>> calibrator.learn_many([0.1, 0.4, 0.35, 0.8], [0, 1, 0, 1])
        >>> p0, p1 = calibrator.predict_many([0.2, 0.5])
        >>> p0.tolist(), p1.tolist()
        ([0.0, 0.5], [0.5, 1.0])
        """
        column = _checks.scores(scores)
        n = len(column)
        units, when = self._units(weights, n), self._forgetting.times(times, n, required=False)
        kinds, labels = np.full(n, PREDICT, np.uint8), np.zeros(n, np.uint8)
        return self._run(Steps(kinds, column, labels, units, when))

    def learn_many(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> None:
        """Learn arrays of observations; as `learn_one` for each, or nothing if a row is bad.

        Parameters
        ----------
        scores, labels
            Arrays of shape (n,).
        weights, times
            Arrays of shape (n,), as in `learn_one`.

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one.
        """
        column = _checks.scores(scores)
        n = len(column)
        units, when = self._units(weights, n), self._forgetting.times(times, n, required=True)
        kinds = np.full(n, LEARN, np.uint8)
        steps = Steps(kinds, column, _checks.labels(labels, n), units, when)
        self._run(steps, predicts=False)

    def prequential(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        delay: int = 0,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> tuple[Floats, Floats]:
        """Predict, then learn, through a whole stream in one call.

        Parameters
        ----------
        scores, labels
            Arrays of shape (n,), in stream order.
        delay
            The label of an observation is learned after `delay` later observations
            have been predicted; those still out at the end are learned then.
        weights, times
            Arrays of shape (n,), as in `learn_one`.

        Returns
        -------
        p0, p1
            Two arrays of shape (n,): the prediction of each observation from the
            labels learned before it.

        Raises
        ------
        InputError
            If a row cannot be used; nothing is learned then.

        Examples
        --------
        >>> p0, p1 = VennAbers().prequential([0.1, 0.4, 0.35, 0.8], [0, 1, 0, 1])
        >>> p0.tolist(), p1.tolist()
        ([0.0, 0.0, 0.0, 0.5], [1.0, 1.0, 1.0, 1.0])
        """
        column = _checks.scores(scores)
        n = len(column)
        units, when = self._units(weights, n), self._forgetting.times(times, n, required=True)
        row, kinds = _steps.interleaved(n, delay)
        steps = Steps(
            kinds,
            column[row],
            _checks.labels(labels, n)[row],
            None if units is None else units[row],
            None if when is None else when[row],
        )
        p0, p1 = self._run(steps, row)
        predicted = kinds == PREDICT
        return p0[predicted], p1[predicted]

    def run(  # noqa: PLR0913 - a column each
        self,
        steps: ArrayLike,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
        held: Integers | None = None,
    ) -> tuple[Floats, Floats]:
        """Run any sequence of steps; the primitive that all calls on arrays use.

        Parameters
        ----------
        steps
            Array of shape (n,): 0 predicts, 1 learns, 2 removes.
        scores, labels
            Arrays of shape (n,); the label of a prediction is ignored.
        weights, times
            Arrays of shape (n,), as in `learn_one`.
        held
            An int64 array of shape (n,) to be filled with the number of observations
            held after each step.

        Returns
        -------
        p0, p1
            Two arrays of shape (n,), NaN where nothing was predicted.

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one, and the
            calibrator is as it was.

        Examples
        --------
        >>> p0, p1 = VennAbers().run([1, 0, 2, 0], [0.3] * 4, [1, 0, 1, 0])
        >>> p0.tolist(), p1.tolist()
        ([nan, 0.5, nan, 0.0], [nan, 1.0, nan, 1.0])
        """
        column = _checks.scores(scores)
        n = len(column)
        kinds = _checks.steps(steps, n)
        if self._forgetting and (kinds == REMOVE).any():
            self._refuse_if_forgetting()
        units = self._units(weights, n)
        required = self._forgetting.by_time and bool((kinds == LEARN).any())
        when = self._forgetting.times(times, n, required=required)
        if held is not None and (held.dtype != np.int64 or held.shape != (n,)):
            msg = f"held is {held.dtype} of shape {held.shape}, not int64 of shape ({n},)"
            raise ParameterError(msg)
        return self._run(Steps(kinds, column, _checks.labels(labels, n), units, when), held=held)

    def _run(
        self,
        steps: Steps,
        rows: NDArray[np.int64] | None = None,
        *,
        predicts: bool = True,
        held: Integers | None = None,
    ) -> tuple[Floats, Floats]:
        """Run checked steps; `rows` are those of the caller, where a step is not a row."""
        n = len(steps.kinds)
        p0, p1 = np.full((2, n if predicts else 0), np.nan)
        with self._lock:
            saved = self._dump() if self._forgetting and self._may_overflow(steps) else None
            done = self._held.run(*steps, p0, p1, held)
            if done < n:
                self._undo(steps, done, saved)
        if done < n:
            self._refuse(steps, done, done if rows is None else int(rows[done]))
        return p0, p1

    def _may_overflow(self, steps: Steps) -> bool:
        return self._held.total + steps.weight() > 2.0**57

    def _undo(self, steps: Steps, done: int, saved: bytes | None) -> None:
        """Take back the steps of a batch that was refused half-way."""
        if saved is not None:
            self._held, _ = _codec.load(saved)
            return
        nothing = np.empty(0)
        self._held.run(*steps.undoing(done), nothing, nothing)

    def _refuse(self, steps: Steps, at: int, row: int) -> NoReturn:
        if steps.kinds[at] == LEARN:
            msg = f"row {row}: {self._overflow()}"
            raise WeightError(msg)
        msg = f"row {row}: {steps.not_held(at)}"
        raise NotHeldError(msg)

    # The fit itself

    def isotonic(self, score: float) -> float | None:
        """Value of the isotonic regression of label on score.

        Parameters
        ----------
        score
            Any finite number.

        Returns
        -------
        float or None
            The fitted value of the block that covers the score; linear between two
            blocks, constant outside; None when nothing is held.

        Raises
        ------
        ScoreError
            If the score is no finite number.

        Examples
        --------
        >>> calibrator = VennAbers()
        >>> calibrator.learn_many([0.0, 1.0], [0, 1])
        >>> calibrator.isotonic(0.25)
        0.25
        """
        score = _checks.score(score)
        with self._lock:
            around = self._held.around(score)
        if around is None:
            return None
        left, low, right, high = around
        if low == high or score <= left:
            return low
        if score >= right:
            return high
        # Halves keep the difference of two huge scores finite.
        share = (
            (score / 2 - left / 2) / (right / 2 - left / 2)
            if abs(left) > 1
            else ((score - left) / (right - left))
        )
        return min(max(low + share * (high - low), low), high)

    def hull(self) -> Hull:
        """List the blocks of the isotonic regression: the lower hull of the cumulative sum diagram.

        Returns
        -------
        Hull
            Arrays of shape (number of blocks,).

        Examples
        --------
        >>> calibrator = VennAbers()
        >>> calibrator.learn_many([0.1, 0.2, 0.3], [1, 0, 1])
        >>> calibrator.hull().value.tolist()
        [0.5, 1.0]
        """
        with self._lock:
            count = self._held.block_count()
            lower, upper, value = np.empty(count), np.empty(count), np.empty(count)
            weight, positives = np.empty(count, np.int64), np.empty(count, np.int64)
            self._held.blocks(lower, upper, weight, positives, value)
        return Hull(lower, upper, weight / ONE, positives / ONE, value)

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
        return _codec.dump(self._held, self._forgetting.max_age or 0.0)

    def to_bytes(self) -> bytes:
        """Save the calibrator: versioned, with a checksum, the same on both backends.

        Returns
        -------
        bytes
            What `from_bytes` takes.
        """
        return seal(_codec.MAGIC, self.state_bytes())

    @classmethod
    def from_bytes(cls, blob: bytes) -> VennAbers:
        """Restore a calibrator that goes on bit for bit as the saved one would have.

        Parameters
        ----------
        blob
            What `to_bytes` gave.

        Returns
        -------
        VennAbers
            The calibrator.

        Raises
        ------
        StateError
            If the bytes are damaged or of an unknown version.

        Examples
        --------
        >>> calibrator = VennAbers(window=1000)
        >>> calibrator.learn_one(0.7, 1)
        >>> VennAbers.from_bytes(calibrator.to_bytes()).predict_one(0.5)
        VennInterval(p0=0.0, p1=1.0)
        """
        payload = unseal(_codec.MAGIC, bytes(blob), "a saved calibrator")
        held, header = _codec.load(payload)
        restored = cls.__new__(cls)
        rule = Forgetting(held.window or None, header.max_age or None, held.half_life or None)
        restored._set(held, rule)  # noqa: SLF001 - of the same class
        return restored

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        """Pickle and copy by way of the saved form."""
        return type(self).from_bytes, (self.to_bytes(),)

    def _check(self) -> None:
        """Assert every invariant of the core; an AssertionError shows the state."""
        with self._lock:
            self._held.check()

    # What is checked and refused here

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
