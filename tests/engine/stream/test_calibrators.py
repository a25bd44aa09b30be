"""The calibrators of all keys in one native call, against the same ones key by key."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.ordered import OrderedCalibrators

from abers import ProtectedVennAbers, TimeError, WeightError
from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.monitoring.mixture_monitor import MixtureMonitor
from abers.stream import Label, Observation, Processor, Settings
from abers.stream.calibrators import (
    KeyedCalibrators,
    NativeCalibrators,
    SeparateCalibrators,
    calibrators_of,
)
from abers.stream.tasks import make_task
from abers.stream.tasks.base import CalibrationSteps

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.native

RULES: list[dict[str, Any]] = [{}, {"window": 5}, {"max_age": 40}, {"half_life": 25}]
OPTIONS: list[dict[str, Any]] = [
    {**rule, "probability": one} for rule in RULES for one in ("merged", "protected")
]
HALF = float(1 << 27)  # of the most that fades


def both(
    **options: Any,  # noqa: ANN401 - settings
) -> tuple[NativeCalibrators, SeparateCalibrators | OrderedCalibrators]:
    """Return the calibrators of a stream, and the same kind key by key."""
    settings = Settings(**options)
    native = calibrators_of(make_task(settings))
    assert isinstance(native, NativeCalibrators)
    if settings.protected:
        return native, SeparateCalibrators(make_task(settings))
    return native, OrderedCalibrators(settings)


def states(calibrators: KeyedCalibrators[Any]) -> list[bytes]:
    """Return the saved states of all keys."""
    return [bytes(one) for one in calibrators.save()]


class Life:
    """Steps of several keys, as a stream makes them: numbers ascend, and wait for labels."""

    def __init__(self, rng: np.random.Generator, scores: str) -> None:
        self._rng, self._scores = rng, scores
        self._next, self._now = 0, 0
        self._waiting: dict[int, list[tuple[int, float, int]]] = {}

    def step(self, key: int) -> tuple[int, float, int, int, int]:
        """Return kind, score, label, time and number of a step of a key."""
        waiting = self._waiting.setdefault(key, [])
        self._now += int(self._rng.integers(0, 4))
        chance = self._rng.random()
        if not waiting or chance < 0.5:
            score = float(self._rng.integers(-3, 12)) / 10.0
            score = abs(score) % 1.0 if self._scores == "probability" else score * 4.0
            waiting.append((self._next, score, self._now))
            self._next += 1
            return PREDICT, score, 0, self._now, waiting[-1][0]
        number, score, time = waiting.pop(int(self._rng.integers(len(waiting))))
        kind = EXPIRE if chance > 0.9 else LEARN
        return kind, score, int(self._rng.random() < 0.4), time, number

    def batch(self, keys: Sequence[int]) -> CalibrationSteps:
        """Return a step of each of the keys in their order."""
        kinds, scores, labels, times, numbers = np.array([self.step(key) for key in keys]).T
        return CalibrationSteps(
            kinds.astype(np.uint8),
            scores[:, np.newaxis],
            np.ascontiguousarray(labels),
            times.astype(np.int64),
            numbers.astype(np.int64),
        )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("scores", ["probability", "logit", "any"])
@given(st.integers(0, 2**32), st.lists(st.sampled_from("rrrrsax"), min_size=4, max_size=12))
def test_all_keys_in_one_call(
    options: dict[str, Any], scores: str, seed: int, turns: list[str]
) -> None:
    """Predictions, numbers of labels and states are those of each calibrator by itself."""
    rng = np.random.default_rng(seed)
    pair = both(scores=scores, **options)
    for one in pair:
        one.add(3)
    life = Life(rng, scores)
    for turn in turns:
        count = len(pair[0])
        if turn == "r":
            keys = rng.integers(0, count, int(rng.integers(0, 40)))
            if len(keys):
                check_run(pair, keys, life.batch(keys.tolist()))
        elif turn == "s":
            check_step(pair, int(rng.integers(count)), life)
        elif turn == "a":
            key = int(rng.integers(count))
            for one in pair:
                one.add(1)
                one.reset(key)
        else:
            kept = rng.permutation(count)[: max(1, count - 1)].tolist()
            for one in pair:
                one.keep(kept)
        if isinstance(pair[1], SeparateCalibrators):
            assert states(pair[0]) == states(pair[1])
        restored, _ = both(scores=scores, **options)
        restored.load(states(pair[0]))
        assert states(restored) == states(pair[0])
        pair = restored, pair[1]


def check_run(pair: Sequence[Any], keys: np.ndarray[Any, Any], steps: CalibrationSteps) -> None:
    """Run steps on both, and compare what they say."""
    native, plain = (one.run(keys, steps) for one in pair)
    predicts = steps.kinds == PREDICT
    np.testing.assert_array_equal(native.rows[predicts], plain.rows[predicts])
    np.testing.assert_array_equal(native.n_labels, plain.n_labels)


def check_step(pair: Sequence[Any], key: int, life: Life) -> None:
    """Run one step on both, and compare what they say."""
    kind, score, label, time, number = life.step(key)
    native, plain = (one.step(key, kind, [score], label, time, number) for one in pair)
    if kind == PREDICT:
        assert ([*native[0]], native[1]) == ([*plain[0]], plain[1])
    assert [one.size(key) for one in pair] == [pair[0].size(key)] * 2


def test_a_step_that_is_too_heavy() -> None:
    """Its key is as before the batch, earlier keys have run, and later ones have not."""
    options: dict[str, Any] = {"scores": "probability", "half_life": 10**9}
    pair = both(**options)
    heavy = []
    for at in range(3):
        one = ProtectedVennAbers(half_life=10**9)
        for weight in (HALF, HALF - 2.0) if at == 1 else (1.0,):
            one.learn_one(0.5, 1, weight=weight, time=0.0)
        heavy.append(one.to_bytes())
    keys, none = np.array([0, 1, 2, 1, 0, 1, 2]), np.full(7, -1)
    steps = CalibrationSteps(
        np.full(7, LEARN, np.uint8), np.full((7, 1), 0.3), np.ones(7), np.zeros(7, np.int64), none
    )
    for calibrators in pair:
        assert not isinstance(calibrators, OrderedCalibrators)
        calibrators.load(heavy)
        before = states(calibrators)
        with pytest.raises(WeightError, match=r"^row 2: the total weight would pass 268435456;"):
            calibrators.run(keys, steps)
        assert [calibrators.size(key) for key in range(3)] == [3, 2, 1]
        assert states(calibrators)[1:] == before[1:]
        for _ in range(2):
            calibrators.step(1, LEARN, [0.3], 1.0, 0, None)
        with pytest.raises(WeightError, match=r"^the total weight would pass"):
            calibrators.step(1, LEARN, [0.3], 1.0, 0, None)


def test_labels_over_their_rates_that_are_too_heavy() -> None:
    """A batch of labels with weights over their rate that pass the limit changes nothing."""
    native, _ = both(probability="merged", label_rates=(1e-6, 1.0))
    native.add(1)
    before = states(native)
    count = 2**33 // 10**6 + 1  # each label of class 0 weighs a million
    columns = np.full(count, LEARN, np.uint8), np.zeros((count, 1)), np.zeros(count)
    keys, times = np.zeros(count, np.int64), np.arange(count)
    with pytest.raises(WeightError, match=f"row {count - 1}: the total weight .* forget earlier;"):
        native.run(keys, CalibrationSteps(*columns, times, times))
    assert states(native) == before


def test_times_that_no_half_life_resolves() -> None:
    """A time too many half-lives from zero is refused before anything runs."""
    native, _ = both(half_life=1, probability="merged")
    native.add(1)
    before = states(native)
    late = np.array([1, (1 << 51)])
    steps = CalibrationSteps(np.full(2, LEARN, np.uint8), np.zeros((2, 1)), np.zeros(2), late)
    with pytest.raises(TimeError, match="half-lives"):
        native.run(np.zeros(2, np.int64), steps)
    with pytest.raises(TimeError, match="half-lives"):
        native.step(0, LEARN, [0.0], 0.0, 1 << 51, None)
    assert states(native) == before


@pytest.mark.parametrize("probability", ["merged", "protected"])
@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ({"window": 3}, "another window"),
        ({"half_life": 3}, "another half_life"),
        ({"max_age": 3}, "another max_age"),
        ({"calibrator": "beta", "probability": None}, "kind or format"),
    ],
)
def test_states_of_other_calibrators_are_refused(
    probability: str, rule: dict[str, Any], wrong: str
) -> None:
    """A state of other options, or of another kind, is refused with all others of the call."""
    native, _ = both(scores="probability", probability=probability)
    options = {"scores": "probability", "probability": probability} | rule
    other = calibrators_of(make_task(Settings(**options)))
    for one in (native, other):
        one.add(1)
    saved = [*states(native), *states(other)]
    with pytest.raises(ValueError, match=f"calibrator 1: {wrong}"):
        native.load(saved)
    assert len(native) == 1


@pytest.mark.parametrize(
    ("options", "wrong"),
    [({"scores": "any"}, "other scores"), ({"raw_weight": 0.5}, "another raw_weight")],
)
def test_protected_states_of_other_options_are_refused(options: dict[str, Any], wrong: str) -> None:
    """The kind of scores and the first weight are those of the settings."""
    native, _ = both(scores="probability", probability="protected")
    with pytest.raises(ValueError, match=f"calibrator 0: {wrong}"):
        native.load([ProtectedVennAbers(**options).to_bytes()])


@pytest.mark.parametrize("probability", ["merged", "protected"])
def test_every_damaged_bit_of_a_state_is_refused(probability: str) -> None:
    """A state with any one bit flipped is none."""
    native, _ = both(scores="probability", probability=probability)
    native.add(1)
    for number in range(3):
        native.step(0, PREDICT, [0.3], 0.0, 0, number)
        native.step(0, LEARN, [0.3], number % 2, 0, number)
    (blob,) = states(native)
    for bit in range(0, len(blob) * 8, 5):
        damaged = bytearray(blob)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="calibrator 0: "):
            native.load([bytes(damaged)])
    native.load([blob])
    assert states(native) == [blob] * 2


def test_a_monitor_reads_the_mixture_of_its_key() -> None:
    """Weights and losses of a key are those of a calibrator that took the same steps."""
    processor = Processor(Settings(scores="probability"))
    alone = {name: ProtectedVennAbers() for name in "ab"}
    rng = np.random.default_rng(1)
    for number in range(60):
        name, score, label = "ab"[number % 2], float(rng.random()), int(rng.random() < 0.3)
        id_, at = f"{number}", 10 * number
        processor.process_many([Observation(id_, at, name, score), Label(id_, at + 1, name, label)])
        alone[name].predict_one(score, number=number // 2)
        alone[name].learn_one(score, label, number=number // 2)
    for (model, _), monitor in zip(processor.keys, processor.monitors, strict=True):
        (watching,) = (one for one in monitor.others if isinstance(one, MixtureMonitor))
        (mixture,) = watching.mixtures
        weights, losses = mixture.expert_table().T.tolist()
        one = alone[model]
        assert dict(zip(mixture.experts, weights, strict=False)) == one.expert_weights()
        assert losses == [*one.expert_losses().values()]
        assert (mixture.lanes, mixture.price) == (alone[model].lanes, alone[model].price)


def test_states_of_every_length() -> None:
    """The checksum of the core is that of Python for every length of a state, block by block."""
    native, plain = both(scores="probability")
    blobs = []
    for count in range(90):
        one = ProtectedVennAbers()
        one.learn_many(np.arange(count) / 100.0, np.arange(count) % 2)
        blobs.append(one.to_bytes())
    for calibrators in (native, plain):
        assert not isinstance(calibrators, OrderedCalibrators)
        calibrators.load(blobs)
        assert states(calibrators) == blobs


def test_mixtures_are_read_while_all_run() -> None:
    """Weights that another thread reads are those between two calls, and add up to one."""
    native, _ = both(scores="probability", probability="protected")
    native.add(2)
    mixtures = [native.mixture(key) for key in range(2)]
    life, done = Life(np.random.default_rng(0), "probability"), threading.Event()
    keys = np.tile([0, 1], 200)
    batches = [life.batch(keys.tolist()) for _ in range(20)]

    def work() -> None:
        for batch in batches:
            native.run(keys, batch)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        for mixture in mixtures:
            assert mixture is not None
            assert mixture.expert_table()[:-1, 0].sum() == pytest.approx(1.0)
    thread.join()
