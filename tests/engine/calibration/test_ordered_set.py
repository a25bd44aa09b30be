"""Venn-Abers calibrators of a stream are taught in an order: against plain Python."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.stream.ordered import LABEL_BYTES
from tests.oracles.ordered_calibrator import OrderedCalibrator

from abers import VennAbers
from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.backends import core
from abers.serialization import seal

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


LAST = math.inf, -math.inf, math.nan, 1e300
RULES: dict[str, tuple[int, float, float]] = {
    "max_age": (0, 10.0, 0.0),
    "half_life": (0, 0.0, 10.0),
}
MADE: dict[str, Any] = {
    "Merge": lambda held: core.Merge(held),  # noqa: PLW0108 - the reference lacks it
    "Protection": lambda held: core.Protection(held, 0, 0.25),
}


def held_back(make: Any, rule: tuple[int, float, float]) -> Any:  # noqa: ANN401 - a model of the core
    """Return a model with labels of rows 1 to 4 that wait, for that of row 0 is missing."""
    model = make(core.CalibrationSet(*rule))
    for number in range(6):
        model.step(PREDICT, [0.5 + number / 100], 0.0, float(number), number, 0, 0)
    for number in range(1, 5):
        model.step(LEARN, [0.5 + number / 100], 1.0, float(number), number, 0, 0)
    return model


def with_lessons(model: Any, weight: int | None = None, time: float | None = None) -> Any:  # noqa: ANN401
    """Return the saved model with another weight, or time, of all labels that wait."""
    (blob,) = core.save_models([model], 0, 1)
    magic, payload = bytes(blob[:8]), bytearray(bytes(blob[8:-16]))
    for number in range(1, 5):
        lesson = struct.pack("<qdB", number, 0.5 + number / 100, 1)
        at = payload.index(lesson) + len(lesson)
        old_weight, old_time = struct.unpack_from("<qd", payload, at)
        new = weight or old_weight, old_time if time is None else time
        struct.pack_into("<qd", payload, at, *new)
    return np.frombuffer(seal(magic, bytes(payload)), np.uint8)


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("rule", RULES)
def test_labels_that_wait_have_times_that_sets_resolve(make: str, rule: str) -> None:
    """A state whose labels would make a set that cannot be restored is refused."""
    model = held_back(MADE[make], RULES[rule])
    core.load_models(model, [with_lessons(model)])
    core.load_models(model, [with_lessons(model, time=4.5)])
    for time in LAST:
        if rule == "max_age" and time == 1e300:
            continue  # a set takes it
        with pytest.raises(ValueError, match="times of labels"):
            core.load_models(model, [with_lessons(model, time=time)])


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize(("window", "limit"), [(0, 2**63 - 1), (10, 2**63 - 1)])
def test_labels_that_wait_weigh_no_more_than_a_set_takes(
    make: str, window: int, limit: int
) -> None:
    """A state whose labels weigh more together than a set may is refused; up to that it is not."""
    model = held_back(MADE[make], (window, 0.0, 0.0))
    core.load_models(model, [with_lessons(model, weight=limit // 4)])
    for weight in (limit // 4 + 1, limit, -1):
        with pytest.raises(ValueError, match="weights of labels"):
            core.load_models(model, [with_lessons(model, weight=weight)])


def test_less_room_after_a_restore_is_kept() -> None:
    """Ten labels wait; where a restored model may keep three, the next label leaves three."""
    model = core.Merge(core.CalibrationSet(), 0, 1_000)
    for number in range(11):
        model.step(PREDICT, [0.5], 0.0, math.nan, number, number, number)
    for number in range(10):
        model.step(LEARN, [0.5], 1.0, math.nan, number, number, 10)
    (blob,) = core.save_models([model], 0, 1)
    empty = core.Merge(core.CalibrationSet(), 0, 1_000, 3 * LABEL_BYTES["ivap"])
    (restored,) = core.load_models(empty, [blob])
    assert restored.size == 0
    restored.step(LEARN, [0.5], 1.0, math.nan, 10, 10, 10)
    assert restored.size == 8
