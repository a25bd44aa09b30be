"""What a calibrator declares and defines: capabilities, steps, forgetting, and how batches are run.

Columns of steps: predict, learn, remove, expire. All steps of a batch are checked before the first
one runs. A batch that is refused half-way can be undone.

Rules of forgetting: a window, a maximum age, a half-life, or none. Only a calibrator that forgets
by time takes event times. It needs one for each label, and doubles must resolve them.

The public calls of `abers.base.Calibrator` check their arguments and hold the lock. The methods
here do the rest, and a calibrator overrides those in which it differs.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from abers import validation
from abers.arrays import EXPIRE, LEARN, LIMIT, LIMIT_DECAYING, ONE, PREDICT, REMOVE, unmasked
from abers.exceptions import (
    ForgettingError,
    InputError,
    LabelError,
    NotHeldError,
    ParameterError,
    TimeError,
    WeightError,
)
from abers.serialization import Saveable
from abers.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Bytes, Floats, Integers

__all__ = [
    "EXPIRE",
    "LEARN",
    "NO_NUMBER",
    "PREDICT",
    "REMOVE",
    "Capabilities",
    "Forgetting",
    "Mathematics",
    "Steps",
    "interleaved",
]

_ANY_RULE = ("window", "max_age", "half_life")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a calibrator takes and returns; the check suite tests exactly this.

    Attributes
    ----------
    task
        The kind of prediction: "binary", "multiclass" or "regression".
    score
        A "number", a "probability", one number for each of several "folds", or for each of several
        "classes", "class probabilities", ascending "quantiles", a "prediction" of the label: two
        numbers, where the first is never above the second; or a prediction and 0 or 1 for each of
        several "segments".
    answer
        One "probability" of label 1, an "interval" of two, a "protected" probability with an
        interval, intervals by "folds" or "classes", a
        "distribution" of the label, a "mean" interval for it, or a "prediction interval" with the
        ends `low` and `high`.
    weights
        Whether observations may have weights.
    removal
        Whether observations can be removed from one that keeps all: "none" of them, each by
        itself with `remove_one` ("single"), or also in `run` ("any").
    forgetting
        The supported rules of forgetting.
    stateful
        Whether predictions change the state. Then observations have numbers, and expire if no label
        will come. Otherwise numbers and expiries have no effect.
    columns
        Names of further columns of a batch, such as "folds".
    options
        Further options that a stream gives it, by the names of `abers.stream.Settings`, such as
        "raw_weight".
    """

    task: Literal["binary", "multiclass", "regression"]
    score: Literal[
        "number",
        "probability",
        "folds",
        "classes",
        "class probabilities",
        "quantiles",
        "prediction",
        "segments",
    ] = "number"
    answer: Literal[
        "probability",
        "interval",
        "protected",
        "folds",
        "classes",
        "distribution",
        "mean",
        "prediction interval",
    ] = "interval"
    weights: bool = True
    removal: Literal["none", "single", "any"] = "any"
    forgetting: tuple[str, ...] = _ANY_RULE
    stateful: bool = False
    columns: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def of_probabilities(self) -> bool:
        """Whether scores must be probabilities."""
        return self.score in {"probability", "class probabilities"}


NO_NUMBER = -1
"""The number of an observation that has none."""


class Steps(NamedTuple):
    """Checked columns of a batch, one row a step."""

    kinds: Bytes  # 0 predicts, 1 learns, 2 removes, 3 expires
    scores: Floats  # of shape (n,), or (k, n) where an observation has k scores
    labels: NDArray[Any]  # as numbers; those of predictions are ignored
    weights: Integers | None = None  # multiples of 2**-30; None if all weights are 1
    times: Floats | None = None  # event times, or None
    numbers: Integers | None = None  # of observations, -1 for none; None if no row has one
    rows: Integers | None = None  # the caller's, for messages; None if they are 0, 1, ...
    extra: Any = None  # the declared columns of the calibrator, checked

    def take(self, rows: Integers) -> Steps:
        """Return some of the rows, without `extra`."""
        columns = [None if column is None else column[..., rows] for column in self[:6]]
        return Steps._make([*columns, rows if self.rows is None else self.rows[rows], None])

    def row(self, at: int) -> int:
        """Return the caller's number of a row."""
        return at if self.rows is None else int(self.rows[at])

    def total_weight(self) -> float:
        """Return the sum of all weights, those of removals too, in units of 2**-30."""
        if self.weights is None:
            return float(len(self.kinds) * ONE)
        return float(self.weights.sum(dtype=float))

    def inverse(self, done: int) -> Steps:
        """Return the steps that undo the first `done`, if nothing was forgotten meanwhile."""
        back = np.flatnonzero(self.kinds[:done] != PREDICT)[::-1]
        kinds = np.where(self.kinds[back] == LEARN, REMOVE, LEARN).astype(np.uint8)
        return self.take(back)._replace(kinds=kinds, times=None)

    def each(self) -> Iterator[tuple[int, Any, Any, int, float, int]]:
        """Iterate over the rows: kind, score, label, weight, time and number."""
        n = len(self.kinds)
        columns = (
            self.kinds,
            self.scores.T,
            self.labels,
            np.full(n, ONE) if self.weights is None else self.weights,
            np.full(n, np.nan) if self.times is None else self.times,
            np.full(n, NO_NUMBER) if self.numbers is None else self.numbers,
        )
        return zip(*(column.tolist() for column in columns), strict=True)


def interleaved(n: int, delay: int) -> tuple[Integers, Bytes]:
    """Return rows and kinds of a stream in which each label comes `delay` predictions late."""
    if isinstance(delay, bool) or not isinstance(delay, int | np.integer) or delay < 0:
        msg = f"delay={delay!r} is not a whole number of 0 or more"
        raise ParameterError(msg)
    ahead, rows = min(int(delay), n), np.arange(n)
    row, kinds = np.empty(2 * n, np.int64), np.full(2 * n, PREDICT, np.uint8)
    both, last = slice(ahead, 2 * n - ahead), slice(2 * n - ahead, None)
    row[:ahead], row[last] = rows[:ahead], rows[n - ahead :]
    row[both][0::2], row[both][1::2] = rows[ahead:], rows[: n - ahead]
    kinds[both][1::2] = kinds[last] = LEARN
    return row, kinds


class Forgetting:
    """A checked rule of forgetting, as in `VennAbers`; with `by_time`, labels need event times."""

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        if sum(option is not None for option in (window, max_age, half_life)) > 1:
            msg = "window, max_age and half_life exclude each other; give at most one"
            raise ParameterError(msg)
        self.window = None if window is None else validation.count(window, "window", 1)
        self.max_age = None if max_age is None else _span(max_age, "max_age")
        self.half_life = None if half_life is None else _span(half_life, "half_life")
        self.by_time = self.max_age is not None or self.half_life is not None

    @classmethod
    def of(cls, held: Any) -> Forgetting:
        """Return the rule of a set of observations."""
        max_age = None if held.half_life else held.lifetime or None
        return cls(held.window or None, max_age, held.half_life or None)

    def __bool__(self) -> bool:
        """Return whether anything is forgotten."""
        return self.by_time or self.window is not None

    def __str__(self) -> str:
        """Return the rule as an argument of the calibrator; an empty string without a rule."""
        given = ((name, getattr(self, name)) for name in ("window", "max_age", "half_life"))
        return ", ".join(f"{name}={value}" for name, value in given if value is not None)

    def too_heavy(self, remedy: str = "scale the weights down or forget earlier") -> str:
        """Return why a label is refused with which the total weight would be too large."""
        limit = (LIMIT_DECAYING if self.half_life else LIMIT) / ONE
        return f"the total weight would pass {limit:.0f}; {remedy}"

    def time(self, time: float | None) -> float:
        """Check the event time of a label, or of a prediction."""
        if not self.by_time:
            msg = f"time {time!r} given to a calibrator without max_age or half_life; leave it out"
            raise TimeError(msg)
        if time is None:
            msg = "time is missing; with max_age or half_life each observation needs its event time"
            raise TimeError(msg)
        return self._resolvable(validation.time(time))

    def times(self, times: ArrayLike | None, length: int, *, required: bool) -> Floats | None:
        """Check an array of event times, if there is one."""
        if times is None:
            if required and self.by_time and length:
                self.time(None)
            return None
        if not self.by_time:
            msg = "times given to a calibrator without max_age or half_life; leave them out"
            raise TimeError(msg)
        column = validation.times(times, length)
        if length:
            self._resolvable(float(column[np.argmax(np.abs(column))]))
        return column

    def _resolvable(self, time: float) -> float:
        if self.half_life and not validation.resolvable(time, self.half_life):
            msg = f"time {time!r} is more than 2**50 half-lives from zero; use a later zero of time"
            raise TimeError(msg)
        return time


def _span(span: float, name: str) -> float:
    try:
        number = validation.time(span)
    except TimeError:
        number = 0.0
    if number <= 0.0:
        msg = f"{name}={span!r} is not a positive, finite span of time"
        raise ParameterError(msg)
    return number


One = TypeVar("One")  # the prediction of one observation
Many = TypeVar("Many")  # predictions of many observations


class Mathematics(Saveable, Generic[One, Many]):
    """The private side of a calibrator: its hooks, its checks, and how batches are run."""

    capabilities: Capabilities
    _lowest: float = -sys.float_info.max  # of a float that is a score as it is
    _highest: float = sys.float_info.max
    _width: ClassVar[int] = 1  # numbers of a prediction
    _own_columns: ClassVar[tuple[str, ...]] = ()  # that only this calibrator takes
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
            known = ("weights", "times", "numbers", *self._own_columns)
            meant = did_you_mean(next(iter(columns)), known)
            msg = f"{type(self).__name__} takes no column {', '.join(columns)}{meant}"
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
