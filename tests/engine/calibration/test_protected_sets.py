"""Calibration sets of protected calibrators: how many labels they keep, and which they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abers import (
    ProtectedCrossVennAbers,
    ProtectedMultiClass,
    ProtectedVennAbers,
    WeightError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.arrays import Floats

    Make = Callable[..., Any]

pytestmark = pytest.mark.native

HEAVY = float(1 << 27)  # three such weights are more than a set with a half-life takes
FORGOTTEN = 31 * 9.0  # time after which a half-life of 9 drops a label

SCORES: dict[type, Any] = {
    ProtectedVennAbers: 0.3,
    ProtectedCrossVennAbers: [0.3, 0.2],
    ProtectedMultiClass: [0.3, 0.7],
}


def binary(**options: Any) -> ProtectedVennAbers:  # noqa: ANN401 - of any type
    """Make a calibrator of two classes."""
    return ProtectedVennAbers(**options)


def cross(**options: Any) -> ProtectedCrossVennAbers:  # noqa: ANN401 - of any type
    """Make a calibrator of two folds."""
    return ProtectedCrossVennAbers(2, **options)


def several(**options: Any) -> ProtectedMultiClass:  # noqa: ANN401 - of any type
    """Make a calibrator of classes 0 and 1."""
    return ProtectedMultiClass([0, 1], **options)


EVERY = pytest.mark.parametrize("make", [binary, cross, several])


def rows(calibrator: Any, n: int) -> Floats:  # noqa: ANN401 - one of three
    """Return scores of n observations."""
    return np.array([SCORES[type(calibrator)]] * n)


@EVERY
@pytest.mark.parametrize("rule", [{"window": 20}, {"max_age": 19.5}, {"half_life": 0.65}], ids=str)
def test_a_rule_bounds_what_is_kept(make: Make, rule: dict[str, Any]) -> None:
    """With a rule of forgetting no set keeps every label."""
    calibrator, n = make(**rule), 200
    times = None if "window" in rule else np.arange(float(n))
    scores = rows(calibrator, n)
    calibrator.prequential(scores, np.arange(n) // 2 % 2, times=times)
    held = calibrator._held  # noqa: SLF001 - what is kept
    sets = held if isinstance(held, list) else [held]
    assert max(one.size for one in sets) <= 21
    assert len(calibrator) <= 21 * len(np.atleast_1d(scores[0]))


@EVERY
def test_one_label_is_refused_where_a_batch_is(make: Make) -> None:
    """Weights that were forgotten count no more, in a batch and alone; others are refused."""
    alone, batch = make(half_life=9.0), make(half_life=9.0)
    for one in (alone, batch):
        heavy(one, 0.0, HEAVY)
        heavy(one, 0.0, HEAVY - 1.0)
        before = one.to_bytes()
        for refused in (heavy, heavy_batch):
            with pytest.raises(WeightError, match="the total weight would pass"):
                refused(one, 0.0, HEAVY)
            assert one.to_bytes() == before
    heavy(alone, FORGOTTEN, HEAVY)
    heavy_batch(batch, FORGOTTEN, HEAVY)
    assert alone.to_bytes() == batch.to_bytes()


def heavy(calibrator: Any, time: float, weight: float) -> None:  # noqa: ANN401 - one of three
    """Learn a heavy label by itself."""
    score = SCORES[type(calibrator)]
    fold = {"fold": 0} if isinstance(calibrator, ProtectedCrossVennAbers) else {}
    if isinstance(calibrator, ProtectedMultiClass):
        score = dict(enumerate(SCORES[ProtectedMultiClass]))
    calibrator.learn_one(score, 1, weight=weight, time=time, **fold)


def heavy_batch(calibrator: Any, time: float, weight: float) -> None:  # noqa: ANN401 - one of three
    """Learn the same label as a batch of one."""
    fold = {"folds": [0]} if isinstance(calibrator, ProtectedCrossVennAbers) else {}
    calibrator.learn_many(rows(calibrator, 1), [1], weights=[weight], times=[time], **fold)
