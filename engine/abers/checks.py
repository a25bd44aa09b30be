"""Checks of the contract of a calibrator, for calibrators of abers and your own.

`check_calibrator` runs all of them. Each tests only what the calibrator declares in its
`capabilities`, and raises an AssertionError.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np

from abers._check_data import (
    RULES,
    Data,
    N,
    check_expiries,
    check_removal,
    check_saving,
    check_times,
    check_weights,
    check_window,
    declared_rules,
    made,
    predictions,
    raises,
    require,
)
from abers.base import Calibrator
from abers.exceptions import InputError, LabelError, NotHeldError, WeightError
from abers.mathematics import LEARN, PREDICT, REMOVE, Capabilities, interleaved

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers._check_data import Make

__all__ = [
    "CHECKS",
    "check_all_or_nothing",
    "check_batches",
    "check_calibrator",
    "check_capabilities",
    "check_deterministic",
    "check_empty",
    "check_expiries",
    "check_forgetting_options",
    "check_learning",
    "check_many",
    "check_predictions_change_nothing",
    "check_refusals",
    "check_removal",
    "check_saving",
    "check_splits",
    "check_times",
    "check_valid_predictions",
    "check_weights",
    "check_window",
]


def __dir__() -> list[str]:
    """List the public names."""
    return __all__


def check_calibrator(make: Make) -> None:
    """Run every check on a calibrator.

    Parameters
    ----------
    make
        The class, or a function that makes an empty calibrator and takes the declared rules of
        forgetting as keywords. One of several classes must know them, as
        ``partial(OneVsRest, ("a", "b", "c"))`` does; labels that are numbers are drawn from [0, 1].

    Raises
    ------
    AssertionError
        If the calibrator breaks the contract; the message begins with the name of the check.

    Examples
    --------
    >>> from abers import VennAbers
    >>> check_calibrator(VennAbers)
    >>> from functools import partial
    >>> from abers.batch import IVAR
    >>> check_calibrator(partial(IVAR, 0.0, 1.0))
    """
    for check in CHECKS:
        try:
            check(make)
        except AssertionError as error:
            msg = f"{check.__name__}: {error}"
            raise AssertionError(msg) from error
        except Exception as error:
            msg = f"{check.__name__}: {type(error).__name__}: {error}"
            raise AssertionError(msg) from error


# Declarations


def check_capabilities(make: Make) -> None:
    """The capabilities are declared, and have known values."""
    calibrator = make()
    require(isinstance(calibrator, Calibrator), "it is not a subclass of abers.base.Calibrator")
    declared = calibrator.capabilities
    require(isinstance(declared, Capabilities), "`capabilities` is not an abers Capabilities")
    known = get_type_hints(Capabilities)
    for name in ("task", "score", "answer", "removal"):
        found, values = getattr(declared, name), get_args(known[name])
        require(found in values, f"capabilities.{name} is {found!r}, not one of {values}")
    require({*declared.forgetting} <= {*RULES}, "capabilities.forgetting has unknown rules")


def check_empty(make: Make) -> None:
    """An empty calibrator holds nothing, is true, can be shown and predicts."""
    calibrator = make()
    require(len(calibrator) == 0, "an empty calibrator holds observations")
    require(bool(calibrator), "an empty calibrator is false")
    require(type(calibrator).__name__ in repr(calibrator), "repr does not name the class")
    data = Data(calibrator)
    data.require_valid(data.predict(calibrator, 0))


def check_forgetting_options(make: Make) -> None:
    """Declared rules of forgetting are kept, exclude each other, and must be positive."""
    declared = make().capabilities.forgetting
    for name in declared:
        kept = getattr(make(**{name: RULES[name]}), name)
        require(kept == RULES[name], f"{name}={RULES[name]} is kept as {kept!r}")
        raises(InputError, f"{name}=0 is accepted", make, **{name: 0})
    for one, other in pairwise(declared):
        both = {one: RULES[one], other: RULES[other]}
        raises(InputError, f"{one} and {other} are accepted together", make, **both)
    for name in {*RULES} - {*declared}:
        options = {name: RULES[name]}
        raises((InputError, TypeError), f"{name} is accepted", make, **options)


# Learning and predicting


def check_valid_predictions(make: Make) -> None:
    """Predictions are of the declared kind: probabilities in [0, 1], ends in order, CDFs."""
    for rule in declared_rules(make):
        calibrator = make(**rule)
        data = Data(calibrator)
        for i in range(N):
            data.require_valid(data.predict(calibrator, i))
            data.learn(calibrator, i)


def check_learning(make: Make) -> None:
    """A label is counted, and changes the state."""
    calibrator = make()
    data = Data(calibrator)
    for i in range(N):
        before = calibrator.state_bytes()
        data.learn(calibrator, i)
        require(len(calibrator) == i + 1, f"{len(calibrator)} observations kept after {i + 1}")
        require(calibrator.state_bytes() != before, "a label does not change the state")


def check_predictions_change_nothing(make: Make) -> None:
    """A prediction changes only the state of a calibrator that is declared stateful."""
    for rule in declared_rules(make):
        data, calibrator = made(make, rule)
        if calibrator.capabilities.stateful:
            continue
        before = calibrator.state_bytes()
        for i in range(N):
            data.predict(calibrator, i)
        require(calibrator.state_bytes() == before, "a prediction changes the state")


def check_deterministic(make: Make) -> None:
    """The same calls give the same predictions, equal calibrators and equal bytes."""
    for rule in declared_rules(make):
        (data, one), (_, other) = (made(make, rule) for _ in range(2))
        require(one.state_bytes() == other.state_bytes(), "equal calls give other bytes")
        require(one == other, "equal calls give calibrators that are not equal")
        same = predictions([data.predict(one, 0)]) == predictions([data.predict(other, 0)])
        require(same, "equal calls give other predictions")
        data.learn(one, 1)
        require(one != other, "calibrators with different labels are equal")


# Batches


def check_batches(make: Make) -> None:
    """`prequential` and `run` give what the calls for one observation give, for any delay."""
    for rule in declared_rules(make):
        for delay in (0, 3, N + 1):
            single, batch, steps = (make(**rule) for _ in range(3))
            data = Data(single)
            rows, kinds = interleaved(N, delay)
            found, sizes = [], []
            for row, kind in zip(rows.tolist(), kinds.tolist(), strict=True):
                if kind == PREDICT:
                    found.append(data.predict(single, row))
                else:
                    data.learn(single, row)
                sizes.append(len(single))
            answers = data.prequential(batch, delay)
            if answers is not None:
                same = predictions(data.rows(answers)) == data.expected(found)
                require(same, f"prequential with delay {delay} differs from single calls")
                require(batch == single, f"prequential with delay {delay} has another state")
            held = np.empty(2 * N, np.int64)
            answers = data.run(steps, kinds, rows, held)
            asked = data.rows(answers, kinds == PREDICT)
            require(predictions(asked) == data.expected(found), "run differs from single calls")
            require(held.tolist() == sizes, "run counts other observations than single calls")
            require(steps == single, "run has another state than single calls")


def check_splits(make: Make) -> None:
    """However steps are split into batches, predictions and state are the same."""
    for rule in declared_rules(make):
        whole, parts = make(**rule), make(**rule)
        data = Data(whole)
        rows, kinds = interleaved(N, 2)
        at_once = predictions(data.rows(data.run(whole, kinds, rows), kinds == PREDICT))
        piecewise: list[Any] = []
        for start in range(0, len(rows), 7):
            part = slice(start, start + 7)
            answers = data.run(parts, kinds[part], rows[part])
            piecewise += predictions(data.rows(answers, kinds[part] == PREDICT))
        require(at_once == piecewise, "predictions depend on how steps are split")
        require(whole == parts, "the state depends on how steps are split")


def check_many(make: Make) -> None:
    """`learn_many` and `predict_many` give what the calls for one observation give."""
    for rule in declared_rules(make):
        many, single = make(**rule), make(**rule)
        data = Data(many)
        data.learn_many(many)
        for i in range(N):
            data.learn(single, i)
        counts = len(many) == len(single) and many.late == single.late
        require(counts, "learn_many holds other observations than single calls")
        other = make(**rule)
        data.learn_many(other)
        found = predictions(data.rows(data.predict_many(many)))
        each = predictions([data.predict(other, i) for i in range(N)])
        require(found == each, "predict_many differs from single calls")


def check_refusals(make: Make) -> None:
    """Bad scores, labels, weights and columns are InputErrors, and change nothing."""
    data, calibrator = made(make, {})
    before = calibrator.state_bytes()
    for bad in (math.nan, math.inf, None, "0.5"):
        what = f"score {bad!r} is accepted"
        raises(InputError, what, calibrator.predict_one, data.bad_score(bad))
        raises(InputError, what, data.learn, calibrator, 0, score=data.bad_score(bad))
    labels: list[Any] = [math.nan, None, [], 1j]
    for label in labels:
        what = f"label {label!r} is accepted"
        raises(LabelError, what, data.learn, calibrator, 0, label=label)
    for bad in (0.0, -1.0, math.nan, math.inf):
        what = f"weight {bad!r} is accepted"
        raises(InputError, what, data.learn, calibrator, 0, weight=bad)
    raises(InputError, "an unknown column is accepted", data.learn_many, calibrator, no=1)
    raises(InputError, "an unknown step is accepted", data.run, calibrator, [4], [0])
    require(calibrator.state_bytes() == before, "a refused step changes the state")


def check_all_or_nothing(make: Make) -> None:
    """A batch with a bad row, or one that is refused half-way, changes nothing."""
    for rule in declared_rules(make):
        data, calibrator = made(make, rule)
        before = calibrator.state_bytes()
        what = "a batch with a bad label is accepted"
        raises(InputError, what, data.learn_many, calibrator, labels=data.bad_labels())
        if calibrator.capabilities.weights:
            heavy = np.full(N, 2.0**27 if "half_life" in rule else 2.0**32)
            what = "too much weight is accepted"
            raises(WeightError, what, data.learn_many, calibrator, weights=heavy)
        if calibrator.capabilities.removal == "any" and not rule:
            kinds, rows = [LEARN, *[REMOVE] * 5], [1, *[2] * 5]
            what = "`run` removes an observation that is not kept"
            raises(NotHeldError, what, data.run, calibrator, kinds, rows)
        require(calibrator.state_bytes() == before, "a batch that is refused changes the state")
        data.learn(calibrator, 0)  # and it goes on


CHECKS: tuple[Callable[[Make], None], ...] = (
    check_capabilities,
    check_empty,
    check_forgetting_options,
    check_valid_predictions,
    check_learning,
    check_predictions_change_nothing,
    check_deterministic,
    check_batches,
    check_splits,
    check_many,
    check_refusals,
    check_all_or_nothing,
    check_weights,
    check_removal,
    check_window,
    check_times,
    check_expiries,
    check_saving,
)
"""All checks, in the order in which they are run."""
