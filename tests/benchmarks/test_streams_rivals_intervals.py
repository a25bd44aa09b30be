"""Rivals of intervals do what the definitions of their papers say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from benchmarks.papers.streams_rivals import ran
from benchmarks.papers.streams_rivals_intervals import CALIBRATION, interval_rivals
from benchmarks.papers.streams_rivals_numbers import Base
from benchmarks.papers.streams_steps import equal, steps
from scipy.stats import norm

if TYPE_CHECKING:
    from numpy.typing import NDArray

N, SUPPORT = 238, (-50.0, 50.0)
RNG = np.random.default_rng(8)
MEAN, STD = RNG.normal(size=N), np.full(N, 0.8)
Y = MEAN + RNG.normal(0.0, np.where(np.arange(N) < 120, 1.0, 3.0))
BASE, RESIDUALS = Base(MEAN, STD, SUPPORT), Y - MEAN
AT_ONCE = steps(equal(0), Y)
LATER = range(CALIBRATION, N)


def distances(name: str) -> NDArray[np.float64]:
    """Return how far the ends lie from the mean, with labels at once."""
    ends = ran(interval_rivals(BASE)[name], Y, AT_ONCE)
    return np.column_stack((MEAN - ends[:, 0], ends[:, 1] - MEAN))


def pinball(score: float, at: float) -> float:
    """Return the loss of a quantile at .8."""
    return 0.8 * (score - at) if score > at else 0.2 * (at - score)


@pytest.mark.parametrize("name", interval_rivals(BASE))
def test_the_base_goes_first(name: str) -> None:
    """Until there are labels for calibration the interval is that of the base."""
    wanted = np.column_stack(norm.interval(0.8, MEAN, STD))
    for delay in (0, 20):
        found = ran(interval_rivals(BASE)[name], Y, steps(equal(delay), Y))
        until = CALIBRATION + delay
        assert found[:until] == pytest.approx(wanted[:until])
        assert abs(found[until] - wanted[until]).max() > 1e-6


def test_adaptive_conformal_inference() -> None:
    """The level moves by .005 times what a miss exceeds it by; the scores are all so far."""
    scores, alpha, found = np.abs(RESIDUALS), 0.2, distances("ACI")
    for row in LATER:
        so_far = np.sort(scores[:row])
        half = so_far[math.ceil((1.0 - alpha) * row - 1e-9) - 1]
        assert found[row] == pytest.approx([half, half])
        alpha += 0.005 * (0.2 - (scores[row] > half))


@pytest.mark.parametrize(
    ("name", "k", "c"),
    [("PID, C 5", 10.0, 5.0), ("PID, C by length", 1.0, 2.0 / math.pi * (1.0 - 1.0 / math.log(N)))],
)
def test_conformal_pid_control(name: str, k: float, c: float) -> None:
    """An end tracks its quantile by a tenth of the range, and adds the saturated sum of errors."""
    found = distances(name)
    for end, scores in enumerate((-RESIDUALS, RESIDUALS)):
        first = np.sort(scores[:CALIBRATION])
        tracked, errors = first[math.ceil(0.9 * CALIBRATION) - 1], 0.0
        gain = k * np.abs(RESIDUALS[:CALIBRATION]).max()
        for row in LATER:
            t = row + 1
            wanted = tracked + gain * math.tan(errors * math.log(t) / (c * t))
            assert found[row, end] == pytest.approx(wanted)
            miss, last = float(scores[row] > wanted), scores[max(row - 99, 0) : row + 1]
            tracked += 0.1 * np.ptp(last) * (miss - 0.1)
            errors += miss - 0.1


class Expert:
    """Scale-free gradient descent on the pinball loss from a first radius, for a while."""

    def __init__(self, born: int, radius: float, scale: float) -> None:
        """Begin at a label."""
        self.born, self.radius, self.scale = born, radius, scale
        self.ends = born + 8 * max(2**n for n in range(20) if born % 2**n == 0)
        self.gradients: list[float] = []
        self.gains: list[float] = []
        self.bets: list[float] = []

    @property
    def wager(self) -> float:
        """Return the mean gain times the wealth."""
        wealth = 1.0 + sum(g * b for g, b in zip(self.gains, self.bets, strict=True))
        return sum(self.gains) / len(self.gains) * wealth if self.gains else 0.0

    def learn(self, score: float, loss: float) -> None:
        """Bet on having lost less, then take a step."""
        bet, gain = self.wager, (loss - pinball(score, self.radius)) / (0.8 * self.scale)
        self.gains.append(round(min(max(gain, -1.0 if bet > 0.0 else 0.0), 1.0), 12))
        self.bets.append(bet)
        self.gradients.append(-0.8 if score > self.radius else 0.2)
        norm_of = math.sqrt(sum(g * g for g in self.gradients))
        step = self.scale / math.sqrt(3.0) * self.gradients[-1] / norm_of
        self.radius = max(self.radius - step, 0.0)


def weighed(experts: list[Expert]) -> float:
    """Return the radius of experts by prior and wager."""
    if not experts:
        return 0.0
    prior = [1.0 / (e.born**2 * (1 + math.floor(math.log2(e.born)))) for e in experts]
    weights = [p * max(e.wager, 0.0) for p, e in zip(prior, experts, strict=True)]
    weights = weights if sum(weights) else prior
    return sum(w * e.radius for w, e in zip(weights, experts, strict=True)) / sum(weights)


def test_strongly_adaptive_online_conformal_prediction() -> None:
    """Experts begin at each label and live 8 times the largest power of 2 that divides it."""
    scores, found = np.abs(RESIDUALS).tolist(), distances("SAOCP")
    scale, experts = math.sqrt(3.0) * max(scores[:CALIBRATION]), list[Expert]()
    for t, score in enumerate(scores, start=1):
        radius = weighed(experts)
        if t > CALIBRATION:
            assert found[t - 1] == pytest.approx([radius, radius])
        experts = [e for e in experts if t <= e.ends]
        experts.append(Expert(t, radius, scale))
        loss = pinball(score, weighed(experts))
        for expert in experts:
            expert.learn(score, loss)


@pytest.mark.parametrize("name", interval_rivals(BASE))
def test_no_interval_knows_labels_that_have_not_come(name: str) -> None:
    """Other labels at the end change no interval before they come."""
    order, changed = steps(equal(30), Y), np.where(np.arange(N) < 100, Y, -Y)
    found, other = (ran(interval_rivals(BASE)[name], y, order) for y in (Y, changed))
    assert found[:131].tolist() == other[:131].tolist()


@pytest.mark.parametrize("name", interval_rivals(BASE))
def test_intervals_widen_where_labels_spread(name: str) -> None:
    """After residuals have tripled, intervals are wider, and cover some 80 % in the end."""
    y = np.concatenate((Y, *(Y[120:] for _ in range(8))))
    mean = np.concatenate((MEAN, *(MEAN[120:] for _ in range(8))))
    base = Base(mean, np.full(len(y), 0.8), SUPPORT)
    low, high = ran(interval_rivals(base)[name], y, steps(equal(0), y)).T
    assert (high - low)[-500:].mean() > 2.0 * (high - low)[60:120].mean()
    assert ((low <= y) & (y <= high))[-500:].mean() == pytest.approx(0.8, abs=0.06)
