"""Checks of declared weights, removal, forgetting and numbers, and of saved state.

They are part of `abers.checks`.
"""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING

import numpy as np

from abers._check_data import RULES, Data, N, declared_rules, made, predictions, raises, require
from abers.exceptions import (
    ForgettingError,
    InputError,
    NotHeldError,
    ParameterError,
    StateError,
    TimeError,
)
from abers.steps import EXPIRE, LEARN, PREDICT, REMOVE

if TYPE_CHECKING:
    from abers._check_data import Make

# Declared capabilities


def check_weights(make: Make) -> None:
    """Declared weights count; others are refused."""
    data = Data(make())
    plain, heavy = make(), make()
    data.learn(plain, 0)
    if not plain.capabilities.weights:
        what = "weights are accepted that are not declared"
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
        raises(InputError, "it removes", data.remove, calibrator, 0)
        raises(InputError, "it removes in run", data.run, calibrator, [REMOVE], [0])
        return
    before = predictions([data.predict(calibrator, i) for i in range(N)]), len(calibrator)
    data.learn(calibrator, 1)
    data.remove(calibrator, 1)
    after = predictions([data.predict(calibrator, i) for i in range(N)]), len(calibrator)
    require(after == before, "what is removed leaves a trace")
    held = calibrator.state_bytes()
    what = "what is not kept is removed"
    raises(NotHeldError, what, data.remove, calibrator, 2)
    require(calibrator.state_bytes() == held, "a removal that is refused changes the state")
    for rule in declared_rules(make)[1:]:
        aging, held_by_rule = made(make, rule)
        what = "one that forgets by itself removes"
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
        require(len(calibrator) <= size * folds, f"a window of {size} holds {len(calibrator)}")
    require(len(calibrator) == min(N, size * folds), "a window is not filled")
    # A fit starts from the last, and a mixture has experts that remember everything.
    whole = hasattr(calibrator, "refit") or calibrator.capabilities.stateful
    if not whole and folds == 1:
        for i in range(N - size, N):
            data.learn(fresh, i)
        same = [predictions([data.predict(one, 0)]) for one in (calibrator, fresh)]
        require(same[0] == same[1], "what a window has forgotten leaves a trace")


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
