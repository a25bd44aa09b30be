"""Calibration sets and their mixture in one call: times, refusals, and the native core."""

from __future__ import annotations

import math
import struct
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.oracles.protection import Protection

from abers import ParameterError, StateError, VennAbers, WeightError
from abers.arrays import EXPIRE, LEARN, ONE, PREDICT, REMOVE
from abers.backends import core
from abers.calibration import log_merge
from abers.calibration.protected import ProtectedVennAbers
from abers.calibration.raw_probability import KINDS
from abers.reference import CalibrationSet
from abers.serialization import pack, seal, unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from abers.calibration.raw_probability import Kind

pytestmark = pytest.mark.native


def made(kind: Kind, window: int = 0) -> tuple[Any, Any]:
    """Make a calibrator of the core, and one of plain Python."""
    native = core.Protection(core.CalibrationSet(window), KINDS.index(kind), 0.25)
    return native, Protection(CalibrationSet(window), kind, 0.25)


def state(of: Any) -> list[NDArray[Any]]:  # noqa: ANN401 - of both kinds
    """Return parameters, exponents, and by lane what awaits a label there."""
    lanes, experts = of.lane_rows, of.experts
    columns: list[Any] = [np.empty(of.parameter_count), np.empty(experts + 1, np.int64)]
    columns += [*np.empty((2, lanes), np.int64), np.empty(lanes * experts), np.empty(lanes * KEPT)]
    of.save(*columns)
    return columns


KEPT = 26  # numbers that an observation keeps: 11 forecasts, 14 features, log odds


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", [0, 20])
def test_a_calibrator_equals_its_oracle(window: int, kind: Kind) -> None:
    """Answers and state are those of plain Python, to the bit, one by one and in runs."""
    rng = np.random.default_rng(window)
    n = 1_500
    u = rng.random(n)
    kinds = np.where(u < 0.5, PREDICT, np.where(u < 0.93, LEARN, EXPIRE)).astype(np.uint8)
    near = np.cumsum(kinds == PREDICT) - rng.integers(0, 40, n)
    numbers = np.where(rng.random(n) < 0.05, -1, np.where(kinds == PREDICT, np.arange(n), near))
    numbers = np.maximum(numbers, -1)
    scores = rng.random(n) if kind == "probability" else rng.normal(0.0, 4.0, n)
    labels = (rng.random(n) < 0.4).astype(np.uint8)
    weights = rng.integers(1, 3 * ONE, n)
    results = []
    for one in made(kind, window):
        p0, p1, p = np.empty((3, n))
        held = np.empty(n, np.int64)
        columns = kinds, scores, labels, weights, None, numbers, p0, p1, p, held
        for part in (slice(0, 700), slice(700, n)):
            of: list[Any] = [column if column is None else column[part] for column in columns]
            assert one.run(*of) == len(of[0])
        single = one.predict(0.3, ONE, math.nan, n)
        assert one.learn(0.3, True, ONE, math.nan, n)  # noqa: FBT003 - a field
        one.expire(7)
        mixture = one if isinstance(one, Protection) else one.mixture
        losses, shares = np.empty(12), np.empty(11)
        mixture.losses(losses)
        mixture.weights(shares)
        counts = [mixture.taught, mixture.labels, mixture.lane_count, one.size]
        results.append([p0, p1, p, held, single, losses, shares, counts, *state(mixture)])
    for left, right in zip(*results, strict=True):
        np.testing.assert_array_equal(left, right)


def test_shrinking_is_that_of_the_page() -> None:
    """A shrunk probability weighs the merge by its evidence, and the raw one by 30."""
    calibrator, plain = ProtectedVennAbers(), VennAbers()
    scores, labels = np.linspace(0.1, 0.9, 200), np.arange(200) % 3 == 0
    for one in (calibrator, plain):
        one.learn_many(scores, labels)
    calibrator.predict_one(0.4, number=0)
    p0, p1 = plain.predict_one(0.4)
    evidence = 1.0 / (p1 - p0) - 1.0
    merged = log_merge(np.array([p0]), np.array([p1])).item()
    expected = (evidence * merged + 30.0 * 0.4) / (evidence + 30.0)
    assert calibrator._mixture.experts == 11  # noqa: SLF001 - what is kept with a prediction
    assert state(calibrator._mixture)[-1][:2].tolist() == [0.4, expected]  # noqa: SLF001 - likewise


HEAVY = float(1 << 27)


@pytest.mark.parametrize(
    "refused",
    [
        lambda one: one.learn_one(0.6, 1, weight=HEAVY, time=1, number=1),
        lambda one: one.learn_many(
            [0.6] * 2, [1, 1], weights=[1.0, HEAVY], times=[1, 1], numbers=[1, 2]
        ),
    ],
)
def test_a_refused_label_changes_nothing(refused: Callable[[ProtectedVennAbers], None]) -> None:
    """A label that a decaying set cannot take is refused by the mixture too."""
    calibrator = ProtectedVennAbers(half_life=9.0)
    calibrator.learn_one(0.3, 1, weight=HEAVY, time=0)
    calibrator.learn_one(0.3, 1, weight=HEAVY - 1, time=0)
    calibrator.predict_one(0.6, number=1)
    before = calibrator.to_bytes()
    for _ in range(2):
        with pytest.raises(WeightError, match="the total weight would pass"):
            refused(calibrator)
        assert calibrator.to_bytes() == before
    calibrator.learn_one(0.6, 1, time=1, number=1)
    assert calibrator.awaiting == 0


def test_nothing_is_removed() -> None:
    """A step that removes is refused by the core."""
    protection, _ = made("probability")
    column = np.array([0.5])
    out = np.empty((3, 1))
    kinds, labels = np.array([REMOVE], np.uint8), np.zeros(1, np.uint8)
    with pytest.raises(ValueError, match="nothing is removed"):
        protection.run(kinds, column, labels, None, None, None, *out, None)


def test_a_label_after_its_expiry_teaches_the_interval_alone() -> None:
    """Predict, expire, label: no lane changes, and no loss counts; the interval learns."""
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


@pytest.mark.parametrize(
    ("column", "wrong", "why"),
    [
        (0, struct.pack("<q", 8), "counts of predictions"),  # less than the order of teaching has
        (4, struct.pack("<2q", 6, 6), "rows that wait"),  # 5 waits, and holds no lane
        (4, struct.pack("<2q", 4, 6), "rows that wait"),  # 4 has its label
    ],
    ids=["fewer predictions", "one twice", "one with its label"],
)
def test_saved_lanes_that_the_order_of_teaching_does_not_know(
    column: int, wrong: bytes, why: str
) -> None:
    """Lanes are kept by the observations that wait, and each of these has its own."""
    calibrator = ProtectedVennAbers()
    for number in range(3):
        calibrator.predict_one(0.3, number=number)
        calibrator.learn_one(0.3, number % 2, number=number)
    for number in range(3, 9):
        calibrator.predict_one(0.3, number=number)
    for number in (3, 4, 7, 8):
        calibrator.learn_one(0.3, number % 2, number=number)
    pieces = unpack(memoryview(calibrator.state_bytes()))
    assert ProtectedVennAbers.from_bytes(seal(b"abersPV\x01", pack(pieces))).awaiting == 2
    at = 9 if column == 0 else 16  # behind scores and raw_weight; of lanes 2 and 3
    pieces[column] = pieces[column][:at] + wrong + pieces[column][at + len(wrong) :]
    with pytest.raises(StateError, match=f"inconsistent.*{why}"):
        ProtectedVennAbers.from_bytes(seal(b"abersPV\x01", pack(pieces)))


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
