"""Venn-Abers calibrators of a stream are taught in an order: against plain Python."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.oracles.ordered_calibrator import OrderedCalibrator

from abers import VennAbers
from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.backends import core

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.native

NEVER = 2**63 - 1


def steps(seed: int, n: int = 400) -> Iterator[tuple[int, float, int, int, int, int]]:
    """Yield kind, score, label, number, time of the observation, and the clock."""
    rng = np.random.default_rng(seed)
    waiting: list[tuple[int, float, int]] = []
    made = clock = 0
    for _ in range(n):
        clock += int(rng.integers(0, 5))
        if not waiting or rng.random() < 0.5:
            moment = max(clock - int(rng.integers(0, 9)), 0)
            waiting.append((made, float(rng.integers(0, 11)) / 10, moment))
            yield PREDICT, waiting[-1][1], 0, made, moment, clock
            made += 1
        else:
            number, score, moment = waiting.pop(int(rng.integers(len(waiting))))
            kind = EXPIRE if rng.random() < 0.15 else LEARN
            yield kind, score, int(rng.random() < score), number, moment, clock


@pytest.mark.parametrize("age", [None, 0, 15, 400])
@pytest.mark.parametrize("seed", range(5))
def test_a_calibrator_equals_its_oracle(seed: int, age: int | None) -> None:
    """Intervals and numbers of labels are those of plain Python, also after a restore."""
    one = core.Merge(core.CalibrationSet(), NEVER, -1 if age is None else age)
    plain = OrderedCalibrator(VennAbers(), age)
    for row, (kind, score, label, number, moment, clock) in enumerate(steps(seed)):
        found, before = one.step(kind, [score], label, math.nan, number, moment, clock), len(plain)
        if kind == PREDICT:
            expected = plain.predict_one(score, number=number, moment=moment, clock=clock)
            n_labels = before if age is None else len(plain)  # by age it learns before it predicts
            assert found == ([*expected, expected.merged], n_labels)
        elif kind == LEARN:
            plain.learn_one(score, label, number=number, clock=clock)
        else:
            plain.expire_one(number, clock)
        assert one.size == len(plain)
        if row % 50 == 0:
            (blob,) = core.save_models([one], 0, 1)
            (one,) = core.load_models(one, [blob])


def test_a_protected_calibrator_learns_by_age() -> None:
    """A label that comes at once teaches when its observation is 20 old, and no earlier."""
    rng = np.random.default_rng(3)
    model: Any = core.Protection(core.CalibrationSet(), 0, 0.25, 0, 20)
    for now in range(300):
        model.step(PREDICT, [rng.random()], 0.0, math.nan, now, now, now)
        model.step(LEARN, [rng.random()], rng.integers(0, 2), math.nan, now, now, now)
        assert model.size == max(now - 19, 0)
        assert (model.mixture.labels, model.mixture.awaiting_count) == (now + 1, 0)
