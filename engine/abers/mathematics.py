"""What a calibrator defines, and how its batches are run.

The public calls of `abers.base.Calibrator` check their arguments and hold the lock. The methods
here do the rest, and a calibrator overrides those in which it differs.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from abers import validation
from abers.arrays import EXPIRE, LEARN, LIMIT, LIMIT_DECAYING, ONE, PREDICT, unmasked
from abers.exceptions import (
    ForgettingError,
    InputError,
    LabelError,
    NotHeldError,
    ParameterError,
    WeightError,
)
from abers.forgetting import Forgetting
from abers.saveable import Saveable
from abers.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Bytes, Floats, Integers
    from abers.capabilities import Capabilities

__all__ = ["Mathematics"]

One = TypeVar("One")  # the prediction of one observation
Many = TypeVar("Many")  # predictions of many observations


class Mathematics(Saveable, Generic[One, Many]):
    """The private side of a calibrator: its hooks, its checks, and how batches are run."""

    capabilities: Capabilities
    _lowest: float = -sys.float_info.max  # of a float that is a score as it is
    _highest: float = sys.float_info.max
    _width: ClassVar[int] = 1  # numbers of a prediction
    _refusal: ClassVar[type[InputError]] = WeightError  # of a label that cannot be learned

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        self._forget_by(Forgetting(window, max_age, half_life))
        self._start()

    def _start(self) -> None:
        """Make the containers of an empty calibrator; the rule of forgetting is known."""

    def _forget_by(self, rule: Forgetting) -> None:
        self._forgetting, self._by_time = rule, rule.by_time
        self._heaviest = ((LIMIT_DECAYING if rule.half_life else LIMIT) + 1) // 2

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
        return 0

    @abstractmethod
    def __len__(self) -> int:
        """Count the observations kept."""

    def __repr__(self) -> str:
        """Return the options and the number of observations."""
        return f"<{type(self).__name__}({', '.join(self._options())}) of {len(self)} observations>"

    def _options(self) -> list[str]:
        """Return the options as they are written in a call."""
        return [str(self._forgetting)] if self._forgetting else []

    # The mathematics. Arguments are checked, and the caller has the lock.

    @abstractmethod
    def _predict(self, score: Any, weight: int, time: float, number: int) -> One:
        """Predict for one score; the weight is in units of 2**-30, the time NaN for now."""

    @abstractmethod
    def _learn(self, score: Any, label: Any, weight: int, time: float, number: int) -> bool:
        """Learn one observation; return False if the total weight would be too large."""

    def _remove(self, score: Any, label: Any, weight: int) -> bool:
        """Undo `_learn`; return False if that weight is not there."""
        raise NotImplementedError

    def _expire(self, number: int) -> None:
        """Stop waiting for the label of an observation that was predicted with a number."""

    def _take(self, steps: Steps, held: Integers | None) -> tuple[Many, int]:
        """Run checked steps; return the predictions and how many steps were taken.

        Fewer than all are taken if one is refused; the caller undoes them.
        """
        n = len(steps.kinds)
        table, done = np.full((n, self._width), np.nan), n
        for at, (kind, score, label, weight, time, number) in enumerate(steps.each()):
            if kind == PREDICT:
                table[at] = self._predict(score, weight, time, number)
            elif kind == EXPIRE:
                self._expire(number)
            elif not (
                self._learn(score, label, weight, time, number)
                if kind == LEARN
                else self._remove(score, label, weight)
            ):
                done = at
                break
            if held is not None:
                held[at] = len(self)
        return self._predictions(*table.T), done

    def _predictions(self, *columns: Floats) -> Any:
        """Make predictions of their `_width` columns."""
        return columns[0]

    def _learn_all(self, steps: Steps, held: Integers | None) -> tuple[Many, int]:
        """Run the steps of `learn_many`."""
        return self._take(steps, held)

    def _must_copy(self, steps: Steps) -> bool:
        """Return whether steps may be refused half-way and can be undone only from a copy."""
        return True

    def _undo(self, steps: Steps, done: int, saved: bytes | None) -> None:
        """Undo the first steps of a batch; `saved` is the copy, if there is one."""
        if saved is not None:
            self._load(memoryview(saved))

    # The checks: binary labels, and scores that are numbers

    def _score(self, score: object) -> Any:
        """Check one score."""
        return validation.score(score)

    def _scores(self, scores: ArrayLike) -> Floats:
        """Check an array of scores; the last axis of the result is that of the observations."""
        return validation.scores(scores)

    def _label(self, label: object) -> Any:
        """Check one label."""
        return validation.label(label)

    def _labels(self, labels: ArrayLike, length: int) -> NDArray[Any]:
        """Check an array of labels."""
        return validation.labels(labels, length)

    def _step_labels(self, labels: ArrayLike, kinds: Bytes) -> NDArray[Any]:
        """Check the labels of a run; those of predictions and expiries are ignored."""
        try:
            return self._labels(labels, len(kinds))
        except LabelError:
            column = np.array(unmasked(labels), object)
            if column.shape == kinds.shape:
                column[(kinds == PREDICT) | (kinds == EXPIRE)] = 0
            return self._labels(column, len(kinds))

    def _extra(self, columns: dict[str, Any], length: int) -> Any:
        """Check the columns that only some calibrators take."""
        if columns:
            msg = f"{type(self).__name__} takes no {', '.join(columns)}"
            raise ParameterError(msg)

    # Batches

    def _learned(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        weights: ArrayLike | None,
        times: ArrayLike | None,
        columns: dict[str, Any],
    ) -> Steps:
        """Check a batch of observations to be learned."""
        column = self._scores(scores)
        n = column.shape[-1]
        units, when = self._weights(weights, n), self._forgetting.times(times, n, required=True)
        kinds, named = np.full(n, LEARN, np.uint8), self._labels(labels, n)
        return Steps(kinds, column, named, units, when, extra=self._extra(columns, n))

    def _transact(
        self,
        take: Callable[[Steps, Integers | None], tuple[Any, int]],
        steps: Steps,
        held: Integers | None = None,
    ) -> Any:
        """Run steps, all or none."""
        with self._lock:
            saved = self._save() if self._must_copy(steps) else None
            try:
                answers, done = take(steps, held)
            except Exception:
                self._undo(steps, 0, saved)
                raise
            if done < len(steps.kinds):
                self._undo(steps, done, saved)
        if done < len(steps.kinds):
            row = f"row {steps.row(done)}"
            if steps.kinds[done] == LEARN:
                msg = f"{row}: {self._overflow()}"
                raise self._refusal(msg)
            units = ONE if steps.weights is None else int(steps.weights[done])
            score = steps.scores[..., done].tolist()
            what = self._not_held(score, steps.labels[done].item(), units)
            msg = f"{row}: {what}"
            raise NotHeldError(msg)
        return answers

    def _without_expiries(self, steps: Steps, held: Integers | None) -> Any:
        """Run steps of a calibrator on which expiries have no effect."""
        kept = steps.kinds != EXPIRE
        before, sizes = len(self), np.empty(np.count_nonzero(kept), np.int64)
        rows = np.flatnonzero(kept)
        some = steps.take(rows)._replace(extra=self._interleaved(steps.extra, rows))
        answers = self._transact(self._take, some, sizes)
        if held is not None:
            held[:] = np.concatenate(([before], sizes))[np.cumsum(kept)]
        return self._spread(answers, kept)

    def _interleaved(self, extra: Any, rows: Integers) -> Any:
        """Return further columns at some rows."""
        return None if extra is None else extra[rows]

    @staticmethod
    def _picked(answers: Any, rows: NDArray[np.bool_]) -> Any:
        """Return the predictions of some rows."""
        if isinstance(answers, np.ndarray):
            return answers[rows]
        return type(answers)(*(column[rows] for column in answers))

    @classmethod
    def _spread(cls, answers: Any, rows: NDArray[np.bool_]) -> Any:
        """Return predictions in the given rows, and NaN in the others."""
        if not isinstance(answers, np.ndarray):
            return type(answers)(*(cls._spread(column, rows) for column in answers))
        spread = np.full((len(rows), *answers.shape[1:]), np.nan)
        spread[rows] = answers
        return spread

    # Errors

    def _weight(self, weight: float) -> int:
        units = validation.weight(weight, self._heaviest)
        if units != ONE:
            self._require_weights()
        return units

    def _weights(self, weights: ArrayLike | None, length: int) -> Integers | None:
        if weights is None:
            return None
        self._require_weights()
        return validation.weights(weights, length, self._heaviest)

    def _require_weights(self) -> None:
        if not self.capabilities.weights:
            msg = f"{type(self).__name__} takes no weights; leave them out"
            raise ParameterError(msg)

    def _require_removal(self, row: int | None = None) -> None:
        removal, name = self.capabilities.removal, type(self).__name__
        if removal == "none":
            msg = f"{'' if row is None else f'row {row}: '}{name} removes nothing"
            raise ParameterError(msg)
        if removal == "single" and row is not None:
            msg = f"row {row}: remove observations with remove_one"
            raise ParameterError(msg)
        if self._forgetting:
            msg = f"{self!r} forgets by itself; only a calibrator that keeps all can remove"
            raise ForgettingError(msg)

    def _overflow(self) -> str:
        return self._forgetting.too_heavy()

    def _not_held(self, score: Any, label: Any, weight: int) -> str:
        return (
            f"no weight {weight / ONE:g} of score {score!r} with label {label!r} is there; "
            "remove only what was learned, with the weight it had"
        )
