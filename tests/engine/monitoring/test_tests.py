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
from abers.monitoring.tests import strongest

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
            staked = self.anew and factor != 1.0  # nothing where nothing is bet
            self.wealth = (self.wealth + int(staked)) * Fraction(factor)
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
    """R crosses where (R + 1) times the factor reaches the run length, and restarts.

    A factor of 1 is no bet, and leaves R as it is.
    """
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
def test_bad_options(options: dict[str, Any]) -> None:
    """The run length must be finite and above 1, and the cooldown at least 1."""
    with pytest.raises(ParameterError, match=f"^{next(iter(options))}="):
        EDetector("a", **options)


def test_strongest() -> None:
    """The strongest has the largest evidence, the latest incident, and all guarantees."""
    one, two = (
        EDetector("change", average_run_length=10),
        EDetector("change", average_run_length=10),
    )
    one.update([20.0, 0.5], [50, 60])
    two.update([5.0], [70])
    (both,) = strongest([[one.evidence(2, "raw")], [], [two.evidence(3, "raw")]])
    assert both == Evidence(
        "change",
        "raw",
        math.log(5.0),
        math.log(10),
        True,  # noqa: FBT003 - ringing
        "active",
        1,
        Incident(1, 50, 50, math.log(20.0)),
        f"Of each of 2 calibrators by itself: {two.guarantee}",
        5,
    )
    assert strongest([[one.evidence()]]) == (one.evidence(),)
    assert strongest([]) == strongest([[]]) == ()


@pytest.mark.parametrize("time", [0, -1, 2**64])
def test_no_run_time(time: int) -> None:
    """A run length in event time is positive, and fits 63 bits."""
    with pytest.raises(ParameterError, match="average_run_time="):
        EDetector("a", average_run_time=time)


def test_status() -> None:
    """A detector is quiet, active during an incident, then triggered; a martingale stays so."""
    change, since = EDetector("a", average_run_length=5, cooldown=2), Martingale("b", alpha=0.3)
    found = []
    for factor in (0.5, 8.0, 0.5, 0.5):
        for test in (change, since):
            test.update([factor], [0])
        found.append((change.evidence().status, since.evidence().status))
    assert found == [
        ("quiet", "quiet"),
        ("active", "triggered"),
        ("active", "triggered"),
        ("triggered", "triggered"),
    ]
    (both,) = strongest([[change.evidence()], [EDetector("a").evidence()]])
    assert both.status == "triggered"


MILLION = 1_000_000
"""Parts of a run length in event time."""


class Timed:
    """R of a run length in event time, by definition and in exact fractions of it."""

    def __init__(self, length: int) -> None:
        """Begin before the first event time."""
        self.length, self.statistic = length, Fraction(0)
        self.latest: int | None = None

    def take(self, factor: float, time: int) -> bool:
        """Take a factor; return whether R reaches the run length."""
        grown = Fraction(max(0, time - self.latest) if self.latest is not None else 0, self.length)
        self.latest = time if self.latest is None else max(self.latest, time)
        if factor == 1.0:
            return False
        self.statistic = (self.statistic + min(grown, Fraction(1, 100))) * Fraction(factor)
        crossed = self.statistic >= 1
        if crossed:
            self.statistic = Fraction(0)
        return crossed


TIMED = st.lists(
    st.tuples(st.sampled_from([0.25, 0.5, 1.0, 2.0, 8.0]), st.integers(-5, 40)), max_size=60
)


@given(rows=TIMED, sizes=st.lists(st.integers(0, 7)), start=st.integers(-100, 100))
def test_run_length_in_event_time(
    rows: list[tuple[float, int]], sizes: list[int], start: int
) -> None:
    """R grows by the growth of the largest event time, at most a hundredth of the run length.

    The length is a power of two, so that the statistic in parts of it is exact.
    """
    length = 1 << 10
    detector, oracle = EDetector("a", average_run_time=length, cooldown=1), Timed(length)
    times, time = [], start
    for _, step in rows:
        time += step
        times.append(time)
    crossed = [oracle.take(factor, at) for (factor, _), at in zip(rows, times, strict=True)]
    opened, done = [], 0
    for part in batches([factor for factor, _ in rows], sizes):
        found = detector.update(part, times[done : done + len(part)])
        opened += [done + at for at, _ in found]
        done += len(part)
    assert opened == [first for first, _ in episodes(crossed, 1)]
    expected = max(float(oracle.statistic * MILLION), 1.0)
    assert detector.log_wealth == pytest.approx(math.log(expected), abs=1e-9)
    other = EDetector("a", average_run_time=length, cooldown=1)
    other.load(detector.state())
    assert other.update([2.0], [time + 9]) == detector.update([2.0], [time + 9])
    assert other.state() == detector.state()


def test_impossible_counts_without_any_time() -> None:
    """An infinite factor is an alarm even where event time stands still, and no NaN."""
    detector = EDetector("a", average_run_time=1_000)
    assert detector.update([math.inf, 1.5], [7, 7]) == [(0, Incident(1, 7, 7, math.inf))]
    assert detector.log_wealth == 0.0
    assert "1 second of event time" in detector.guarantee


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
            before = test.native.crossed  # a crossing need not open an incident
            test.update([factor], [0])
            crossings += test.native.crossed != before
    run_length = steps / crossings
    # The lengths of runs scatter about as much as they are long.
    assert distance * (1.0 - 4.0 / math.sqrt(crossings)) < run_length < 3 * distance


@pytest.mark.parametrize("burst", [1, 50])
def test_average_run_time(burst: int) -> None:
    """Mean event times between alarms of fair games are at least the run length, also in bursts."""
    rng = np.random.default_rng(3)
    length, steps = 2_000, 200_000
    test = EDetector("a", average_run_time=length, cooldown=1)
    gaps = np.where(np.arange(steps) % burst == 0, rng.integers(0, 20 * burst, steps), 0)
    times = np.cumsum(gaps)
    (factors,) = coins(rng, 1, steps).tolist()
    crossings = 0
    for factor, time in zip(factors, times.tolist(), strict=True):
        before = test.native.crossed  # a crossing need not open an incident
        test.update([factor], [time])
        crossings += test.native.crossed != before
    assert crossings > 30
    assert times[-1] / crossings > length * (1.0 - 4.0 / math.sqrt(crossings))
