"""The calls that one-vs-rest and one-vs-one have in common.

Governing rule: here everything is checked and taken by `_all`, so that nothing can be
refused once the first part has learned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers._arrays import unmasked
from abers.calibration import _checks
from abers.calibration._classes import ClassScores, Label, mapping, table
from abers.calibration._classes import label as _label
from abers.calibration._parts import Given, Parts, Steps, Triple
from abers.calibration._steps import interleaved
from abers.calibration.multi_interval import MultiInterval
from abers.exceptions import LabelError, NotHeldError, ParameterError, WeightError
from abers.reference import LEARN, PREDICT, REMOVE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from abers.calibration._typing import Bytes, Floats, Integers
    from abers.calibration.venn_abers import VennAbers

__all__ = ["MultiClass"]

_NOT_HELD = (
    "the observation is not held; remove only what was learned, with the scores, the label and "
    "the weight it had"
)


class MultiClass(Parts):
    """A calibrator of vectors of class scores."""

    # One at a time

    def predict_one(
        self, scores: ClassScores, time: float | None = None, weight: float = 1.0
    ) -> MultiInterval:
        """Predict the probabilities of the classes for one observation.

        Parameters
        ----------
        scores
            The model's score of each class. A class that is left out has score 0; one
            that is not known yet is answered as a class that never had a label.
        time
            Event time of the query, only with `max_age` or `half_life`; by default
            the newest time seen.
        weight
            Weight that the observation will have when it is learned.

        Returns
        -------
        MultiInterval
            Probability, lower and upper end of each class that is known or scored.

        Raises
        ------
        ScoreError, LabelError, TimeError, WeightError
            If an argument cannot be used.
        """
        checked = mapping(scores, self._smallest)
        with self._lock:
            classes = (*self.classes, *self._classes.unknown(checked))
            self._all.predict_one(0.0, time, weight)  # refuses what cannot be used
            if not classes:
                return MultiInterval({}, {}, {})
            row = np.array([checked.get(each, 0.0) for each in classes])
            answer = self._predict(row, _given(weight, time))
        p, low, high = (dict(zip(classes, ends.tolist(), strict=True)) for ends in answer)
        return MultiInterval(p, low, high)

    def learn_one(
        self,
        scores: ClassScores,
        label: Label,
        *,
        weight: float = 1.0,
        time: float | None = None,
    ) -> None:
        """Learn one labelled observation.

        Parameters
        ----------
        scores
            The scores with which the observation was predicted, as in `predict_one`.
        label
            Its class: a string, a whole number or a truth value. New classes, be they
            scored or the label, are known from now on.
        weight
            Positive weight, rounded to a multiple of 2**-30.
        time
            Event time of the observation; required with `max_age` or `half_life`.

        Raises
        ------
        LabelError
            If a class is not among those given, or one more than `max_classes`.
        ScoreError, WeightError, TimeError
            If an argument cannot be used; nothing is learned then.
        """
        checked, named = mapping(scores, self._smallest), _label(label)
        with self._lock:
            new = self._classes.unknown((*checked, named))
            self._all.learn_one(0.0, 0, weight=weight, time=time)
            self._add(new)
            row = self._row(checked)
            self._learn(
                row,
                self._classes.numbers[named],
                _given(weight, time),
            )

    def remove_one(self, scores: ClassScores, label: Label, *, weight: float = 1.0) -> None:
        """Undo one `learn_one` with the same arguments, exactly; its classes stay known.

        Parameters
        ----------
        scores, label, weight
            As they were learned.

        Raises
        ------
        NotHeldError
            If no such observation is held.
        ForgettingError
            If the calibrator forgets by itself.
        ScoreError, LabelError, WeightError
            If an argument cannot be used.
        """
        checked, named = mapping(scores, self._smallest), _label(label)
        with self._lock:
            if any(each not in self._classes.numbers for each in (*checked, named)):
                raise NotHeldError(_NOT_HELD)
            row = self._row(checked)
            parts = [(self._all, 0.0, 0), *self._touched(row, self._classes.numbers[named])]
            _remove(parts, weight)

    # Many at a time

    def predict_many(
        self,
        scores: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Triple:
        """Predict for an array of scores; as `predict_one` for each row.

        Parameters
        ----------
        scores
            Array of shape (n, number of classes), columns in the order of `classes`.
        weights, times
            Arrays of shape (n,), as in `predict_one`.

        Returns
        -------
        p, low, high
            Three arrays of shape (n, number of classes).

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one.
        """
        with self._lock:
            columns = table(scores, self._classes, self._smallest)
            n = columns.shape[1]
            kinds = np.full(n, PREDICT, np.uint8)
            return self._rows(kinds, columns, np.zeros(n, np.int64), weights, times)

    def learn_many(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> None:
        """Learn arrays of observations of known classes; or nothing if a row is bad.

        Parameters
        ----------
        scores
            Array of shape (n, number of classes), columns in the order of `classes`.
        labels
            Array of shape (n,): the class of each row.
        weights, times
            Arrays of shape (n,), as in `learn_one`.

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one.
        """
        with self._lock:
            columns = table(scores, self._classes, self._smallest)
            n = columns.shape[1]
            kinds = np.full(n, LEARN, np.uint8)
            self._rows(kinds, columns, self._classes.index(labels, n), weights, times)

    def prequential(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        delay: int = 0,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Triple:
        """Predict, then learn, through a whole stream in one call.

        Parameters
        ----------
        scores, labels
            As in `learn_many`, in stream order.
        delay
            The label of an observation is learned after `delay` later observations
            have been predicted; those still out at the end are learned then.
        weights, times
            Arrays of shape (n,), as in `learn_one`.

        Returns
        -------
        p, low, high
            Three arrays of shape (n, number of classes): the prediction of each
            observation from the labels learned before it.

        Raises
        ------
        InputError
            If a row cannot be used; nothing is learned then.
        """
        with self._lock:
            columns = table(scores, self._classes, self._smallest)
            n = columns.shape[1]
            numbers = self._classes.index(labels, n)
            # Names the row of a bad weight or time, which is no row of the steps.
            self._all.predict_many(np.zeros(n), weights=weights, times=times)
            row, kinds = interleaved(n, delay)
            weights, times = (
                None if c is None else np.asarray(unmasked(c))[row] for c in (weights, times)
            )
            try:
                return self._rows(kinds, columns[:, row], numbers[row], weights, times)
            except WeightError as error:
                raise WeightError(str(error).partition(": ")[2]) from None

    def run(  # noqa: PLR0913 - a column each
        self,
        steps: ArrayLike,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
        held: Integers | None = None,
    ) -> Triple:
        """Run predictions and labels in any order; the primitive that all calls on arrays use.

        Parameters
        ----------
        steps
            Array of shape (n,): 0 predicts, 1 learns.
        scores
            Array of shape (n, number of classes), columns in the order of `classes`.
        labels
            Array of shape (n,): the number of the class in `classes`; that of a
            prediction is ignored.
        weights, times
            Arrays of shape (n,), as in `learn_one`.
        held
            An int64 array of shape (n,) to be filled with the number of observations
            held after each step.

        Returns
        -------
        p, low, high
            Three arrays of shape (n, number of classes), NaN where nothing was
            predicted.

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one, and the
            calibrator is as it was.
        """
        with self._lock:
            columns = table(scores, self._classes, self._smallest)
            kinds = _checks.steps(steps, columns.shape[1])
            if (kinds == REMOVE).any():
                msg = (
                    f"row {np.argmax(kinds == REMOVE)}: arrays are predicted (0) and learned (1); "
                )
                msg += "remove observations with remove_one"
                raise ParameterError(msg)
            numbers = self._numbers(labels, kinds)
            predicted = self._rows(kinds, columns, numbers, weights, times, held=held)
        answer = np.full((3, *columns.T.shape), np.nan)
        answer[:, kinds == PREDICT] = predicted
        return answer[0], answer[1], answer[2]

    def _numbers(self, labels: ArrayLike, kinds: Bytes) -> Integers:
        column = np.asarray(unmasked(labels))
        learned = kinds == LEARN
        if column.shape != kinds.shape:
            msg = f"labels is of shape {column.shape}, not {kinds.shape}, one for each row"
            raise ParameterError(msg)
        numbers = np.where(learned, column, 0)
        bad = np.flatnonzero(~np.isin(numbers, np.arange(len(self._classes))))
        if bad.size:
            msg = (
                f"row {bad[0]}: label {column[bad[0]].item()!r} is not the number of a class, "
                f"0 to {len(self._classes) - 1}"
            )
            raise LabelError(msg)
        return numbers.astype(np.int64)

    def _rows(  # noqa: PLR0913 - a column each
        self,
        kinds: Bytes,
        columns: Floats,
        numbers: Integers,
        weights: ArrayLike | None,
        times: ArrayLike | None,
        *,
        held: Integers | None = None,
    ) -> Triple:
        """Run steps whose scores and labels are checked; return a row for each prediction."""
        zeros = np.zeros(len(kinds))
        self._all.run(kinds, zeros, zeros, weights=weights, times=times, held=held)
        steps = Steps(kinds, columns, numbers, _floats(weights), _floats(times))
        p, low, high = self._run(steps)
        return p.T, low.T, high.T

    def _row(self, checked: dict[Label, float]) -> Floats:
        return np.array([checked.get(each, 0.0) for each in self.classes])


def _remove(touched: Iterable[tuple[VennAbers, float, int]], weight: float) -> None:
    """Remove an observation from all parts it touched, or from none."""
    done: list[tuple[VennAbers, float, int]] = []
    try:
        for part, score, number in touched:
            part.remove_one(score, number, weight=weight)
            done.append((part, score, number))
    except NotHeldError:
        for part, score, number in done:
            part.learn_one(score, number, weight=weight)
        raise NotHeldError(_NOT_HELD) from None


def _floats(column: ArrayLike | None) -> Floats | None:
    return None if column is None else np.asarray(unmasked(column), np.float64)


def _given(weight: float, time: float | None) -> Given:
    return Given(weight, None if time is None else float(time))
