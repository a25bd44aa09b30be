"""Calibration sets and their mixture in one call: times, refusals, and the native core."""

from __future__ import annotations

import itertools
import math
import struct
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.oracles.calibration_sets import ClassSets, FoldSets, OneSet
from tests.oracles.protection import Protection

from abers import ParameterError, StateError, VennAbers, WeightError
from abers.arrays import EXPIRE, LEARN, ONE, PREDICT, REMOVE
from abers.backends import core
from abers.calibration import log_merge
from abers.calibration.protected import KINDS, ProtectedVennAbers
from abers.reference import CalibrationSet
from abers.serialization import pack, seal, unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from abers.calibration.protected import Kind

pytestmark = pytest.mark.native


KINDS_OF_SETS = ("one", "folds", "classes")
FOLDS, CLASSES = 3, 4


def made(sets: str, kind: Kind, window: int = 0) -> tuple[Any, Any]:
    """Make a calibrator of the core, and one of plain Python."""
    number = KINDS.index(kind)
    if sets == "one":
        held = core.CalibrationSet(window)
        plain: Any = OneSet(CalibrationSet(window), kind)
        return core.Protection(held, number, 0.25), Protection(plain)
    count = FOLDS if sets == "folds" else CLASSES
    each = [core.CalibrationSet(window) for _ in range(count)]
    if sets == "folds":
        native: Any = core.FoldProtection(each, number, 0.25)
        return native, Protection(FoldSets(lambda: CalibrationSet(window), count, kind))
    native = core.ClassProtection(each, number, 0.25)
    return native, Protection(ClassSets(lambda: CalibrationSet(window), count))


def scored(rng: np.random.Generator, sets: str, kind: Kind, n: int) -> NDArray[np.float64]:
    """Draw the scores of n steps, a row each."""
    if sets == "classes":
        return rng.dirichlet(np.full(CLASSES, 0.4), n)
    width = FOLDS if sets == "folds" else 1
    scores = rng.random((n, width)) if kind == "probability" else rng.normal(0.0, 4.0, (n, width))
    return np.column_stack((scores, rng.integers(0, FOLDS, n))) if sets == "folds" else scores


def state(of: Any) -> list[NDArray[Any]]:  # noqa: ANN401 - of both kinds
    """Return parameters, exponents, and by lane what awaits a label there."""
    lanes, experts, kept = of.lane_rows, of.experts, of.kept_size
    columns: list[Any] = [np.empty(of.parameter_count), np.empty(experts + 1, np.int64)]
    columns += [*np.empty((2, lanes), np.int64), np.empty(lanes * experts), np.empty(lanes * kept)]
    of.save(*columns)
    return columns


@pytest.mark.parametrize(
    ("sets", "kind"),
    [*itertools.product(("one", "folds"), KINDS), ("classes", "probability")],
)
@pytest.mark.parametrize("window", [0, 20])
def test_a_calibrator_equals_its_oracle(window: int, sets: str, kind: Kind) -> None:
    """Answers and state are those of plain Python, to the bit, one by one and in runs."""
    rng = np.random.default_rng(window)
    n = 1_500
    u = rng.random(n)
    kinds = np.where(u < 0.5, PREDICT, np.where(u < 0.93, LEARN, EXPIRE)).astype(np.uint8)
    near = np.cumsum(kinds == PREDICT) - rng.integers(0, 40, n)
    numbers = np.where(rng.random(n) < 0.05, -1, np.where(kinds == PREDICT, np.arange(n), near))
    numbers = np.maximum(numbers, -1)
    scores = scored(rng, sets, kind, n + 1)
    labels = (rng.random(n) < 0.4).astype(np.int64)
    labels *= rng.integers(1, CLASSES if sets == "classes" else 2, n)
    weights = rng.integers(1, 3 * ONE, n)
    results = []
    for one in made(sets, kind, window):
        plain = isinstance(one, Protection)
        out = np.empty((n, 3 * CLASSES if sets == "classes" else 3))
        held = np.empty(n, np.int64)
        columns = kinds, scores[:n], labels, weights, None, numbers, out, held
        for part in (slice(0, 700), slice(700, n)):
            of: list[Any] = [column if column is None else column[part] for column in columns]
            assert one.run(*of) == len(of[0])
        row = scores[n].tolist()
        of_one = row[0] if sets == "one" and not plain else row
        single = one.predict(of_one, ONE, math.nan, n)
        assert one.learn(of_one, True, ONE, math.nan, n)  # noqa: FBT003 - a label
        one.expire(7)
        mixture = one if plain else one.mixture
        losses, shares = np.empty(mixture.experts + 1), np.empty(mixture.experts)
        mixture.losses(losses)
        mixture.weights(shares)
        counts = [mixture.taught, mixture.labels, mixture.lane_count, one.size]
        results.append([out, held, single, losses, shares, counts, *state(mixture)])
    for left, right in zip(*results, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("sets", KINDS_OF_SETS)
def test_a_saved_calibrator_goes_on_as_if_it_had_not_been(sets: str) -> None:
    """Saved and loaded at any step, a calibrator has the same bytes, answers and state."""
    rng = np.random.default_rng(5)
    one, _ = made(sets, "probability")
    other = type(one).load(one.save())
    scores = scored(rng, sets, "probability", 400)
    labels = rng.integers(0, 2, 400)
    due: dict[int, int] = {}
    for row in range(400):
        given = scores[row].tolist()
        given = given[0] if sets == "one" else given
        answers = [model.predict(given, ONE, math.nan, row) for model in (one, other)]
        assert answers[0] == answers[1]
        due[row + int(rng.integers(0, 30)) * (1 + labels[row])] = row
        if (came := due.pop(row, None)) is not None:
            its, label = scores[came].tolist(), bool(labels[came])
            for model in (one, other):
                model.learn(its[0] if sets == "one" else its, label, ONE, math.nan, came)
        if row % 40 == 7:
            saved = other.save()
            assert saved == one.save()
            other = type(one).load(saved)


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
    protection, _ = made("one", "probability")
    scores, out = np.array([[0.5]]), np.empty((1, 3))
    kinds, labels = np.array([REMOVE], np.uint8), np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="nothing is removed"):
        protection.run(kinds, scores, labels, None, None, None, out, None)


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
