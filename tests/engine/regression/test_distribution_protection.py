"""The pool of distributions in the core: its oracle, its weights, its bound, no leak, its state."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from tests.engine.cases import SEEDS
from tests.oracles import distribution_protection as oracle

from abers.backends import core
from abers.regression import ProtectedIVAPR

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers._core import DistributionProtection
    from abers.arrays import Floats
    from abers.regression import PredictiveDistribution

    Options: TypeAlias = tuple[float, float, int, bool, float, int]

SUPPORT, WIDTH = (0.0, 10.0), 10.0

pytestmark = pytest.mark.native


def answer(one: DistributionProtection, score: Floats, number: int) -> list[tuple[float, float]]:
    """Predict; return the steps of the pool."""
    points, cdf = np.empty((2, 9 * one.members))
    steps = one.predict(score, number, points, cdf)
    return [*zip(points[:steps].tolist(), cdf[:steps].tolist(), strict=True)]


def totals(one: DistributionProtection) -> tuple[list[float], list[float]]:
    """Return the total scores of methods and pool, and the mean weights."""
    losses, weights = np.empty(one.experts + 1), np.empty(one.experts)
    one.losses(losses)
    one.weights(weights)
    return losses.tolist(), weights.tolist()


@pytest.mark.parametrize("seed", range(24))
def test_native_equals_its_oracle(seed: int) -> None:
    """Answers, scores and weights are equal to the bit, and after a restart too."""
    rng = np.random.default_rng(seed)
    pointwise, members = seed % 2 == 0, 2 + seed % 5
    low = float(rng.choice([0.0, -3.7, 1e6]))
    width = float(rng.choice([10.0, 0.3, 1e7]))
    options = (low, low + width, members, pointwise, 0.3, 5 + 40 * (seed % 3))
    native, python = core.DistributionProtection(*options), oracle.DistributionProtection(*options)
    level = 0.5
    for step in range(500):
        number, kind = int(rng.integers(-1, 12)), rng.integers(0, 6)
        level = min(max(level + 0.1 * rng.normal(), 0.0), 1.0)
        spread = 0.1 * rng.normal(size=1 if pointwise else members)
        score = low + width * np.round(np.sort(level + spread), 2)
        label = low + width * float(np.clip(np.round(level + 0.05 * rng.normal(), 2), 0.0, 1.0))
        if kind <= 2:
            assert answer(native, score, number) == python.predict(score, number)
        elif kind <= 4:
            native.learn(score, label, number)
            python.learn(score, label, number)
        elif number >= 0:
            native.expire(number)
            python.expire(number)
        if step % 100 == 0:
            assert totals(native) == (python.sums, python.weights().tolist())
            native = core.DistributionProtection.load(native.save())
    assert python.methods.line.labels > 40
    assert totals(native) == (python.sums, python.weights().tolist())


# Weights and scores


def crps(steps: list[tuple[float, float]], label: float) -> Fraction:
    """Return E|X - y| - E|X - X'| / 2 of a step CDF, which is the score, in fractions."""
    at, y = [Fraction(point) for point, _ in steps], Fraction(label)
    exact = [Fraction(0), *(Fraction(value) for _, value in steps)]
    masses = [high - low for low, high in pairwise(exact)]
    far = sum(w * abs(x - y) for x, w in zip(at, masses, strict=True))
    apart = sum(
        v * w * abs(x - z)
        for x, v in zip(at, masses, strict=True)
        for z, w in zip(at, masses, strict=True)
    )
    return Fraction(far - Fraction(apart) / 2)


def test_a_lane_has_exponential_weights_and_exact_scores() -> None:
    """Labels at once: weights are exp(-score / 2R), and the score of the pool is exact."""
    rng = np.random.default_rng(1)
    one = core.DistributionProtection(*SUPPORT, 3, True, 0.5, 50)  # noqa: FBT003
    first, total = np.array(totals(one)[1]), Fraction(0)
    assert first == pytest.approx([0.5, *[0.15 / 8] * 8, 0.175, 0.175])
    for number in range(60):
        score, label = rng.random(1) * WIDTH, float(rng.integers(0, 21) / 2)
        total += crps(answer(one, score, number), label)
        one.learn(score, label, number)
    losses, weights = totals(one)
    expected = first * np.exp(-np.array(losses[:-1]) / (2.0 * WIDTH))
    assert weights == pytest.approx(expected / expected.sum(), rel=1e-12)
    assert losses[-1] == pytest.approx(float(total), rel=1e-12)
    assert len({round(loss, 6) for loss in losses}) > 6


# The bound


def against(served: PredictiveDistribution, order: random.Random) -> float:
    """Return a label that contradicts a distribution, most often."""
    middle = served.quantile(0.5)
    far = SUPPORT[0] if middle > WIDTH / 2 else SUPPORT[1]
    return far if order.random() < 0.8 else order.random() * WIDTH


def played(seed: int) -> tuple[ProtectedIVAPR, float]:
    """Play a stream of labels against the pool; return it, and the total score of its answers."""
    order = random.Random(seed)  # noqa: S311 - no secret
    kind: Any = ("number", "quantiles")[seed % 2]
    calibrator = ProtectedIVAPR(
        SUPPORT, window=30, scores=kind, members=3, base_weight=0.2 + 0.2 * (seed % 4)
    )
    waiting: dict[int, tuple[Any, PredictiveDistribution]] = {}
    total, stays, most = 0.0, 0.5 + 0.5 * order.random() * (seed % 3), 1 + 20 * (seed % 5)
    for number in range(60):
        each = sorted(order.random() * WIDTH for _ in range(3))
        score = each[1] if kind == "number" else each
        waiting[number] = score, calibrator.predict_one(score, number=number)
        while waiting and (len(waiting) > most or order.random() > stays):
            of = order.choice([*waiting]) if seed % 7 else max(waiting)
            its, served = waiting.pop(of)
            if order.random() < 0.2:
                calibrator.expire_one(of)
                continue
            label = against(served, order)
            total += served.crps(label)
            calibrator.learn_one(its, label, number=of)
    return calibrator, total


@pytest.mark.parametrize("block", range(20))
def test_no_adversary_passes_the_bound(block: int) -> None:
    """Labels against the pool, any delays and orders, some lost: 300 runs within every bound."""
    for seed in range(15 * block, 15 * (block + 1)):
        calibrator, total = played(seed)
        found = calibrator.expert_losses()
        assert found.pop("protected") == pytest.approx(total)
        rest = 1.0 - calibrator.base_weight
        first = dict.fromkeys(calibrator.experts, rest * 0.3 / 8)
        first |= {"base": calibrator.base_weight, "share": rest * 0.35, "share_4": rest * 0.35}
        assert sum(first.values()) == pytest.approx(1.0)
        for name, loss in found.items():
            bound = calibrator.lanes * 2.0 * WIDTH * -math.log(first[name])
            assert total - loss <= bound + 1e-9, (seed, name)


@pytest.mark.parametrize("delay", [10, 100])
def test_one_weight_vector_has_no_bound(delay: int) -> None:
    """The adversary is one: weights that all labels share lose ever more by it."""
    rounds, losses, total = 600, [0.0, 0.0], 0.0
    for _ in range(rounds):
        odds = math.exp((losses[0] - losses[1]) / 2.0)
        low = 1.0 / (1.0 + odds)
        label = int(low >= 0.5)
        total += delay * (low if label else 1.0 - low) ** 2
        losses[1 - label] += delay
    assert total - min(losses) > 10 * 2.0 * delay * math.log(2.0)


# No leak


@pytest.mark.parametrize("delay", [0, 7, 60])
def test_labels_that_have_not_come_change_nothing(delay: int) -> None:
    """Answers are the same to the bit whatever labels and scores come after them."""
    rng = np.random.default_rng(delay)
    n, turn = 150, 90
    scores, labels = rng.random((n, 1)) * WIDTH, rng.random(n) * WIDTH
    others, flipped = scores.copy(), labels.copy()
    others[turn:], flipped[turn - delay :] = 0.0, WIDTH - flipped[turn - delay :]
    found = []
    for s, y in ((scores, labels), (others, flipped)):
        one = core.DistributionProtection(*SUPPORT, 4, True, 0.5, 50)  # noqa: FBT003
        answers = []
        for i in range(n):
            answers.append(answer(one, s[i], i))
            if i >= delay:
                one.learn(s[i - delay], float(y[i - delay]), i - delay)
        found.append(answers)
    assert found[0][:turn] == found[1][:turn]
    assert found[0][turn + 1 :] != found[1][turn + 1 :]


# Degenerate streams

STREAMS: dict[str, Callable[[int], tuple[float, float]]] = {
    "constant": lambda _: (4.0, 4.0),
    "a constant error": lambda _: (4.0, 5.0),
    "alternating ends": lambda i: (10.0 * (i % 2), 10.0 * ((i + 1) % 2)),
    "scores far outside": lambda i: ((-1) ** i * 1e300, 5.0 + 5.0 * (i % 3 == 0)),
    "a rare jump": lambda i: (5.0, 10.0 * (i % 1000 == 999)),
    "tiny errors": lambda i: (5.0, 5.0 + 1e-13 * (i % 3)),
    "the smallest error, once": lambda i: (0.0, 5e-324 * (i == 0)),  # its mean rounds to 0
}


def check_degenerate(name: str, n: int) -> None:
    """Check that a stream of one kind leaves a state of numbers."""
    one = core.DistributionProtection(*SUPPORT, 3, True, 0.5, 20)  # noqa: FBT003
    for i in range(n):
        score, label = STREAMS[name](i)
        given = np.array([score])
        if i % 1000 == 0:
            values = [x for step in answer(one, given, i) for x in step]
            assert np.isfinite(values).all()
            assert all(SUPPORT[0] <= at <= SUPPORT[1] for at in values[::2])
            assert values[-1] == pytest.approx(1.0)
        one.learn(given, label, i if i % 1000 == 0 else -1)
    losses, weights = totals(one)
    assert np.isfinite(losses).all()
    assert sum(weights) == pytest.approx(1.0)
    assert losses[-1] - losses[0] <= 2.0 * WIDTH * math.log(2.0)
    saved = one.save()
    assert core.DistributionProtection.load(saved).save() == saved


@pytest.mark.parametrize("name", STREAMS)
def test_degenerate_streams(name: str) -> None:
    """Constant, alternating, far, rare and tiny: all numbers stay finite, within the bound."""
    check_degenerate(name, 5_000)


@pytest.mark.long
@pytest.mark.parametrize("name", STREAMS)
def test_degenerate_streams_of_a_million_events(name: str) -> None:
    """The same after 1,000,000 events."""
    check_degenerate(name, 1_000_000)


# Memory


@pytest.mark.parametrize("pointwise", [True, False])
def test_the_state_is_bounded(pointwise: bool) -> None:  # noqa: FBT001
    """Behind the window more labels take no more bytes."""
    rng = np.random.default_rng(3)
    one = core.DistributionProtection(*SUPPORT, 2, pointwise, 0.5, 200)
    sizes: list[int] = []
    for count in (1_500, 1_000, 1_000):
        for _ in range(count):
            score = np.sort(rng.random(1 if pointwise else 2)) * WIDTH
            one.learn(score, float(rng.random() * WIDTH), -1)
        sizes.append(len(one.save()))
    assert len({*sizes}) == 1
    assert one.size == 200


@pytest.mark.parametrize("seed", SEEDS)
def test_a_number_that_is_predicted_again_gets_its_first_answer(seed: int) -> None:
    """Repeated numbers are answered as before, and labels of unknown ones give no score."""
    rng = np.random.default_rng(seed)
    one = core.DistributionProtection(*SUPPORT, 4, True, 0.5, 50)  # noqa: FBT003
    first = answer(one, np.array([3.0]), 7)
    one.learn(np.array([1.0]), float(rng.random()), 8)
    one.expire(9)
    assert answer(one, np.array([6.0]), 7) == first
    assert (one.labels, one.lane_count, one.awaiting_count) == (0, 1, 1)
    one.expire(7)
    one.learn(np.array([1.0]), 2.0, -1)  # predicted and learned
    assert (one.labels, one.lane_count, one.awaiting_count) == (1, 1, 0)
