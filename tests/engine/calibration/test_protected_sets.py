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
from abers.steps import EXPIRE, PREDICT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from abers.arrays import Floats

    Make = Callable[..., Any]

pytestmark = pytest.mark.native

HEAVY = 1.5 * (1 << 27)  # two such weights are more than a set with a half-life takes
FORGOTTEN = 30 * 3_000  # predictions after which the longest half-life drops a label

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
MANY_SETS = pytest.mark.parametrize("make", [cross, several])


def rows(calibrator: Any, n: int) -> Floats:  # noqa: ANN401 - one of three
    """Return scores of n observations."""
    return np.array([SCORES[type(calibrator)]] * n)


def held(calibrator: Any) -> Iterator[Any]:  # noqa: ANN401 - one of three
    """Return the calibration sets of all experts."""
    if isinstance(calibrator, ProtectedMultiClass):
        parts = [*calibrator._rests, calibrator._pairs]  # noqa: SLF001 - what is kept
        return (one for part in parts for one in part)
    if isinstance(calibrator, ProtectedVennAbers):
        return iter([calibrator._held])  # noqa: SLF001 - likewise
    parts = calibrator._sets  # noqa: SLF001 - likewise
    return (one for part in parts for one in (part if isinstance(part, list) else [part]))


@EVERY
@pytest.mark.parametrize("rule", [{"window": 20}, {"max_age": 19.5}, {"half_life": 0.65}], ids=str)
def test_a_rule_bounds_what_is_kept(make: Make, rule: dict[str, Any]) -> None:
    """With a rule of forgetting no set keeps every label; others have half-lives."""
    calibrator, n = make(**rule), 200
    times = None if "window" in rule else np.arange(float(n))
    scores = rows(calibrator, n)
    calibrator.prequential(scores, np.arange(n) // 2 % 2, times=times)
    fading = [one for one in held(calibrator) if one.half_life in {300.0, 3000.0}]
    others = [one for one in held(calibrator) if one not in fading]
    assert bool(fading) is (make is not binary)
    assert others
    assert max(one.size for one in others) <= 21
    assert len(calibrator) <= 21 * len(np.atleast_1d(scores[0]))


@MANY_SETS
def test_one_label_is_refused_where_a_batch_is(make: Make) -> None:
    """Weights that were forgotten count no more, in a batch and alone; others are refused."""
    alone, batch = make(), make()
    for one in (alone, batch):
        heavy(one)
        before = one.to_bytes()
        for refused in (heavy, heavy_batch):
            with pytest.raises(WeightError, match="the total weight would pass"):
                refused(one)
            assert one.to_bytes() == before
        n = FORGOTTEN + 1
        kinds = np.tile(np.array([PREDICT, EXPIRE], np.uint8), n)
        labels, numbers = np.zeros(2 * n, int), np.repeat(np.arange(n), 2)
        one.run(kinds, rows(one, 2 * n), labels, numbers=numbers)
    heavy(alone)
    heavy_batch(batch)
    assert alone.to_bytes() == batch.to_bytes()


def heavy(calibrator: Any) -> None:  # noqa: ANN401 - one of three
    """Learn a heavy label by itself."""
    score = SCORES[type(calibrator)]
    fold = {"fold": 0} if isinstance(calibrator, ProtectedCrossVennAbers) else {}
    if isinstance(calibrator, ProtectedMultiClass):
        score = dict(enumerate(SCORES[ProtectedMultiClass]))
    calibrator.learn_one(score, 1, weight=HEAVY, **fold)


def heavy_batch(calibrator: Any) -> None:  # noqa: ANN401 - one of three
    """Learn the same label as a batch of one."""
    fold = {"folds": [0]} if isinstance(calibrator, ProtectedCrossVennAbers) else {}
    calibrator.learn_many(rows(calibrator, 1), [1], weights=[HEAVY], **fold)
