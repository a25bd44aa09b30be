"""The base class of all calibrators: the public calls.

A calibrator defines how it predicts, learns, saves and loads itself. The rest is here and in
`abers.mathematics`: the checks of arguments, the batches, the lock, and undoing a batch that is
refused half-way.

To write one, declare `capabilities`, and define `_predict`, `_learn`, `__len__`, `_save` and
`_load`. `abers.checks.check_calibrator` tests it, and `abers.registry` finds it by its import path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from abers import validation
from abers.arrays import EXPIRE, LEARN, ONE, PREDICT, REMOVE
from abers.exceptions import NotHeldError
from abers.mathematics import NO_NUMBER, Capabilities, Many, Mathematics, One, Steps, interleaved

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Integers

__all__ = ["Calibrator", "Capabilities"]

NO_TIME = float("nan")

S = TypeVar("S")  # a score
L = TypeVar("L")  # a label


def __dir__() -> list[str]:
    """List the public names."""
    return __all__


class Calibrator(Mathematics[One, Many], Generic[S, L, One, Many]):
    """A calibrator: it predicts from scores, and learns from their labels.

    Threads may share it: every call is atomic. A call with arguments that cannot be used raises an
    `InputError` and changes nothing; in a batch its message names the first bad row.

    Parameters
    ----------
    window, max_age, half_life
        How to forget, as in `abers.VennAbers`.

    Raises
    ------
    ParameterError
        If more than one of the three is given, or one is not positive.
    """

    # One at a time

    def predict_one(
        self,
        score: S,
        time: float | None = None,
        weight: float = 1.0,
        *,
        number: float | None = None,
    ) -> One:
        """Predict for one score.

        Parameters
        ----------
        score
            The model's score.
        time
            Event time of the query, only with `max_age` or `half_life`; by default the newest
            time seen.
        weight
            Weight that the observation will have when it is learned.
        number
            Number of the observation, a whole one, where predictions change the state of the
            calibrator.

        Returns
        -------
        One
            The prediction.

        Raises
        ------
        ScoreError, TimeError, WeightError
            If an argument cannot be used.
        """
        checked: Any = score
        if type(checked) is float and self._lowest <= checked <= self._highest:
            checked += 0.0  # -0.0 becomes 0.0
        else:
            checked = self._score(checked)
        plain = type(weight) is float and weight == 1.0
        units = ONE if plain else self._weight(weight)
        when = NO_TIME if time is None else self._forgetting.time(time)
        of = NO_NUMBER if number is None else validation.observation(number)
        self._acquire()
        try:
            return self._predict(checked, units, when, of)
        finally:
            self._release()

    def learn_one(
        self,
        score: S,
        label: L,
        *,
        weight: float = 1.0,
        time: float | None = None,
        number: float | None = None,
    ) -> None:
        """Learn one labelled observation.

        Parameters
        ----------
        score
            The score with which the observation was predicted.
        label
            Its label.
        weight
            Positive weight, rounded to a multiple of 2**-30.
        time
            Event time of the observation; required with `max_age` or `half_life`.
        number
            The number with which it was predicted.

        Raises
        ------
        ScoreError, LabelError, WeightError, TimeError
            If an argument cannot be used; nothing is learned then.
        """
        checked: Any = score
        if type(checked) is float and self._lowest <= checked <= self._highest:
            checked += 0.0
        else:
            checked = self._score(checked)
        named = self._label(label)
        plain = type(weight) is float and weight == 1.0
        units = ONE if plain else self._weight(weight)
        timed = self._by_time or time is not None
        when = self._forgetting.time(time) if timed else NO_TIME
        of = NO_NUMBER if number is None else validation.observation(number)
        self._acquire()
        try:
            learned = self._learn(checked, named, units, when, of)
        finally:
            self._release()
        if not learned:
            raise self._refusal(self._overflow())

    def remove_one(self, score: S, label: L, *, weight: float = 1.0) -> None:
        """Undo one `learn_one` with the same arguments, exactly.

        Parameters
        ----------
        score, label, weight
            As they were learned. Weights are pooled by score and label, so a different split of
            the same weight can be removed too.

        Raises
        ------
        NotHeldError
            If that weight is not there.
        ForgettingError
            If the calibrator forgets by itself.
        ScoreError, LabelError, WeightError
            If an argument cannot be used.
        """
        self._require_removal()
        checked, named, units = self._score(score), self._label(label), self._weight(weight)
        with self._lock:
            removed = self._remove(checked, named, units)
        if not removed:
            raise NotHeldError(self._not_held(checked, named, units))

    def expire_one(self, number: int) -> None:
        """Stop waiting for the label of an observation that was predicted with a number.

        Parameters
        ----------
        number
            The number; an unknown one has no effect.

        Raises
        ------
        ParameterError
            If it is not a whole number of 0 or more.
        """
        of = validation.observation(number)
        with self._lock:
            self._expire(of)

    # Many at a time

    def predict_many(
        self,
        scores: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
    ) -> Many:
        """Predict for an array of scores; as `predict_one` for each.

        Parameters
        ----------
        scores
            Array of n scores.
        weights, times, numbers
            Arrays of shape (n,), as in `predict_one`.

        Returns
        -------
        Many
            The predictions, as arrays.
        """
        column = self._scores(scores)
        n = column.shape[-1]
        when = self._forgetting.times(times, n, required=False)
        of = None if numbers is None else validation.observations(numbers, n)
        kinds, labels = np.full(n, PREDICT, np.uint8), np.zeros(n, np.uint8)
        steps = Steps(kinds, column, labels, self._weights(weights, n), when, of)
        answers: Many = self._transact(self._take, steps)
        return answers

    def learn_many(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
        **columns: Any,
    ) -> None:
        """Learn arrays of observations; as `learn_one` for each, or nothing if a row is bad.

        Parameters
        ----------
        scores, labels
            Arrays of n scores and n labels, or columns of pandas, polars, pyarrow and other
            libraries that numpy or Arrow can convert; a null is no score and no label.
        weights, times, numbers
            Arrays of shape (n,), as in `learn_one`.
        columns
            Further columns that the calibrator declares.
        """
        steps = self._learned(scores, labels, weights, times, columns)
        if numbers is not None:
            steps = steps._replace(numbers=validation.observations(numbers, len(steps.kinds)))
        self._transact(self._learn_all, steps)

    def prequential(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        delay: int = 0,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
        **columns: Any,
    ) -> Many:
        """Predict, then learn, through a whole stream in one call.

        Parameters
        ----------
        scores, labels
            Arrays of n scores and n labels, in stream order; the number of an observation is its
            row. Where some labels never come, `run` takes the same steps, and expiries.
        delay
            The label of an observation is learned after `delay` later observations have been
            predicted; the last labels are learned at the end.
        weights, times, columns
            As in `learn_many`.

        Returns
        -------
        Many
            The prediction of each observation from the labels learned before it, as arrays.

        Examples
        --------
        >>> from abers import VennAbers
        >>> found = VennAbers().prequential([0.1, 0.4, 0.35, 0.8], [0, 1, 0, 1])
        >>> found.p0.tolist(), found.p1.tolist()
        ([0.0, 0.0, 0.0, 0.5], [1.0, 1.0, 1.0, 1.0])

        >>> from abers import ProtectedVennAbers
        >>> late = ProtectedVennAbers().prequential([0.9] * 6, [0] * 6, delay=3)
        >>> late.probability.round(2).tolist()
        [0.89, 0.89, 0.89, 0.89, 0.84, 0.79]
        """
        once = self._learned(scores, labels, weights, times, columns)
        row, kinds = interleaved(len(once.kinds), delay)
        stream = once.take(row)._replace(kinds=kinds, extra=self._interleaved(once.extra, row))
        if self.capabilities.stateful:
            stream = stream._replace(numbers=row)
        answers: Many = self._picked(self._transact(self._take, stream), kinds == PREDICT)
        return answers

    def run(
        self,
        steps: ArrayLike,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
        held: Integers | None = None,
        **columns: Any,
    ) -> Many:
        """Run any sequence of steps; the primitive that all calls on arrays use.

        Parameters
        ----------
        steps
            Array of shape (n,): 0 predicts, 1 learns, 2 removes, 3 expires.
        scores, labels
            Arrays of n scores and n labels; the label of a prediction is ignored.
        weights, times, numbers, columns
            As in `learn_many`.
        held
            An int64 array of shape (n,) to be filled with the number of observations that each
            prediction rests on, and of those kept after each other step.

        Returns
        -------
        Many
            The predictions as arrays, NaN where nothing was predicted.

        Examples
        --------
        >>> from abers import VennAbers
        >>> p0, p1 = VennAbers().run([1, 0, 2, 0], [0.3] * 4, [1, 0, 1, 0])
        >>> p0.tolist(), p1.tolist()
        ([nan, 0.5, nan, 0.0], [nan, 1.0, nan, 1.0])
        """
        column = self._scores(scores)
        n = column.shape[-1]
        kinds, rare = validation.steps(steps, n)
        if rare and (removes := kinds == REMOVE).any():
            self._require_removal(int(np.argmax(removes)))
        units = None if weights is None else self._weights(weights, n)
        required = self._by_time and bool((kinds == LEARN).any())
        when = self._forgetting.times(times, n, required=required)
        of = None if numbers is None else validation.observations(numbers, n)
        if held is not None:
            validation.sizes(held, n)
        named = self._step_labels(labels, kinds)
        extra = self._extra(columns, n) if columns else None
        checked = Steps(kinds, column, named, units, when, of, None, extra)
        if rare and not self.capabilities.stateful and (kinds == EXPIRE).any():
            answers: Many = self._without_expiries(checked, held)
        else:
            answers = self._transact(self._take, checked, held)
        return answers
