"""Observations for the checks of a calibrator, and the checks of what it declares.

Checks of declared weights, removal, forgetting and numbers, and of saved state. They are part of
`abers.checks`.
"""

from __future__ import annotations

import copy
import math
import pickle
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from abers.exceptions import (
    ForgettingError,
    InputError,
    NotHeldError,
    ParameterError,
    StateError,
    TimeError,
)
from abers.mathematics import EXPIRE, LEARN, PREDICT, REMOVE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Integers
    from abers.base import Calibrator

    Make: TypeAlias = Callable[..., Calibrator[Any, Any, Any, Any]]

N = 40  # observations of a check
RULES: dict[str, Any] = {"window": 7, "max_age": 5.0, "half_life": 3.0}

_LEVELS = (0.1, 0.5, 0.9)


def raises(
    error: type[Exception] | tuple[type[Exception], ...],
    what: str,
    call: Callable[..., object],
    *arguments: Any,
    **keywords: Any,
) -> None:
    """Require that a call raises an error; `what` says that it did not."""
    try:
        call(*arguments, **keywords)
    except error:
        return
    except Exception as other:
        msg = f"{what}: {type(other).__name__} instead of the error that the contract has: {other}"
        raise AssertionError(msg) from other
    raise AssertionError(what)


def predictions(answers: Iterable[Any]) -> list[Any]:
    """Return predictions in a form that can be compared."""
    return [_plain(answer) for answer in answers]


def _plain(answer: Any) -> Any:
    if isinstance(answer, dict):
        return tuple(answer.values())
    if isinstance(answer, tuple | list):
        return tuple(map(_plain, answer))
    if hasattr(answer, "thresholds"):
        at = answer.thresholds
        return _plain([one.tolist() for one in (at, answer.lower(at), answer.upper(at))])
    number = float(answer)
    return None if math.isnan(number) else number  # so that it equals itself


class Data:
    """N observations for a calibrator: scores, labels and, where it forgets by time, times."""

    def __init__(self, calibrator: Calibrator[Any, Any, Any, Any]) -> None:
        able, n = calibrator.capabilities, N
        rng = np.random.default_rng(0)
        base = np.where(rng.random(n) < 0.5, rng.integers(1, 8, n) / 8, rng.random(n))  # noqa: PLR2004
        self.able = able
        self.timed = calibrator.max_age is not None or calibrator.half_life is not None
        self.times = np.arange(n) * 0.5
        self.names: tuple[Any, ...] = ()
        self.folds = int(getattr(calibrator, "folds", 1))
        self.scores: NDArray[Any] = base
        if able.score == "folds":
            self.scores = np.clip(base[:, np.newaxis] + rng.random((n, self.folds)) / 8, 0.0, 1.0)
        elif able.task == "multiclass":
            self.names = tuple(getattr(calibrator, "classes", ())) or ("a", "b", "c")
            table = rng.random((n, len(self.names)))
            self.scores = table / table.sum(axis=1, keepdims=True)
        elif able.score == "quantiles":
            steps = np.arange(int(getattr(calibrator, "members", 2))) / 64
            self.scores = base[:, np.newaxis] / 2 + steps
        elif able.score == "prediction":
            self.scores = base[:, np.newaxis] + np.array([0.0, 0.125])
        elif able.score == "segments":
            members = rng.integers(0, 2, (n, int(getattr(calibrator, "segments", 2))))
            self.scores = np.column_stack([base, members])
        if able.task == "binary":
            self.labels: list[Any] = (rng.random(n) < base).astype(int).tolist()
        elif able.task == "multiclass":
            self.numbers = rng.integers(0, len(self.names), n)
            self.labels = [self.names[k] for k in self.numbers]
        else:
            self.labels = (rng.integers(0, 9, n) / 8).tolist()

    # One observation

    def score(self, i: int) -> Any:
        """Return the score of an observation, as the single calls take it."""
        score = self.scores[i].tolist()
        return dict(zip(self.names, score, strict=True)) if self.names else score

    def bad_score(self, bad: Any) -> Any:
        """Return a score with a bad value in it."""
        if self.able.score == "folds":
            return [bad] * self.folds
        if self.able.score in {"quantiles", "prediction", "segments"}:
            return [bad] * self.scores.shape[1]
        return dict.fromkeys(self.names, bad) if self.names else bad

    def _when(self, i: int) -> dict[str, Any]:
        return {"time": float(self.times[i])} if self.timed else {}

    def _fold(self, i: int) -> dict[str, Any]:
        return {"fold": i % self.folds} if self.able.score == "folds" else {}

    def predict(self, calibrator: Any, i: int, number: int | None = None) -> Any:
        """Predict an observation."""
        of = i if number is None and self.able.stateful else number
        return calibrator.predict_one(self.score(i), **self._when(i), number=of)

    def learn(self, calibrator: Any, i: int, **other: Any) -> None:
        """Learn an observation, or one that differs from it."""
        number = {"number": i} if self.able.stateful else {}
        given = {"score": self.score(i), "label": self.labels[i], **self._when(i), **self._fold(i)}
        given = {**given, **number, **other}
        calibrator.learn_one(given.pop("score"), given.pop("label"), **given)

    def remove(self, calibrator: Any, i: int) -> None:
        """Remove an observation."""
        calibrator.remove_one(self.score(i), self.labels[i], **self._fold(i))

    # Many observations

    def bad_labels(self) -> list[Any]:
        """Return the labels with an invalid one at the end."""
        return [*self.labels[:-1], None if self.names else float("nan")]

    def _columns(self, rows: Integers) -> dict[str, Any]:
        times = {"times": self.times[rows]} if self.timed else {}
        folds = {"folds": rows % self.folds} if self.able.score == "folds" else {}
        return {**times, **folds}

    def learn_many(self, calibrator: Any, *, labels: Any = None, **more: Any) -> None:
        """Learn all observations."""
        columns = {**self._columns(np.arange(N)), **self._numbers(), **more}
        calibrator.learn_many(self.scores, self.labels if labels is None else labels, **columns)

    def predict_many(self, calibrator: Any) -> Any:
        """Predict all observations."""
        times = {"times": self.times} if self.timed else {}
        return calibrator.predict_many(self.scores, **times, **self._numbers())

    def _numbers(self) -> dict[str, Any]:
        return {"numbers": np.arange(N)} if self.able.stateful else {}

    def prequential(self, calibrator: Any, delay: int) -> Any:
        """Run all observations through `prequential`."""
        columns = {**self._columns(np.arange(N)), **self._levels()}
        return calibrator.prequential(self.scores, self.labels, delay=delay, **columns)

    def run(
        self,
        calibrator: Any,
        kinds: ArrayLike,
        rows: ArrayLike,
        held: Integers | None = None,
        numbers: ArrayLike | None = None,
    ) -> Any:
        """Run steps of observations."""
        at = np.asarray(rows)
        labels = self.numbers[at] if self.names else [self.labels[i] for i in at]
        columns = {**self._columns(at), **self._levels()}
        if numbers is None and self.able.stateful:
            numbers = at
        return calibrator.run(kinds, self.scores[at], labels, held=held, numbers=numbers, **columns)

    # Predictions

    def _levels(self) -> dict[str, Any]:
        return {"levels": _LEVELS} if self.able.answer == "distribution" else {}

    def expected(self, found: list[Any]) -> list[Any]:
        """Return single predictions in the form of those of `run`."""
        if self.able.answer != "distribution":
            return predictions(found)
        return predictions(
            tuple(each.tolist() for each in (one.quantile(_LEVELS), *one.quantile_ends(_LEVELS)))
            for one in found
        )

    @staticmethod
    def rows(answers: Any, asked: NDArray[np.bool_] | None = None) -> list[Any]:
        """Return arrays of predictions row by row, those wanted."""
        if isinstance(answers, list):
            return answers
        columns = (answers,) if isinstance(answers, np.ndarray) else tuple(answers)
        kept = [(one if asked is None else one[asked]).tolist() for one in columns]
        return kept[0] if isinstance(answers, np.ndarray) else [*zip(*kept, strict=True)]

    def require_valid(self, answer: Any) -> None:
        """Require that a prediction is of the declared kind."""
        kind = self.able.answer
        if kind == "probability":
            valid = isinstance(answer, float) and 0.0 <= answer <= 1.0
        elif kind == "interval":
            valid = 0.0 <= answer.p0 <= answer.p1 <= 1.0 and 0.0 < answer.merged < 1.0
        elif kind == "protected":
            valid = 0.0 <= answer.p0 <= answer.p1 <= 1.0 and 0.0 < answer.probability < 1.0
        elif kind == "folds":
            pairs = zip(answer.p0, answer.p1, strict=True)
            valid = all(0.0 <= p0 <= p1 <= 1.0 for p0, p1 in pairs) and 0.0 < answer.merged < 1.0
        elif kind == "classes":
            p = [*answer.p.values()]
            valid = min(p) >= 0.0 and abs(sum(p) - 1.0) < 1e-9  # noqa: PLR2004
            valid = valid and all(low <= answer.high[c] for c, low in answer.low.items())
        elif kind == "mean":
            valid = answer.low <= answer.high
        elif kind == "prediction interval":
            valid = not (math.isnan(answer.low) or math.isnan(answer.high))
        else:
            at = np.linspace(-0.5, 1.5, 9)
            lower, upper = answer.lower(at), answer.upper(at)
            ascends = (np.diff(lower) >= 0.0).all() and (np.diff(upper) >= 0.0).all()
            valid = bool((lower <= upper).all() and ascends)
        if not valid:
            msg = f"the prediction {answer!r} is not a valid {kind}"
            raise AssertionError(msg)


def require(condition: object, what: str) -> None:
    """Raise an AssertionError unless a condition holds."""
    if not condition:
        raise AssertionError(what)


def declared_rules(make: Make) -> list[dict[str, Any]]:
    """List no rule of forgetting, and each that is declared."""
    declared = make().capabilities.forgetting
    return [{}, *({name: RULES[name]} for name in declared)]


def made(make: Make, rule: dict[str, Any]) -> tuple[Data, Calibrator[Any, Any, Any, Any]]:
    """Make observations, and a calibrator that has learned all of them."""
    calibrator = make(**rule)
    data = Data(calibrator)
    for i in range(N):
        data.learn(calibrator, i)
    return data, calibrator


# Declared capabilities


def check_weights(make: Make) -> None:
    """Declared weights count; others are refused."""
    data = Data(make())
    plain, heavy = make(), make()
    data.learn(plain, 0)
    if not plain.capabilities.weights:
        what = "it takes weights, which `capabilities` do not declare"
        raises(InputError, what, data.learn, heavy, 0, weight=2.0)
        return
    data.learn(heavy, 0, weight=2.0)
    require(plain.state_bytes() != heavy.state_bytes(), "a weight does not change the state")
    one, other = make(), make()
    data.learn_many(one, weights=np.full(N, 0.5))
    for i in range(N):
        data.learn(other, i, weight=0.5)
    require(len(one) == len(other), "weights in a batch differ from those of single calls")


def check_removal(make: Make) -> None:
    """A removed observation leaves no trace; one that is not kept is refused."""
    data = Data(make())
    calibrator = make()
    data.learn(calibrator, 0)
    if calibrator.capabilities.removal == "none":
        raises(InputError, "it removes, which is not declared", data.remove, calibrator, 0)
        what = "`run` removes, which is not declared"
        raises(InputError, what, data.run, calibrator, [REMOVE], [0])
        return
    before = predictions([data.predict(calibrator, i) for i in range(N)]), len(calibrator)
    data.learn(calibrator, 1)
    data.remove(calibrator, 1)
    after = predictions([data.predict(calibrator, i) for i in range(N)]), len(calibrator)
    require(after == before, "a removed observation leaves a trace in predictions")
    held = calibrator.state_bytes()
    what = "removing an observation that is not kept raises no NotHeldError"
    raises(NotHeldError, what, data.remove, calibrator, 2)
    require(calibrator.state_bytes() == held, "a removal that is refused changes the state")
    for rule in declared_rules(make)[1:]:
        aging, held_by_rule = made(make, rule)
        what = "a calibrator that forgets by itself removes an observation"
        raises(ForgettingError, what, aging.remove, held_by_rule, 0)


def check_window(make: Make) -> None:
    """A window holds the last observations, and nothing of those before."""
    if "window" not in make().capabilities.forgetting:
        return
    size = RULES["window"]
    data = Data(make())
    calibrator, fresh = make(window=size), make(window=size)
    folds = getattr(calibrator, "folds", 1)  # each of them has a window of its own
    for i in range(N):
        data.learn(calibrator, i)
        require(len(calibrator) <= size * folds, f"a window of {size} keeps {len(calibrator)}")
    require(len(calibrator) == min(N, size * folds), "a window is not filled")
    # A fit starts from the last, and a mixture has experts that remember everything.
    whole = hasattr(calibrator, "refit") or calibrator.capabilities.stateful
    if not whole and folds == 1:
        for i in range(N - size, N):
            data.learn(fresh, i)
        same = [predictions([data.predict(one, 0)]) for one in (calibrator, fresh)]
        require(same[0] == same[1], "an observation that left the window counts in predictions")


def check_times(make: Make) -> None:
    """With `max_age` or `half_life` each label needs a time, and old ones are counted in `late`."""
    data = Data(make())
    what = "a time is accepted without max_age or half_life"
    raises(TimeError, what, data.learn, make(), 0, time=1.0)
    for name in ("max_age", "half_life"):
        if name not in make().capabilities.forgetting:
            continue
        calibrator = make(**{name: RULES[name]})
        what = "a label without its time is accepted"
        raises(TimeError, what, data.learn, calibrator, 0, time=None)
        data.learn(calibrator, 0, time=1000.0)
        data.learn(calibrator, 0, time=0.0)  # the same observation, of the same fold
        require(len(calibrator) == 1, f"{name}: a label that came too late is kept")
        require(calibrator.late == 1, f"{name}: a late label is not counted in `late`")
        data.learn(calibrator, 0, time=2000.0)
        require(len(calibrator) == 1, f"{name}: an observation that is too old is kept")


def check_expiries(make: Make) -> None:
    """Numbers and expiries are accepted, and have an effect only on a stateful calibrator."""
    data = Data(make())
    kinds = np.array([PREDICT, LEARN, PREDICT, EXPIRE, PREDICT, LEARN], np.uint8)
    rows, numbers = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 2, 2])
    batch, single = make(), make()
    held = np.empty(6, np.int64)
    answers = data.run(batch, kinds, rows, held, numbers=numbers)
    require(held.tolist() == [0, 1, 1, 1, 1, 2], "expiries change what is kept")
    found = []
    for kind, row in zip(kinds.tolist(), rows.tolist(), strict=True):
        if kind == PREDICT:
            found.append(data.predict(single, row, number=row))
        elif kind == LEARN:
            data.learn(single, row, number=row)
        else:
            single.expire_one(row)
    same = predictions(data.rows(answers, kinds == PREDICT)) == data.expected(found)
    require(same, "run with expiries differs from single calls")
    require(batch == single, "run with expiries has another state than single calls")
    single.expire_one(10**9)  # of a number that is not known
    require(batch == single, "the expiry of an unknown number changes the state")
    raises(ParameterError, "the number -1 is accepted", single.expire_one, -1)


# Saved state, copies and threads


def check_saving(make: Make) -> None:
    """A restored or copied calibrator is equal and goes on alike; damaged bytes are refused."""
    for rule in declared_rules(make):
        data, calibrator = made(make, rule)
        blob = calibrator.to_bytes()
        kind = type(calibrator)
        restored = [kind.from_bytes(blob), pickle.loads(pickle.dumps(calibrator))]  # noqa: S301
        restored += [copy.copy(calibrator), copy.deepcopy(calibrator)]
        for one in restored:
            require(type(one) is kind and one == calibrator, "what is restored is not equal")
            require(one.to_bytes() == blob, "what is restored has other bytes")
            require(repr(one) == repr(calibrator), "what is restored has another repr")
            data.learn(one, 1)
        data.learn(calibrator, 1)
        alike = all(one == calibrator for one in restored)
        require(alike, "what is restored does not go on alike")
        found = [predictions([data.predict(one, 2)]) for one in (calibrator, *restored)]
        require(found == found[:1] * len(found), "what is restored predicts otherwise")
        for at in range(0, len(blob), max(1, len(blob) // 20)):
            damaged = blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]
            raises(StateError, "damaged bytes are accepted", kind.from_bytes, damaged)
