"""The pool of distributions: its weights, its bound against any adversary, its state."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from tests.engine.cases import SEEDS
from tests.oracles import distribution_pool as oracle

from abers.backends import core

if TYPE_CHECKING:
    from abers._core import DistributionPool
    from abers.arrays import Floats

    Pool: TypeAlias = DistributionPool | oracle.DistributionPool

WIDTH = 10.0

pytestmark = pytest.mark.native


def crps(points: list[float], masses: list[Fraction], label: float) -> Fraction:
    """Return E|X - y| - E|X - X'| / 2 of masses at points, which is the score, in fractions."""
    at, y = [Fraction(one) for one in points], Fraction(label)
    far = sum(w * abs(x - y) for x, w in zip(at, masses, strict=True))
    apart = sum(
        v * w * abs(x - z)
        for x, v in zip(at, masses, strict=True)
        for z, w in zip(at, masses, strict=True)
    )
    return Fraction(far - Fraction(apart) / 2)


def answer(pool: Pool, forecasts: Floats, number: int) -> tuple[list[float], list[float]]:
    """Predict; return the points of the pool, and its CDF there."""
    points, cdf = np.empty((2, forecasts.size))
    steps = pool.predict(forecasts, number, points, cdf)
    return points[:steps].tolist(), cdf[:steps].tolist()


def masses(cdf: list[float]) -> list[Fraction]:
    """Return the masses of the steps of a CDF."""
    exact = [Fraction(0), *map(Fraction, cdf)]
    return [high - low for low, high in pairwise(exact)]


def random_forecasts(rng: np.random.Generator, experts: int = 3, members: int = 4) -> Floats:
    """Return forecasts of numbers of which several are equal."""
    return np.sort(rng.integers(0, 21, (experts, members)) / 2.0, axis=1)


def totals(pool: Pool) -> Floats:
    """Return the total scores of experts and pool."""
    found = np.empty(pool.experts + 1)
    pool.losses(found)
    return found


def test_a_lane_is_the_exponentially_weighted_mean() -> None:
    """Labels at once: the CDF is the mean by weights exp(-score / 2R), scored exactly."""
    rng = np.random.default_rng(1)
    pool = core.DistributionPool(3, 4, 0.5, WIDTH)
    weights, sums = [0.5, 0.25, 0.25], [Fraction(0)] * 4
    for number in range(40):
        forecasts, label = random_forecasts(rng), float(rng.integers(0, 21) / 2)
        points, cdf = answer(pool, forecasts, number)
        assert points == sorted({*forecasts.ravel().tolist()})
        for at, value in zip(points, cdf, strict=True):
            shares = (forecasts <= at).mean(axis=1)
            assert value == pytest.approx(np.average(shares, weights=weights), rel=1e-12)
        scores = [crps(row.tolist(), [Fraction(1, 4)] * 4, label) for row in forecasts]
        scores.append(crps(points, masses(cdf), label))
        pool.learn(forecasts, label, number)
        sums = [total + one for total, one in zip(sums, scores, strict=True)]
        weights = [
            w * math.exp(-float(s) / (2.0 * WIDTH))
            for w, s in zip(weights, scores[:3], strict=True)
        ]
    assert totals(pool).tolist() == pytest.approx([float(one) for one in sums], rel=1e-12)
    found = np.empty(3)
    pool.weights(found)
    assert found.tolist() == pytest.approx([w / sum(weights) for w in weights], rel=1e-12)


def adversary(pool: DistributionPool, delay: int, rounds: int) -> Floats:
    """Contradict the pool of two point forecasts, at 0 and at 1, for a delay at a time."""
    forecasts = np.array([[0.0, 0.0], [1.0, 1.0]])
    for start in range(0, rounds * delay, delay):
        numbers = range(start, start + delay)
        low = np.mean([answer(pool, forecasts, one)[1][0] for one in numbers])
        for one in numbers:
            pool.learn(forecasts, float(low >= 0.5), one)
    return totals(pool)


@pytest.mark.parametrize("delay", [1, 10, 100])
def test_an_adversary_gains_no_more_than_the_price(delay: int) -> None:
    """Where one weight vector loses without bound, lanes lose at most 2 R C ln(1 / weight)."""
    pool = core.DistributionPool(2, 2, 0.5, 1.0)
    zero, one, of_pool = adversary(pool, delay, 60)
    assert pool.lane_count == delay
    assert of_pool - min(zero, one) <= 2.0 * delay * math.log(2.0) + 1e-9


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


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bound_holds_for_any_order(seed: int) -> None:
    """Random delays, orders and lost labels: at most 2 R C ln(1 / weight) over each expert."""
    rng, order = np.random.default_rng(seed), random.Random(seed)  # noqa: S311 - no secret
    experts, weight = 2 + seed % 3, 0.2 + 0.2 * (seed % 4)
    pool = core.DistributionPool(experts, 3, weight, WIDTH)
    waiting: dict[int, tuple[Floats, tuple[list[float], list[float]]]] = {}
    most, excess = 0, np.zeros(experts)
    stays = order.random()
    for number in range(60):
        forecasts = random_forecasts(rng, experts, 3)
        waiting[number] = forecasts, answer(pool, forecasts, number)
        most = max(most, len(waiting))
        while waiting and order.random() > stays / 2.0:
            of = order.choice([*waiting])
            its, (points, cdf) = waiting.pop(of)
            if order.random() < 0.1:
                pool.expire(of)
                continue
            middle = points[int(np.searchsorted(cdf, 0.5))]
            label = (0.0 if middle > WIDTH / 2 else WIDTH) if seed % 2 else order.random() * WIDTH
            served = step_score(points, cdf, label)
            each = [step_score(row.tolist(), [1 / 3, 2 / 3, 1.0], label) for row in its]
            excess += served - np.array(each)
            pool.learn(its, label, of)
    assert pool.lane_count == most
    weights = np.array([weight, *[(1.0 - weight) / (experts - 1)] * (experts - 1)])
    assert (excess <= 2.0 * WIDTH * most * np.log(1.0 / weights) + 1e-9).all()


def step_score(points: list[float], cdf: list[float], label: float) -> float:
    """Return the score of a step CDF, by the energy form in doubles."""
    at, mass = np.array(points), np.diff(cdf, prepend=0.0)
    apart = np.abs(at[:, np.newaxis] - at)
    return float(mass @ np.abs(at - label) - mass @ apart @ mass / 2.0)


def test_identical_experts_give_their_forecast() -> None:
    """Experts that agree are served as they are, whatever their weights."""
    rng = np.random.default_rng(3)
    pool = core.DistributionPool(3, 4, 0.5, WIDTH)
    for number in range(30):
        forecasts = np.repeat(random_forecasts(rng, 1), 3, axis=0)
        points, cdf = answer(pool, forecasts, number)
        assert points == sorted({*forecasts[0].tolist()})
        assert cdf == pytest.approx([np.mean(forecasts[0] <= at) for at in points], rel=1e-12)
        pool.learn(forecasts, float(rng.random() * WIDTH), number)
    assert np.ptp(totals(pool)) < 1e-9


def test_first_answers_stay_and_unknown_labels_are_ignored() -> None:
    """A number that is predicted again gets its answer; labels of unknown numbers do nothing."""
    rng = np.random.default_rng(4)
    pool = core.DistributionPool(3, 4, 0.5, WIDTH)
    first, other = random_forecasts(rng), random_forecasts(rng)
    found, kept = answer(pool, first, 7), np.empty((3, 4))
    assert answer(pool, other, 7) == found
    assert pool.kept(7, kept)
    assert kept.tolist() == first.tolist()
    pool.learn(other, 1.0, 8)
    pool.expire(9)
    assert (pool.labels, pool.lane_count, pool.awaiting_count) == (0, 1, 1)
    pool.expire(7)
    assert not pool.kept(7, kept)
    pool.learn(other, 1.0, -1)  # predicted and learned
    assert (pool.labels, pool.lane_count, pool.awaiting_count) == (1, 1, 0)


def saved(pool: Pool) -> list[list[Any]]:
    """Return the state of a pool."""
    lanes, wide = pool.lane_rows, pool.lane_rows * pool.experts
    columns = [
        *np.empty((2, lanes), np.int64),
        np.empty(wide),
        np.empty(wide * pool.members),
        np.empty(pool.experts + 1),
    ]
    pool.save(*columns)
    return [one.tolist() for one in columns]


def copied(pool: Pool) -> Pool:
    """Return a pool that has loaded the state of another."""
    other = type(pool)(pool.experts, pool.members, 0.5, WIDTH)
    columns: list[Any] = [np.array(one) for one in saved(pool)]
    columns[:2] = [one.astype(np.int64) for one in columns[:2]]
    other.load(pool.moment, pool.labels, pool.lane_count, *columns)
    return other


@pytest.mark.parametrize("seed", range(20))
def test_native_equals_its_oracle(seed: int) -> None:
    """Answers, scores and state are equal to the bit, and after a restart too."""
    rng = np.random.default_rng(seed)
    experts, members = 2 + seed % 4, 2 + seed % 5
    options = (experts, members, 0.5, WIDTH)
    pair: list[Pool] = [core.DistributionPool(*options), oracle.DistributionPool(*options)]
    for step in range(200):
        number = int(rng.integers(-1, 20))
        forecasts = np.sort(rng.random((experts, members)) * WIDTH, axis=1)
        kind, label = rng.integers(0, 5), float(rng.random() * WIDTH)
        if kind <= 1:
            assert answer(pair[0], forecasts, number) == answer(pair[1], forecasts, number)
        for one in pair:
            if kind in {2, 3}:
                one.learn(forecasts, label, number)
            elif kind == 4 and number >= 0:
                one.expire(number)
        assert saved(pair[0]) == saved(pair[1])
        if step % 50 == 0:
            pair = [copied(one) for one in pair]
    assert totals(pair[0])[0] > 0.0
