"""Lanes: which one an observation holds, what they weigh, and which are dropped."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from tests.engine.calibration.models import CLASSES, PRIORS, SETS, chances, given, made, run, saved
from tests.oracles.experts import mixed
from tests.oracles.lanes import Lanes

from abers.arrays import EXPIRE, LEARN, PREDICT, REMOVE

pytestmark = pytest.mark.native

PRIOR = PRIORS["one"]


def test_an_observation_takes_the_smallest_idle_lane() -> None:
    """Idle lanes are used again, the smallest first, before there is a new one."""
    model = made("one")
    run(model, PREDICT, [10, 11, 12, 13])
    run(model, LEARN, [12, 10])
    run(model, PREDICT, [14])
    assert saved(model.mixture)["numbers"].tolist() == [14, 11, -1, 13]
    run(model, PREDICT, [15, 16])
    assert saved(model.mixture)["numbers"].tolist() == [14, 11, 15, 13, 16]
    assert saved(model.mixture)["moments"].tolist() == [4, 1, 5, 3, 6]


def test_lanes_without_a_label_are_dropped() -> None:
    """A burst whose labels never come leaves no lanes, but the number of lanes that there were."""
    model = made("one")
    run(model, PREDICT, range(1_000))
    run(model, LEARN, [3])
    run(model, EXPIRE, range(1_000))
    mixture = model.mixture
    assert (mixture.lane_rows, mixture.lane_count, mixture.awaiting_count) == (4, 1_000, 0)
    weights = np.empty(len(PRIOR))
    mixture.weights(weights)
    learned = saved(model.mixture)["weights"][3]
    expected = (999 * np.array(PRIOR) + learned / learned.sum()) / 1_000
    np.testing.assert_allclose(weights, expected, rtol=1e-12)
    run(model, PREDICT, range(2_000, 2_010))
    assert saved(model.mixture)["numbers"].tolist() == [*range(2_000, 2_010)]
    assert saved(model.mixture)["weights"][5:].tolist() == [[*PRIOR]] * 5


def test_dropped_lanes_give_back_their_memory() -> None:
    """After a burst whose labels never come, a mixture is as small as before, within a page."""
    model = made("one")
    before = model.mixture.__sizeof__()
    run(model, PREDICT, range(100_000))
    full = model.mixture.__sizeof__()
    assert full - before <= 100_000 * 660
    run(model, EXPIRE, range(100_000))
    assert model.mixture.__sizeof__() - before <= 32_768


def test_lanes_stay_within_the_formula() -> None:
    """Pending observations and lanes take no more memory than docs/deploy.md says."""
    for n in (10_000, 70_000, 150_000):
        model = made("one")
        run(model, PREDICT, range(n))
        assert model.mixture.__sizeof__() <= n * 660
        run(model, LEARN, range(n))
        assert model.mixture.__sizeof__() <= n * 185


@pytest.mark.parametrize("seed", range(4))
def test_lanes_are_those_of_a_plain_list(seed: int) -> None:
    """After any steps the lanes and their weights are those of a list that never drops one."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    model = made("one")
    lanes: list[int | None] = []
    held: list[int] = []
    labelled: set[int] = set()
    for number in range(400):
        run(model, PREDICT, [number])
        lane = lanes.index(None) if None in lanes else len(lanes)
        lanes[lane : lane + 1] = [number]
        held.append(number)
        while held and rng.random() < 0.5 + 0.02 * (number % 60 > 30):
            of = held.pop(rng.randrange(len(held)))
            lane = lanes.index(of)
            lanes[lane] = None
            kind = LEARN if rng.random() < 0.2 else EXPIRE
            run(model, kind, [of], label=1)
            labelled |= {lane} if kind == LEARN else set()
        columns = saved(model.mixture)
        rows = model.mixture.lane_rows
        assert [None if one < 0 else one for one in columns["numbers"].tolist()] == lanes[:rows]
        assert lanes[rows:] == [None] * (len(lanes) - rows)
        assert all(lane < rows for lane in labelled)
        assert model.mixture.lane_count == len(lanes)
    fresh = [lane for lane in range(model.mixture.lane_rows) if lane not in labelled]
    assert saved(model.mixture)["weights"][fresh].tolist() == [[*PRIOR]] * len(fresh)


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
    model = made("one")
    run(model, PREDICT, [1])
    with pytest.raises(ValueError, match="nothing is removed"):
        run(model, REMOVE, [1])
    assert model.mixture.awaiting_count == 1


@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("first", range(0, 200, 25))
def test_the_bound_holds_for_losses_counted_outside(first: int, sets: str) -> None:
    """Random delays, orders and lost labels: within C ln(1/weight) of every method.

    The losses are those of the probabilities that were returned and of the forecasts that were
    kept with them, summed here. Half of the streams contradict each forecast.
    """
    prior = PRIORS[sets]
    classes = CLASSES if sets == "classes" else 2
    for seed in range(first, first + 25):
        rng = np.random.default_rng(seed)
        model = made(sets)
        waiting: dict[int, tuple[list[float], list[float], list[float]]] = {}
        total, most, pace = np.zeros(len(prior) + 1), 0, rng.uniform(0.4, 0.6)
        for number in range(150):
            scores = given(sets, rng)
            (row,) = run(model, PREDICT, [number], scores=scores).tolist()
            columns = saved(model.mixture)
            (lane,) = np.flatnonzero(columns["numbers"] == number)
            waiting[number] = scores, row, columns["forecasts"][lane].tolist()
            most = max(most, len(waiting))
            while waiting and rng.random() < pace:
                of = int(rng.choice([*waiting]))
                scores, row, kept = waiting.pop(of)
                if rng.random() < 0.15:
                    run(model, EXPIRE, [of], scores=scores)
                    continue
                served = [chances(sets, row, kept, one)[-1] for one in range(classes)]
                label = int(np.argmin(served)) if seed % 2 else int(rng.integers(classes))
                run(model, LEARN, [of], label, scores)
                total -= np.log(chances(sets, row, kept, label))
        assert model.mixture.lane_count == most
        for theirs, weight in zip(total, prior, strict=False):
            assert total[-1] <= theirs - most * math.log(weight) + 1e-9
        losses = np.empty(len(prior) + 1)
        model.mixture.losses(losses)
        np.testing.assert_allclose(losses, total, rtol=1e-9, atol=1e-9)
