"""Lanes: which one an observation holds, what they weigh, and which are dropped."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.oracles.experts import mixed
from tests.oracles.lanes import Lanes

from abers.arrays import EXPIRE, LEARN, PREDICT, REMOVE
from abers.backends import core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers._core import Aggregation

pytestmark = pytest.mark.native

PRIOR = (0.25, 0.125, 0.125, 0.125, 0.375)  # of a mixture with one shrunk probability


def run(
    mixture: Aggregation,
    kind: int,
    numbers: Sequence[int],
    label: int = 0,
    given: tuple[float, ...] = (0.9, 0.1),
) -> NDArray[np.float64]:
    """Run steps of one kind; return the probabilities."""
    n = len(numbers)
    p, labels = np.full(n, np.nan), np.full(n, label, np.uint8)
    columns = np.array(numbers, np.int64), labels, np.tile(given, (n, 1))
    mixture.run(np.full(n, kind, np.uint8), *columns, p)
    return p


def saved(mixture: Aggregation) -> dict[str, NDArray[Any]]:
    """Return what a mixture writes of its lanes."""
    rows, experts = mixture.lane_rows, mixture.experts
    columns: dict[str, Any] = {
        "own": np.empty(mixture.parameter_count),
        "exponents": np.empty(experts + 1, np.int64),
        "numbers": np.empty(rows, np.int64),
        "moments": np.empty(rows, np.int64),
        "weights": np.empty(rows * experts),
        "forecasts": np.empty(rows * experts),
    }
    mixture.save(*columns.values())
    for name in ("weights", "forecasts"):
        columns[name] = columns[name].reshape(rows, experts)
    return columns


def test_an_observation_takes_the_smallest_idle_lane() -> None:
    """Idle lanes are used again, the smallest first, before there is a new one."""
    mixture = core.Aggregation(1)
    run(mixture, PREDICT, [10, 11, 12, 13])
    run(mixture, LEARN, [12, 10])
    run(mixture, PREDICT, [14])
    assert saved(mixture)["numbers"].tolist() == [14, 11, -1, 13]
    run(mixture, PREDICT, [15, 16])
    assert saved(mixture)["numbers"].tolist() == [14, 11, 15, 13, 16]
    assert saved(mixture)["moments"].tolist() == [4, 1, 5, 3, 6]


def test_lanes_without_a_label_are_dropped() -> None:
    """A burst whose labels never come leaves no lanes, but the number of lanes that there were."""
    mixture = core.Aggregation(1)
    run(mixture, PREDICT, range(1_000))
    run(mixture, LEARN, [3])
    run(mixture, EXPIRE, range(1_000))
    assert (mixture.lane_rows, mixture.lane_count, mixture.awaiting_count) == (4, 1_000, 0)
    weights = np.empty(5)
    mixture.weights(weights)
    learned = saved(mixture)["weights"][3]
    expected = (999 * np.array(PRIOR) + learned / learned.sum()) / 1_000
    np.testing.assert_allclose(weights, expected, rtol=1e-12)
    run(mixture, PREDICT, range(2_000, 2_010))
    assert saved(mixture)["numbers"].tolist() == [*range(2_000, 2_010)]
    assert saved(mixture)["weights"][5:].tolist() == [[*PRIOR]] * 5


def test_dropped_lanes_give_back_their_memory() -> None:
    """After a burst whose labels never come, a mixture is as small as before, within a page."""
    mixture = core.Aggregation(1)
    before = mixture.__sizeof__()
    run(mixture, PREDICT, range(100_000))
    full = mixture.__sizeof__()
    assert full - before <= 100_000 * 340
    run(mixture, EXPIRE, range(100_000))
    assert mixture.__sizeof__() - before <= 32_768


def test_lanes_stay_within_the_formula() -> None:
    """Pending observations and lanes take no more memory than docs/deploy.md says."""
    for n in (10_000, 70_000, 150_000):
        mixture = core.Aggregation(3)
        run(mixture, PREDICT, range(n), given=(0.9,) * 4)
        assert mixture.__sizeof__() <= n * 340
        run(mixture, LEARN, range(n), given=(0.9,) * 4)
        assert mixture.__sizeof__() <= n * 130


@pytest.mark.parametrize("seed", range(4))
def test_lanes_are_those_of_a_plain_list(seed: int) -> None:
    """After any steps the lanes and their weights are those of a list that never drops one."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    mixture = core.Aggregation(1)
    lanes: list[int | None] = []
    held: list[int] = []
    labelled: set[int] = set()
    for number in range(400):
        run(mixture, PREDICT, [number])
        lane = lanes.index(None) if None in lanes else len(lanes)
        lanes[lane : lane + 1] = [number]
        held.append(number)
        while held and rng.random() < 0.5 + 0.02 * (number % 60 > 30):
            of = held.pop(rng.randrange(len(held)))
            lane = lanes.index(of)
            lanes[lane] = None
            kind = LEARN if rng.random() < 0.2 else EXPIRE
            run(mixture, kind, [of], label=1)
            labelled |= {lane} if kind == LEARN else set()
        columns = saved(mixture)
        rows = mixture.lane_rows
        assert [None if one < 0 else one for one in columns["numbers"].tolist()] == lanes[:rows]
        assert lanes[rows:] == [None] * (len(lanes) - rows)
        assert all(lane < rows for lane in labelled)
        assert mixture.lane_count == len(lanes)
    fresh = [lane for lane in range(mixture.lane_rows) if lane not in labelled]
    assert saved(mixture)["weights"][fresh].tolist() == [[*PRIOR]] * len(fresh)


def test_identical_experts_give_their_forecast() -> None:
    """Where all experts say the same, labels change neither the forecast nor whom it trusts."""
    lanes, rng = Lanes(PRIOR, len(PRIOR)), random.Random(1)  # noqa: S311 - no secret
    for number in range(300):
        p = rng.uniform(1e-6, 1.0 - 1e-6)
        forecasts = [p] * len(PRIOR)
        found = lanes.occupy(number, forecasts)
        assert mixed(lanes.weights(found.lane), forecasts) == p
        lanes.multiply(found.lane, [p if rng.random() < p else 1.0 - p] * len(PRIOR))
        lanes.release(number)
    (weights,) = lanes.table
    assert np.array(weights) / sum(weights) == pytest.approx(PRIOR)


def test_weights_are_the_exact_products() -> None:
    """The weights of a lane are the prior times all likelihoods, in fractions."""
    lanes, rng = Lanes([0.5, 0.5], 2), random.Random(2)  # noqa: S311 - no secret
    exact = [Fraction(1, 2)] * 2
    for number in range(50):
        likelihoods = [rng.randrange(1, 64) / 64 for _ in range(2)]
        lane = lanes.occupy(number, likelihoods).lane
        lanes.multiply(lane, likelihoods)
        lanes.release(number)
        exact = [w * Fraction(one) for w, one in zip(exact, likelihoods, strict=True)]
    first, second = lanes.table[0]
    assert first / second == pytest.approx(float(exact[0] / exact[1]), rel=1e-12)


def test_a_mixture_removes_nothing() -> None:
    """A step that removes is refused, and an observation goes on waiting."""
    mixture = core.Aggregation(1)
    run(mixture, PREDICT, [1])
    with pytest.raises(ValueError, match="nothing is removed"):
        run(mixture, REMOVE, [1])
    assert mixture.awaiting_count == 1


def loss(p: float, label: int) -> float:
    """Return the log loss of a forecast."""
    return -math.log(p if label else 1.0 - p)


@pytest.mark.parametrize("first", range(0, 300, 25))
def test_the_bound_holds_for_losses_counted_outside(first: int) -> None:
    """Random delays, orders and lost labels: within C ln(1/weight) of every expert.

    The losses are those of the probabilities that were returned and of the forecasts that were
    kept with them, summed here.
    """
    for seed in range(first, first + 25):
        rng = random.Random(seed)  # noqa: S311 - no secret
        mixture = core.Aggregation(1)
        waiting: dict[int, tuple[float, list[float], float]] = {}
        total, most, pace = np.zeros(6), 0, rng.uniform(0.4, 0.6)
        for number in range(150):
            given = (rng.random(), rng.random())
            (p,) = run(mixture, PREDICT, [number], given=given)
            columns = saved(mixture)
            (lane,) = np.flatnonzero(columns["numbers"] == number)
            waiting[number] = p, columns["forecasts"][lane].tolist(), sum(given) / 2.0
            most = max(most, len(waiting))
            while waiting and rng.random() < pace:
                of = rng.choice([*waiting])
                p, forecasts, middle = waiting.pop(of)
                if rng.random() < 0.15:
                    run(mixture, EXPIRE, [of])
                    continue
                # Half of the streams contradict whatever was forecast.
                label = int(p < 0.5) if seed % 2 else int(rng.random() < middle)
                run(mixture, LEARN, [of], label)
                total += [loss(one, label) for one in (*forecasts, p)]
        assert mixture.lane_count == most
        for theirs, weight in zip(total, PRIOR, strict=False):
            assert total[-1] <= theirs - most * math.log(weight) + 1e-9
        losses = np.empty(6)
        mixture.losses(losses)
        np.testing.assert_allclose(losses, total, rtol=1e-9, atol=1e-9)
