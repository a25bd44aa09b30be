"""The two forms of a test by betting, `abers.monitoring.tests`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import ParameterError
from abers.monitoring import EDetector, Evidence, Incident, Martingale
from abers.monitoring.evidence import strongest

if TYPE_CHECKING:
    from abers.monitoring.tests import SequentialTest

FACTORS = st.lists(
    st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 2.0**-1074, math.inf]), max_size=40
)


def batches(values: list[Any], sizes: list[int]) -> list[list[Any]]:
    """Cut a list into batches of these sizes, and the rest."""
    parts = []
    for size in sizes:
        part, values = values[:size], values[size:]
        parts.append(part)
    return [*parts, values]


def fed(test: SequentialTest, factors: list[float], sizes: list[int]) -> list[int]:
    """Feed a test in batches, with times 0, 10, 20; return where incidents opened."""
    opened, done = [], 0
    for part in batches(factors, sizes):
        found = test.update(part, [10 * (done + at) for at in range(len(part))])
        opened += [done + at for at, _ in found]
        assert [episode.first for _, episode in found] == [10 * (done + at) for at, _ in found]
        done += len(part)
    return opened


class Crossings:
    """Crossings of the threshold by definition, with wealth in exact fractions."""

    def __init__(self, threshold: int, *, anew: bool) -> None:
        """Start empty."""
        self.threshold, self.anew = threshold, anew
        self.wealth: Fraction | float = Fraction(0 if anew else 1)

    def take(self, factor: float) -> bool:
        """Multiply the wealth by a factor."""
        if math.isinf(factor) or self.wealth == math.inf:
            self.wealth = math.inf
        else:
            assert isinstance(self.wealth, Fraction)
            self.wealth = (self.wealth + int(self.anew)) * Fraction(factor)
        crossed = self.wealth >= self.threshold
        if crossed and self.anew:
            self.wealth = Fraction(0)
        return crossed


def episodes(crossed: list[bool], quiet: float) -> list[tuple[int, int]]:
    """First and last crossing of each incident, by definition."""
    found: list[tuple[int, int]] = []
    for at, crosses in enumerate(crossed):
        if crosses and found and at - found[-1][1] <= quiet:
            found[-1] = (found[-1][0], at)
        elif crosses:
            found.append((at, at))
    return found


@given(factors=FACTORS, sizes=st.lists(st.integers(0, 5)), quiet=st.integers(1, 6))
def test_e_detector(factors: list[float], sizes: list[int], quiet: int) -> None:
    """R crosses where (R + 1) times the factor reaches the run length, and restarts."""
    test, oracle = (
        EDetector("change", average_run_length=9, cooldown=quiet),
        Crossings(9, anew=True),
    )
    opened = fed(test, factors, sizes)
    crossed = [oracle.take(factor) for factor in factors]
    expected = episodes(crossed, quiet)
    assert opened == [first for first, _ in expected]
    assert test.evidence().incidents == len(expected)
    assert test.log_wealth == pytest.approx(math.log(max(oracle.wealth, 1)))
    assert test.active == (bool(expected) and len(factors) - 1 - expected[-1][1] < quiet)
    if expected:
        assert test.last is not None
        assert test.last[:3] == (len(expected), 10 * expected[-1][0], 10 * expected[-1][1])
        assert test.last.log_wealth >= test.log_threshold


@given(factors=FACTORS, sizes=st.lists(st.integers(0, 5)))
def test_martingale(factors: list[float], sizes: list[int]) -> None:
    """The product crosses at 1 / alpha, and the one incident stays open."""
    test, oracle = Martingale("since-start", alpha=0.3), Crossings(1, anew=False)
    oracle.threshold = Fraction(1) / Fraction(0.3)  # type: ignore[assignment]
    opened = fed(test, factors, sizes)
    crossed = [oracle.take(factor) for factor in factors]
    assert opened == ([crossed.index(True)] if any(crossed) else [])
    assert test.active == any(crossed)
    assert test.count == len(factors)
    expected = oracle.wealth
    if isinstance(expected, Fraction):
        logarithm = math.log(expected.numerator) - math.log(expected.denominator)
        assert test.log_wealth == pytest.approx(logarithm, abs=1e-9)
    else:
        assert test.log_wealth == math.inf
    if any(crossed):
        last = len(crossed) - 1 - crossed[::-1].index(True)
        assert test.last is not None
        assert test.last[:3] == (1, 10 * crossed.index(True), 10 * last)


@given(factors=FACTORS, more=FACTORS, sizes=st.lists(st.integers(0, 5)))
@pytest.mark.parametrize("since_start", [False, True])
def test_saved(
    factors: list[float],
    more: list[float],
    sizes: list[int],
    since_start: bool,  # noqa: FBT001
) -> None:
    """Batches of any size give the same state, and a test that loads it goes on alike."""
    one, whole, other = (
        Martingale("a", alpha=0.2)
        if since_start
        else EDetector("b", average_run_length=5, cooldown=3)
        for _ in range(3)
    )
    fed(one, factors, sizes)
    fed(whole, factors, [])
    assert one.state() == whole.state()
    other.load(one.state())
    assert other.evidence() == one.evidence()
    assert fed(other, more, sizes) == fed(one, more, sizes)
    assert other.state() == one.state()


def test_infinite_wealth_is_no_nan() -> None:
    """An infinite product stays infinite; an infinite statistic crosses once."""
    since, change = Martingale("a"), EDetector("b", average_run_length=10)
    for test in (since, change):
        opened = test.update([math.inf, 2.0**-1074, math.inf], [1, 2, 3])
        assert opened == [(0, Incident(1, 1, 1, math.inf))]
        assert test.last == Incident(1, 1, 3, math.inf)
    assert since.log_wealth == math.inf
    assert change.log_wealth == 0.0


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
def test_no_level(alpha: float) -> None:
    """A level must lie strictly between 0 and 1."""
    with pytest.raises(ParameterError, match="alpha="):
        Martingale("a", alpha=alpha)


@pytest.mark.parametrize(
    "options",
    [
        {"average_run_length": 1.0},
        {"average_run_length": math.inf},
        {"average_run_length": math.nan},
        {"cooldown": 0},
        {"cooldown": math.nan},
    ],
)
def test_bad_options(options: dict[str, float]) -> None:
    """The run length must be finite and above 1, and the cooldown at least 1."""
    with pytest.raises(ParameterError, match=r"average_run_length=.*cooldown="):
        EDetector("a", **options)


def test_strongest() -> None:
    """The strongest has the largest evidence, the latest incident, and all guarantees."""
    one, two = (
        EDetector("change", average_run_length=10),
        EDetector("change", average_run_length=10),
    )
    one.update([20.0, 0.5], [50, 60])
    two.update([5.0], [70])
    (both,) = strongest([[one.evidence(2)], [], [two.evidence(3)]])
    assert both == Evidence(
        "change",
        math.log(5.0),
        math.log(10),
        True,  # noqa: FBT003 - ringing
        1,
        Incident(1, 50, 50, math.log(20.0)),
        f"Of each of 2 calibrators by itself: {two.guarantee}",
        5,
    )
    assert strongest([[one.evidence()]]) == (one.evidence(),)
    assert strongest([]) == strongest([[]]) == ()


# What is guaranteed, by simulation


def coins(rng: np.random.Generator, runs: int, steps: int) -> Any:  # noqa: ANN401
    """Factors of bets on fair coins, at odds that change from step to step."""
    bets = rng.uniform(0.2, 0.8, (1, steps))
    return np.where(rng.random((runs, steps)) < 0.5, 2.0 * bets, 2.0 * (1.0 - bets))


def at_most(probability: float, runs: int) -> float:
    """Return the largest number of crossings, but for a chance of one in a million."""
    return runs * probability + 4.9 * math.sqrt(runs * probability * (1.0 - probability)) + 1.0


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_crossing_probability(alpha: float) -> None:
    """About a share alpha of these fair games becomes active, and no more."""
    rng = np.random.default_rng(1)
    runs, crossed = 2000, 0
    for factors in coins(rng, runs, 400).tolist():
        test = Martingale("a", alpha=alpha)
        crossed += bool(test.update(factors, range(400)))
    assert 0.5 * alpha * runs < crossed <= at_most(alpha, runs)


@pytest.mark.parametrize("distance", [20, 200])
def test_average_run_length(distance: int) -> None:
    """Mean distances between alarms of fair games are at least the run length, not much more."""
    rng = np.random.default_rng(2)
    test = EDetector("a", average_run_length=distance, cooldown=1)
    steps = 400_000
    crossings = 0
    for part in coins(rng, 4, steps // 4).tolist():
        for factor in part:
            before = test._crossed  # noqa: SLF001 - a crossing need not open an incident
            test.update([factor], [0])
            crossings += test._crossed != before  # noqa: SLF001
    run_length = steps / crossings
    # The lengths of runs scatter about as much as they are long.
    assert distance * (1.0 - 4.0 / math.sqrt(crossings)) < run_length < 3 * distance
