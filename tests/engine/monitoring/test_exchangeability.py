"""E-process against exchangeability, `abers.monitoring.exchangeability`."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import ScoreError
from abers.monitoring import ExchangeabilityEProcess

SCORES = st.lists(
    st.sampled_from([-1e308, -3.0, -0.5, 0.0, -0.0, 1e-9, 0.5, 0.5001, 2.0, 1e308]), max_size=150
)


def cell(score: float) -> int:
    """Return the number of the cell of a score, of 4,096."""
    return min(int((score / (1.0 + abs(score)) + 1.0) * 2048), 4095)


def jumper(values: list[float]) -> float:
    """Return the log-wealth of the Simple Jumper, in exact fractions."""
    jump, wealth = Fraction(0.01), {-1: Fraction(1, 3), 0: Fraction(1, 3), 1: Fraction(1, 3)}
    for value in values:
        whole = sum(wealth.values())
        wealth = {
            side: ((1 - jump) * one + jump * whole / 3)
            * (1 + side * (Fraction(value) - Fraction(1, 2)))
            for side, one in wealth.items()
        }
    whole = sum(wealth.values(), Fraction(0))
    return math.log(whole.numerator) - math.log(whole.denominator)


@given(scores=SCORES, sizes=st.lists(st.integers(1, 70)))
def test_ranks(scores: list[float], sizes: list[int]) -> None:
    """In batches of any size, a p-value follows from the rank among the scores so far."""
    bets, whole, found = ExchangeabilityEProcess(3), ExchangeabilityEProcess(3), []
    rest = scores
    for size in [*sizes, len(scores)]:
        found += bets.update(rest[:size]).tolist()
        rest = rest[size:]
    assert found == whole.update(scores).tolist()
    assert bets.evidence() == whole.evidence()
    for at, value in enumerate(found):
        so_far = [cell(score) for score in scores[: at + 1]]
        larger = sum(one > so_far[-1] for one in so_far)
        equal = sum(one == so_far[-1] for one in so_far)
        assert larger / (at + 1) <= value <= (larger + equal) / (at + 1)


@given(scores=SCORES, more=SCORES)
def test_saved(scores: list[float], more: list[float]) -> None:
    """An e-process that loads a state goes on as the saved one."""
    bets, other = ExchangeabilityEProcess(3), ExchangeabilityEProcess(3)
    bets.update(scores)
    other.load(bets.state())
    assert other.update(more).tolist() == bets.update(more).tolist()
    assert other.state() == bets.state()
    assert other.evidence() == bets.evidence()


@given(scores=SCORES.map(lambda many: many[:40]))
def test_simple_jumper(scores: list[float]) -> None:
    """The wealth is that of the published algorithm."""
    bets = ExchangeabilityEProcess()
    values = bets.update(scores).tolist()
    assert bets.evidence()[0].log_wealth == pytest.approx(jumper(values), abs=1e-9)


def test_ties_are_broken_evenly_and_always_alike() -> None:
    """Of equal scores p-values are uniform; they depend on the seed and on nothing else."""
    values = ExchangeabilityEProcess(1).update(np.zeros(4_000))
    assert values.tolist() == ExchangeabilityEProcess(1).update(np.zeros(4_000)).tolist()
    assert values.tolist() != ExchangeabilityEProcess(2).update(np.zeros(4_000)).tolist()
    counts = np.histogram(values, 10, (0.0, 1.0))[0]
    assert (((counts - 400.0) ** 2) / 400.0).sum() < 40.0  # chi-squared, 9 degrees of freedom


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_score_that_is_none(bad: float) -> None:
    """A batch with a bad score is refused, and nothing of it is counted."""
    bets = ExchangeabilityEProcess()
    with pytest.raises(ScoreError, match="row 1"):
        bets.update([0.5, bad])
    assert bets.update([0.5]).tolist() == ExchangeabilityEProcess().update([0.5]).tolist()


def test_times() -> None:
    """An incident has the time of the score that opened it."""
    bets = ExchangeabilityEProcess(alpha=0.9)
    bets.update(np.arange(300.0), 10 * np.arange(300))
    last = bets.evidence()[0].last
    assert last is not None
    assert last.first % 10 == 0 < last.first


@pytest.mark.parametrize("ties", [False, True])
def test_crossing_probability(ties: bool) -> None:  # noqa: FBT001
    """At most a share alpha of exchangeable streams becomes active, with ties or without."""
    rng, runs, alpha, actives = np.random.default_rng(4), 300, 0.2, 0
    for run in range(runs):
        scores = rng.integers(0, 3, 400) / 2.0 if ties else rng.normal(size=400)
        bets = ExchangeabilityEProcess(run, alpha=alpha)
        bets.update(scores)
        actives += bets.evidence()[0].active
    assert actives <= runs * alpha + 4.9 * math.sqrt(runs * alpha * (1.0 - alpha))


def test_average_run_length() -> None:
    """Mean distances between alarms of exchangeable scores are at least the run length."""
    rng, n, distance = np.random.default_rng(5), 40_000, 50
    bets = ExchangeabilityEProcess(average_run_length=distance, cooldown=1)
    bets.update(rng.random(n))
    crossings = max(bets.evidence()[1].incidents, 1)  # adjacent crossings are one incident
    assert n / crossings > distance * (1.0 - 4.0 / math.sqrt(crossings))


@pytest.mark.parametrize("start", [500, 5_000])
def test_a_change_of_the_scores(start: int) -> None:
    """A shift by one standard deviation is found within some hundreds of scores."""
    rng = np.random.default_rng(6)
    bets = ExchangeabilityEProcess(average_run_length=10_000)
    bets.update(rng.normal(size=start))
    assert not bets.evidence()[1].active
    bets.update(rng.normal(1.0, 1.0, 400))
    assert bets.evidence()[1].active
