"""Calibration sets and their mixture in one call: times, refusals, and the native core."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.oracles.aggregation import Aggregation
from tests.oracles.protection import Protection

from abers import ParameterError, VennAbers, WeightError
from abers.arrays import EXPIRE, LEARN, ONE, PREDICT, REMOVE
from abers.backends import core
from abers.calibration import log_merge
from abers.calibration.protected import ProtectedVennAbers
from abers.reference import CalibrationSet

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = pytest.mark.native


def native() -> tuple[Any, Any, Any]:
    """Return the classes of the core."""
    return core.CalibrationSet, core.Aggregation, core.Protection


def made(kinds: tuple[Any, Any, Any], window: int = 0) -> tuple[Any, Any, Any]:
    """Make a mixture, its sets, and the two as one."""
    calibration_set, aggregation, protection = kinds
    fading = (calibration_set(0, 0.0, one) for one in (300.0, 9.0))
    sets = [calibration_set(window), *fading]
    mixture = aggregation(len(sets))
    return mixture, sets, protection(mixture, tuple(sets))


@pytest.mark.parametrize("window", [0, 20])
def test_sets_and_mixture_equal_their_oracle(window: int) -> None:
    """The answers are those of plain Python, to the bit, one by one and in runs."""
    rng = np.random.default_rng(window)
    n = 300
    kinds = rng.choice(np.array([PREDICT, LEARN, EXPIRE], np.uint8), n, p=[0.55, 0.35, 0.1])
    numbers = rng.integers(-1, 60, n)
    scores, raw = rng.random((2, n))
    labels = rng.integers(0, 2, n).astype(np.uint8)
    weights = rng.integers(1, 3 * ONE, n)
    results, label = [], True
    for classes in (native(), (CalibrationSet, Aggregation, Protection)):
        mixture, sets, protection = made(classes, window)
        p0, p1, p = np.empty((3, n))
        held = np.empty(n, np.int64)
        columns = kinds, scores, raw, labels, weights, None, numbers, p0, p1, p, held
        halves = [
            [one if one is None else one[part] for one in columns]
            for part in (slice(0, 200), slice(200, n))
        ]
        assert protection.run(*halves[0]) == 200
        assert protection.run(*halves[1]) == n - 200
        single = protection.predict(0.3, 0.4, ONE, math.nan, 5)
        assert protection.learn(0.3, 0.4, label, ONE, math.nan, 5)
        protection.expire(7)
        losses = np.empty(mixture.experts + 1)
        mixture.losses(losses)
        counts = [protection.positives, mixture.taught, mixture.lane_count, sets[0].size]
        results.append([p0, p1, p, held, np.array(single), losses, np.array(counts)])
    for left, right in zip(*results, strict=True):
        np.testing.assert_array_equal(left, right)


def test_shrinking_is_that_of_the_page() -> None:
    """A shrunk probability weighs the merge by its evidence, and the raw one by 30."""
    calibrator, plain = ProtectedVennAbers(), VennAbers()
    scores, labels = np.linspace(0.1, 0.9, 200), np.arange(200) % 3 == 0
    for one in (calibrator, plain):
        one.learn_many(scores, labels)
    mixture = calibrator._mixture  # noqa: SLF001 - what is kept with a prediction
    calibrator.predict_one(0.4, number=0)
    columns: list[Any] = [np.empty(mixture.parameter_count)]
    columns += [np.empty(mixture.experts + 1, np.int64)]
    columns += [*np.empty((2, mixture.lane_rows), np.int64)]
    columns += [*np.empty((2, mixture.lane_rows * mixture.experts))]
    mixture.save(*columns)
    p0, p1 = plain.predict_one(0.4)
    evidence = 1.0 / (p1 - p0) - 1.0
    merged = log_merge(np.array([p0]), np.array([p1])).item()
    expected = (evidence * merged + 30.0 * 0.4) / (evidence + 30.0)
    assert columns[-1][:2].tolist() == [0.4, expected]


HEAVY = float(1 << 27)


@pytest.mark.parametrize(
    "refused",
    [
        lambda one: one.learn_one(0.6, 1, weight=HEAVY * 2, number=1),
        lambda one: one.learn_many([0.6] * 2, [1, 1], weights=[1.0, HEAVY * 2], numbers=[1, 2]),
    ],
)
def test_a_refused_label_changes_nothing(refused: Callable[[ProtectedVennAbers], None]) -> None:
    """A label that a decaying set cannot take is refused by all sets and by the mixture."""
    calibrator = ProtectedVennAbers()
    calibrator.predict_one(0.3, number=0)
    calibrator.learn_one(0.3, 1, weight=HEAVY, number=0)
    calibrator.predict_one(0.6, number=1)
    before = calibrator.to_bytes()
    for _ in range(2):
        with pytest.raises(WeightError, match="the total weight would pass"):
            refused(calibrator)
        assert calibrator.to_bytes() == before
    calibrator.learn_one(0.6, 1, number=1)
    assert calibrator.awaiting == 0


def test_nothing_is_removed() -> None:
    """A step that removes is refused by the core."""
    _, _, protection = made(native())
    column = np.array([0.5])
    out = np.empty((3, 1))
    kinds, labels = np.array([REMOVE], np.uint8), np.zeros(1, np.uint8)
    with pytest.raises(ValueError, match="nothing is removed"):
        protection.run(kinds, column, column, labels, None, None, None, *out, None)


def test_a_label_after_its_expiry_teaches_the_experts_alone() -> None:
    """Predict, expire, label: no lane changes, and no loss counts; the experts learn."""
    calibrator = ProtectedVennAbers()
    calibrator.predict_one(0.3, number=0)
    calibrator.expire_one(0)
    weights = calibrator.expert_weights()
    calibrator.learn_one(0.3, 1, number=0)
    assert calibrator.expert_weights() == weights
    assert set(calibrator.expert_losses().values()) == {0.0}
    assert (calibrator.lanes, calibrator.awaiting, len(calibrator)) == (1, 0, 1)
    restored = ProtectedVennAbers.from_bytes(calibrator.to_bytes())
    assert (restored.lanes, restored.to_bytes()) == (1, calibrator.to_bytes())


@pytest.mark.parametrize("numbers", [[2**64 - 1], [2**63], [-2], [0.0]])
def test_numbers_beyond_64_bits(numbers: list[float]) -> None:
    """A number that no int64 is, is refused; it is never taken for one that means none."""
    calibrator = ProtectedVennAbers()
    with pytest.raises(ParameterError, match="between 0 and 9223372036854775807, or -1"):
        calibrator.predict_many([0.5], numbers=numbers)
    assert calibrator.awaiting == 0
    calibrator.predict_many([0.5], numbers=np.array([2**63 - 1], np.uint64))
    assert calibrator.awaiting == 1


def test_lanes_are_read_beside_a_running_thread() -> None:
    """Weights and losses read while another thread runs are those between two of its calls."""
    calibrator = ProtectedVennAbers()
    rng = np.random.default_rng(3)
    scores = rng.random(40)
    labels = (rng.random(40) < scores).astype(int)
    done = threading.Event()

    def work() -> None:
        for first in range(0, 400, 40):
            numbers = np.arange(first, first + 40)
            calibrator.predict_many(scores, numbers=numbers)
            calibrator.learn_many(scores, labels, numbers=numbers)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        assert sum(calibrator.expert_weights().values()) == pytest.approx(1.0)
        assert all(math.isfinite(one) for one in calibrator.expert_losses().values())
        assert calibrator.lanes in {0, 40}
        assert calibrator.awaiting in {0, 40}
    thread.join()
    assert (calibrator.lanes, calibrator.awaiting) == (40, 0)
