"""E-processes against distributions and intervals, `abers.monitoring.distribution_e_process`.

The oracle keeps all labels and counts them anew for each bet, in exact fractions
where nothing is forgotten; the simulations show the guarantees.
"""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import ParameterError
from abers.monitoring import DistributionEProcess, EProcessSteps
from abers.monitoring.e_processes import EXPIRES, LEARNS, PREDICTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVELS = (0.75, 0.5)  # exact as doubles
ENDS = st.tuples(st.integers(0, 16), st.integers(0, 16)).map(sorted)
"""The ends of a PIT value, in sixteenths."""
EVIDENCE = st.tuples(st.booleans(), st.booleans(), ENDS)
LIFE = st.lists(st.tuples(EVIDENCE, st.integers(0, 9), st.booleans()), max_size=30)
"""For each observation: the outcome, the delay of its label, and whether that comes at all."""


def steps(life: Sequence[Any], *, pit: bool) -> list[EProcessSteps]:
    """Return the steps of a random sequence, one each."""
    made: list[tuple[float, int, int, list[float]]] = []
    for number, ((wide, narrow, (low, high)), delay, comes) in enumerate(life):
        values = [float(wide), float(narrow)] + [low / 16, high / 16] * pit
        made.append((number, PREDICTS, number, [0.0] * len(values)))
        made.append((number + delay + 0.5, LEARNS if comes else EXPIRES, number, values))
    return [
        EProcessSteps(
            np.array([kind], np.uint8), np.array([number]), np.array([number]), np.array([values])
        )
        for _, kind, number, values in sorted(made, key=lambda one: one[0])
    ]


def joined(many: Sequence[EProcessSteps]) -> EProcessSteps:
    """Return steps as one batch."""
    columns: list[Any] = [np.concatenate(column) for column in zip(*many, strict=True)]
    return EProcessSteps(*columns)


def coverage(covered: Sequence[bool], level: Fraction) -> Fraction:
    """Multiply the factors of the intervals of one level."""
    wealth = Fraction(1)
    for at, covers in enumerate(covered):
        q = min((sum(covered[:at]) + level) / (at + 1), level)
        wealth *= q / level if covers else (1 - q) / (1 - level)
    return wealth


def share(low: Fraction, high: Fraction, at: int) -> Fraction:
    """Return how much of a PIT value between two ends lies in one of ten bins."""
    left, right = Fraction(at, 10), Fraction(at + 1, 10)
    if low == high:
        return Fraction(left <= low < right or (at == 9 and low == 1))
    return max(min(high, right) - max(low, left), Fraction(0)) / (high - low)


def uniform(ends: Sequence[Sequence[int]]) -> Fraction:
    """Multiply the factors of PIT values."""
    wealth = Fraction(1)
    shares = [
        [share(Fraction(low, 16), Fraction(high, 16), at) for at in range(10)] for low, high in ends
    ]
    for at, one in enumerate(shares):
        factor = Fraction(0)
        for part, column in zip(one, zip(*shares, strict=True), strict=True):
            factor += 10 * part * (sum(column[:at]) + Fraction(1, 2)) / (at + 5)
        wealth *= factor
    return wealth


@given(life=LIFE, sizes=st.lists(st.integers(1, 20)), pit=st.booleans())
def test_oracle(life: list[Any], sizes: list[int], pit: bool) -> None:  # noqa: FBT001
    """Whenever labels come, in batches of any size: the products are those of the definition."""
    bets, singles = DistributionEProcess(LEVELS, pit=pit, tolerance=3.0), steps(life, pit=pit)
    for size in [*sizes, len(singles)]:
        batch, singles = singles[:size], singles[size:]
        if batch:
            bets.run(joined(batch))
    labelled = [one for one, _, comes in life if comes]
    expected = [
        coverage([one[0] for one in labelled], Fraction(3, 4)),
        coverage([one[1] for one in labelled], Fraction(1, 2)),
        coverage([one[0] for one in labelled], Fraction(1, 2)),  # odds of 3, divided by 3
        coverage([one[1] for one in labelled], Fraction(1, 4)),
        *([uniform([one[2] for one in labelled])] if pit else []),
    ]
    found = bets.evidence()
    names = ["coverage-0.75", "coverage-0.5"]
    names += [f"{name}-tolerance" for name in names]
    names += [*(["pit"] if pit else []), "change", "change-tolerance"]
    assert [one.name for one in found] == names
    assert {one.view for one in found} == {"calibrated"}
    for one, wealth in zip(found, expected, strict=False):
        logarithm = math.log(wealth.numerator) - math.log(wealth.denominator)
        assert one.log_wealth == pytest.approx(logarithm, abs=1e-9)
    assert {one.skipped for one in found} == {len(life) - len(labelled)}
    assert not len(bets.waiting)


@given(life=LIFE, sizes=st.lists(st.integers(1, 20)), pit=st.booleans(), at=st.integers(0, 60))
def test_saved(life: list[Any], sizes: list[int], pit: bool, at: int) -> None:  # noqa: FBT001
    """The state is that of single steps; bets that load it go on alike, with equal incidents."""
    options: dict[str, Any] = {"pit": pit, "average_run_length": 3, "cooldown": 1}
    single, batched, other = (DistributionEProcess(LEVELS, **options) for _ in range(3))
    singles = steps(life, pit=pit)
    rung = [
        (n, one.test, one.incident) for n, s in enumerate(singles[:at]) for one in single.run(s)
    ]
    rest, done, together = singles[:at], 0, []
    for size in [*sizes, len(rest)]:
        batch, rest = rest[:size], rest[size:]
        if batch:
            opened = batched.run(joined(batch))
            together += [(done + one.step, one.test, one.incident) for one in opened]
        done += len(batch)
    assert sorted(together) == sorted(rung)
    assert batched.state() == single.state()
    other.load(single.state())
    for one in singles[at:]:
        assert other.run(one) == single.run(one)
    assert other.state() == single.state()


@given(covered=st.lists(st.booleans(), max_size=40))
def test_change_of_coverage(covered: list[bool]) -> None:
    """The detector bets by counts that lose a five hundredth with each label."""
    bets = DistributionEProcess([0.75], average_run_length=1e300, tolerance=3.0)
    life = [((covers, False, (0, 16)), 0, True) for covers in covered]
    for one in steps(life, pit=False):
        bets.run(one._replace(values=one.values[:, :1]))
    for level, test in ((0.75, 2), (0.5, 3)):
        statistic, hits, misses = 0.0, 0.0, 0.0
        for covers in covered:
            q = min((hits + level) / (hits + misses + 1.0), level)
            if q < level:  # else nothing is bet
                statistic = (statistic + 1.0) * (q / level if covers else (1.0 - q) / (1.0 - level))
            hits, misses = hits * 0.998 + covers, misses * 0.998 + (not covers)
        assert bets.evidence()[test].log_wealth == pytest.approx(math.log(max(statistic, 1.0)))


def test_an_alarm_says_which_interval_covers_too_little() -> None:
    """The shift of an alarm counts the labels inside the interval that is furthest off."""
    bets = DistributionEProcess([0.9, 0.5], average_run_length=1_000)
    covered = np.column_stack((np.arange(400) % 2, np.arange(400) % 2)).astype(float)
    opened = bets.run(settled(covered))
    ((shift, incident),) = [
        (one.shift, one.incident) for one in opened if one.test == "change-tolerance"
    ]
    assert shift is not None
    assert shift.outcome == "labels inside the central 90 % intervals"
    assert shift.expected == pytest.approx(0.9 * shift.labels)
    assert shift.observed == covered[shift.since : incident.first + 1, 0].sum()
    assert [one.shift for one in opened if one.test != "change-tolerance"] == [None] * 3


def test_without_intervals_the_pit_values_raise_the_alarm() -> None:
    """Where there are no intervals, the test of the alarm is that of the PIT values."""
    bets = DistributionEProcess([], pit=True, average_run_length=100)
    opened = bets.run(settled(np.full((60, 2), 0.05)))
    assert [one.test for one in opened] == ["pit", "change", "change-tolerance"]
    change, tolerant = bets.evidence()[1:]
    assert tolerant == change._replace(name="change-tolerance")
    assert "all probabilities are right" in tolerant.guarantee


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, math.nan])
def test_no_level(level: float) -> None:
    """A level outside (0, 1) is refused."""
    with pytest.raises(ParameterError, match="level="):
        DistributionEProcess([0.5, level])


def test_nothing_to_test() -> None:
    """Without intervals and PIT values there are no tests, and nothing waits."""
    bets = DistributionEProcess([])
    ((one, two),) = [steps([((True, True, (0, 0)), 0, True)], pit=False)]
    for each in (one, two):
        assert bets.run(each._replace(values=np.zeros((1, 1)))) == []
    assert bets.evidence() == ()
    assert not len(bets.waiting)


# What is guaranteed, by simulation


def settled(values: Floats) -> EProcessSteps:
    """Predict observations, then add all their labels."""
    n = len(values)
    numbers = np.tile(np.arange(n), 2)
    kinds = np.repeat(np.array([PREDICTS, LEARNS], np.uint8), n)
    return EProcessSteps(kinds, numbers, numbers, np.vstack((np.zeros_like(values), values)))


def share_of_active(kind: str, n: int, runs: int, *, seed: int, shift: float = 0.0) -> float:
    """Return the share of runs in which a test is active where CDF values are not uniform."""
    rng, actives = np.random.default_rng(seed), 0
    for _ in range(runs):
        u = rng.random(n) ** math.exp(shift)
        values = np.column_stack((u < 0.75, (u > 0.25) & (u < 0.75), u, u)).astype(float)
        bets = DistributionEProcess((0.75, 0.5), pit=True, alpha=0.1)
        bets.run(settled(values))
        actives += next(one.active for one in bets.evidence() if one.name == kind)
    return actives / runs


@pytest.mark.simulation
@pytest.mark.parametrize(
    "kind", ["coverage-0.75", "coverage-0.5", "coverage-0.75-tolerance", "pit"]
)
def test_crossing_probability(kind: str) -> None:
    """At most a share alpha of calibrated runs, and most others, become active."""
    runs, alpha = 200, 0.1
    most = alpha + 4.9 * math.sqrt(alpha * (1.0 - alpha) / runs)
    assert share_of_active(kind, 300, runs, seed=1) <= most
    assert share_of_active(kind, 600, 20, seed=2, shift=-1.5) >= 0.9


@pytest.mark.simulation
def test_intervals_may_be_too_wide() -> None:
    """Intervals that cover more than they should never win a bet against themselves."""
    bets = DistributionEProcess([0.5])
    bets.run(settled((np.arange(2000) % 4 > 0).astype(float)[:, np.newaxis]))
    coverage_, tolerant, *changes = bets.evidence()
    assert max(coverage_.log_wealth, tolerant.log_wealth) <= math.log(2.0)
    assert not any(change.active for change in changes)


@pytest.mark.simulation
@pytest.mark.parametrize("pit", [False, True])
def test_average_run_length(pit: bool) -> None:  # noqa: FBT001
    """Mean distances between alarms of calibrated runs are at least the average run length."""
    rng = np.random.default_rng(3)
    n, distance = 60_000, 50
    u = rng.random(n)
    values = np.column_stack((u < 0.75, *((u, u) if pit else ()))).astype(float)
    bets = DistributionEProcess([0.75], pit=pit, average_run_length=distance, cooldown=1)
    bets.run(settled(values))
    crossings = max(bets.evidence()[-2].incidents, 1)  # adjacent crossings are one incident
    assert n / crossings > distance * (1.0 - 4.0 / math.sqrt(crossings))


@pytest.mark.simulation
@pytest.mark.parametrize(("start", "most"), [(0, 500), (10_000, 500)])
def test_detection_delay(start: int, most: int) -> None:
    """Distributions that become too wide by a half are found soon, early and late."""
    rng, delays = np.random.default_rng(4), []
    for _ in range(5):
        n = start + 2_000
        z = rng.normal(size=n) * np.where(np.arange(n) < start, 1.0, 0.5)
        u = np.array([0.5 * math.erfc(-one / math.sqrt(2.0)) for one in z.tolist()])
        bets = DistributionEProcess([], pit=True, average_run_length=10_000, cooldown=1)
        opened = bets.run(settled(np.column_stack((u, u))))
        first = [one.incident.first for one in opened if one.test == "change"]
        delays.append(min((at - start for at in first if at >= start), default=n))
    assert np.median(delays) < most


def test_the_state_does_not_grow_with_labels() -> None:
    """Tests, verdicts and sums of answers take as many bytes after 60,000 labels as after 8,000."""
    rng = np.random.default_rng(5)
    levels, quantiles = (0.5, 0.8), (0.25, 0.5, 0.75)
    process = DistributionEProcess(levels, quantiles=quantiles, pit=True, intervals=True)
    sizes, done = [], 0
    for until in (8_000, 30_000, 60_000):
        n = until - done
        pit = rng.random((n, 1))
        inside = (np.abs(pit - 0.5) < np.array(levels) / 2.0).astype(np.float64)
        below, rest = (1.0 - inside) * (pit < 0.5), np.abs(rng.normal(size=(n, 4)))
        counted = (pit <= np.array(quantiles)).astype(np.float64)
        rows = np.hstack((below, rest, inside, counted, pit, pit))
        numbers = np.arange(done, until)
        for kind in (PREDICTS, LEARNS):
            process.run(EProcessSteps(np.full(n, kind, np.uint8), numbers, numbers, rows))
        done = until
        sizes.append(len(pickle.dumps(process)))
    assert max(sizes) <= sizes[0] + 1_000  # marks come and go
    assert max(sizes) < 25_000
