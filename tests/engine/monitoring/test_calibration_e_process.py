"""E-processes against forecasts of binary labels, `abers.monitoring.e_processes`.

The oracle keeps every observation in a list and computes all of it anew after each
step; the simulations show the guarantees, and what is lost without them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.grid_bets import GridBets

from abers import LabelError, ParameterError, ScoreError
from abers.backends import core
from abers.monitoring import CalibrationEProcess, EDetector, Martingale, VerdictSequence
from abers.monitoring.e_processes import EXPIRES, LEARNS, PREDICTS, EProcessSteps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.monitoring.tests import Evidence

    Floats = NDArray[np.float64]

FORECASTS = (0.0, -0.0, 0.1, 0.1 + 1e-5, 0.3, 0.5, 0.5, 0.9, 1.0)
LIFE = st.lists(
    st.one_of(
        st.tuples(st.just(PREDICTS), st.sampled_from(FORECASTS)),
        st.tuples(st.sampled_from([LEARNS, LEARNS, LEARNS, EXPIRES]), st.integers(0, 12)),
    ),
    max_size=60,
)
"""Steps: predict with a forecast, or end the wait of one of the last observations."""
DETECTOR: dict[str, Any] = {"average_run_length": 4, "cooldown": 2}
OPTIONS: dict[str, Any] = {"alpha": 0.3, "tolerance": 1.5, **DETECTOR}


class Kept:
    """An observation, as the oracle keeps it."""

    def __init__(self, forecast: float, bets: list[float], *, left_out: bool) -> None:
        """Start without a label."""
        self.forecast, self.bets, self.left_out = forecast, bets, left_out
        self.label: int | None = None
        self.expired = False

    def factor(self, bet: float) -> float:
        """Return the factor of a bet."""
        return factor(bet, self.forecast, int(self.label or 0))

    def tolerant(self, bet: float) -> float:
        """Return the factor of a bet against odds that are off by the tolerance."""
        return factor(bet, nearest(bet, self.forecast, OPTIONS["tolerance"]), int(self.label or 0))


def factor(bet: float, reference: float, label: int) -> float:
    """Return what a bet pays."""
    of_label = (bet, reference) if label else (1.0 - bet, 1.0 - reference)
    return of_label[0] / of_label[1] if of_label[1] else math.inf


def nearest(bet: float, p: float, tolerance: float) -> float:
    """Return the tolerated probability that is nearest to a bet."""
    lowest = p / (p + (1.0 - p) * tolerance)
    highest = p * tolerance / (p * tolerance + (1.0 - p))
    return min(max(bet, lowest), highest)


class Oracle:
    """An oracle that stores everything and recomputes."""

    def __init__(self, least: int) -> None:
        """Start empty."""
        self.kept: list[Kept] = []
        self.least, self.came = least, 0
        self.learned: list[tuple[float, int]] = []  # in order of arrival

    def predict(self, forecast: float) -> None:
        """Bet from the labels so far."""
        bettor = GridBets()
        for one, label in self.learned:
            bettor.learn(one, label)
        bets = [*bettor.bet(forecast)]
        self.kept.append(Kept(forecast, bets, left_out=self.came < self.least))

    def end(self, number: int, label: int | None) -> None:
        """Add a label, or expire the observation."""
        one = self.kept[number]
        self.came += label is not None
        if one.left_out or one.label is not None or one.expired:
            return
        one.label, one.expired = label, label is None
        if label is not None:
            self.learned.append((one.forecast, label))

    def settled(self) -> list[Kept]:
        """Return the observations before the first that waits."""
        kept = self.in_play()
        waits = [at for at, one in enumerate(kept) if one.label is None and not one.expired]
        return kept[: waits[0] if waits else None]

    def in_play(self) -> list[Kept]:
        """Return the settled observations that had a bet."""
        return [one for one in self.kept if not one.left_out]

    def evidence(self) -> tuple[Evidence, ...]:
        """Return the evidence of each test."""
        settled = self.settled()
        skipped = sum(one.expired for one in settled)
        labelled = [(self.kept.index(one), one) for one in settled if not one.expired]
        found: list[Evidence] = []
        about = "all odds are within 1.5 times"
        for suffix, pays, right in (
            ("", Kept.factor, "all probabilities are right"),
            ("-tolerance", Kept.tolerant, about),
        ):
            since = Martingale(f"since-start{suffix}", alpha=OPTIONS["alpha"], hypothesis=right)
            change = EDetector(f"change{suffix}", **DETECTOR, hypothesis=right)
            for at, one in labelled:
                since.update([pays(one, one.bets[0])], [7 * at])
                change.update([pays(one, one.bets[1])], [7 * at])
            found += [since.evidence(skipped), change.evidence(skipped)]
        return tuple(found)


class Move(NamedTuple):
    """A step of a random sequence."""

    kind: int
    number: int
    forecast: float
    label: int


def moves(life: list[tuple[int, float]]) -> list[Move]:
    """Return the observation of each step; numbers have gaps."""
    made, count = [], 0
    for kind, what in life:
        if kind == PREDICTS:
            made.append(Move(PREDICTS, count, what, 0))
            count += 1
        elif count:
            number = max(count - 1 - int(what), 0)
            made.append(Move(kind, number, 0.0, int(what) % 2))
    return made


def steps(made: list[Move]) -> EProcessSteps:
    """Return steps as columns."""
    kinds, numbers = (np.array([one[column] for one in made], np.int64) for column in (0, 1))
    values = np.array([[one.label if one.kind == LEARNS else one.forecast] for one in made], float)
    values = values.reshape(len(made), 1)
    return EProcessSteps(kinds.astype(np.uint8), 3 * numbers, 7 * numbers, values)


def opened(oracle: Oracle, made: list[Move]) -> list[tuple[int, str, int]]:
    """Run steps by the oracle: the step, test and number of each incident that opens."""
    found = []
    for at, one in enumerate(made):
        before = [each.incidents for each in oracle.evidence()]
        if one.kind == PREDICTS:
            oracle.predict(one.forecast)
        else:
            oracle.end(one.number, one.label if one.kind == LEARNS else None)
        for each, was in zip(oracle.evidence(), before, strict=True):
            found += [(at, each.name, number) for number in range(was + 1, each.incidents + 1)]
    return found


@given(life=LIFE, sizes=st.lists(st.integers(1, 30)), least=st.sampled_from([0, 0, 1, 4]))
def test_oracle(life: list[tuple[int, float]], sizes: list[int], least: int) -> None:
    """In batches of any size: the evidence, and where it reached the threshold, to the last bit."""
    bets, oracle, made = (
        CalibrationEProcess(**OPTIONS, grace_period=least),
        Oracle(least),
        moves(life),
    )
    for size in [*sizes, len(made)]:
        batch, made = made[:size], made[size:]
        if batch:
            expected = opened(oracle, batch)
            found = [(one.step, one.test, one.incident.number) for one in bets.run(steps(batch))]
            assert sorted(found) == sorted(expected)
        assert bets.evidence() == oracle.evidence()
        waiting = oracle.in_play()[len(oracle.settled()) :]
        assert len(bets.waiting) == len(waiting)


@given(life=LIFE, size=st.integers(1, 20), at=st.integers(0, 60), least=st.sampled_from([0, 2]))
def test_saved(life: list[tuple[int, float]], size: int, at: int, least: int) -> None:
    """The state is that of single steps; bets that load it go on alike."""
    made = moves(life)
    single, batched, other = (CalibrationEProcess(**OPTIONS, grace_period=least) for _ in range(3))
    for one in made[:at]:
        single.run(steps([one]))
    for start in range(0, len(made[:at]), size):
        batched.run(steps(made[:at][start : start + size]))
    assert batched.state() == single.state()
    other.load(single.state())
    for one in made[at:]:
        assert other.run(steps([one])) == single.run(steps([one]))
    assert other.state() == single.state()


def test_an_empty_e_process_has_no_state() -> None:
    """An empty e-process has no state, and can load that."""
    bets = CalibrationEProcess()
    assert bets.state() is None
    bets.load(None)
    assert [one.log_wealth for one in bets.evidence()] == [0.0] * 4


@pytest.mark.parametrize(
    ("move", "error"),
    [
        (Move(PREDICTS, 1, 1.5, 0), ScoreError),
        (Move(PREDICTS, 1, math.nan, 0), ScoreError),
        (Move(PREDICTS, 1, -0.1, 0), ScoreError),
        (Move(LEARNS, 0, 0.5, 2), LabelError),
    ],
)
def test_what_is_refused(move: Move, error: type[Exception]) -> None:
    """A batch with one bad row is refused by row, and nothing of it is done."""
    bets = CalibrationEProcess()
    with pytest.raises(error, match="row 1"):
        bets.run(steps([Move(PREDICTS, 0, 0.5, 0), move]))
    assert bets.state() is None


def test_an_impossible_label_triggers_all_tests() -> None:
    """A label that was forecast with probability 0 triggers all tests, whatever came before."""
    bets = CalibrationEProcess()
    for number in range(100):
        bets.predict(number, 0.25)
        bets.learn(number, int(number % 4 == 0))
    bets.predict(100, 0.0, time=5)
    rung = bets.learn(100, 1)
    assert [(one.test, one.incident) for one in rung] == [
        (name, (1, 5, 5, math.inf))
        for name in ("since-start", "change", "since-start-tolerance", "change-tolerance")
    ]
    bets.predict(101, 0.5)
    bets.learn(101, 0)
    since, change, *_ = bets.evidence()
    assert (since.log_wealth, since.active) == (math.inf, True)
    assert math.isfinite(change.log_wealth)


# Tolerance and views

PROBABILITIES = st.sampled_from([2.0**-53, 1e-9, 0.005, 0.1, 0.3, 0.5, 0.77, 0.999, 1 - 2.0**-53])


@given(
    forecast=PROBABILITIES,
    bet=PROBABILITIES,
    tolerance=st.sampled_from([1.0, 1.05, 1.25, 2.0, 10.0]),
    share=st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1)]),
)
def test_no_bet_wins_on_average(
    forecast: float, bet: float, tolerance: float, share: Fraction
) -> None:
    """By exact fractions the mean factor is at most 1 for each probability that is tolerated."""
    p, q, t = Fraction(forecast), Fraction(bet), Fraction(tolerance)
    lowest, highest = (odds / (1 + odds) for odds in (p / (1 - p) / t, p / (1 - p) * t))
    truth = lowest + share * (highest - lowest)
    if lowest <= q <= highest:
        assert nearest(bet, forecast, tolerance) == pytest.approx(bet, rel=1e-15)
        return
    limit = min(max(q, lowest), highest)
    mean = truth * q / limit + (1 - truth) * (1 - q) / (1 - limit)
    assert mean <= 1
    assert (mean == 1) == (truth == limit)
    assert nearest(bet, forecast, tolerance) == pytest.approx(float(limit), rel=1e-12)


@given(life=LIFE)
def test_a_tolerance_of_1_changes_nothing(life: list[tuple[int, float]]) -> None:
    """With a tolerance of 1 both pairs of tests have the same evidence, to the last bit."""
    bets = CalibrationEProcess(**OPTIONS | {"tolerance": 1.0})
    bets.run(steps(moves(life)))
    since, change, since_tolerant, change_tolerant = bets.evidence()
    assert since_tolerant == since._replace(name="since-start-tolerance")
    assert change_tolerant == change._replace(name="change-tolerance")


@pytest.mark.parametrize("tolerance", [0.99, 0.0, -1.0, math.inf, math.nan])
def test_no_tolerance(tolerance: float) -> None:
    """A tolerance is a finite number of at least 1."""
    with pytest.raises(ParameterError, match="tolerance="):
        CalibrationEProcess(tolerance=tolerance)


@given(life=LIFE, sizes=st.lists(st.integers(1, 30)), least=st.sampled_from([0, 1]))
def test_views_are_tested_by_themselves(
    life: list[tuple[int, float]], sizes: list[int], least: int
) -> None:
    """Two views have the evidence, the incidents and the state of two e-processes."""
    names = ("raw", "calibrated")
    both = CalibrationEProcess(names, **OPTIONS, grace_period=least)
    singles = [CalibrationEProcess([one], **OPTIONS, grace_period=least) for one in names]
    made = moves(life)
    for size in [*sizes, len(made)]:
        batch, made = made[:size], made[size:]
        if not batch:
            continue
        raw = steps(batch)
        # The other view forecasts the opposite, and its label is the opposite.
        columns = [raw.values, 1.0 - raw.values]
        found = both.run(raw._replace(values=np.hstack(columns)))
        expected = [
            each
            for one, values in zip(singles, columns, strict=True)
            for each in one.run(raw._replace(values=values))
        ]
        assert found == expected
    assert both.evidence() == tuple(one for single in singles for one in single.evidence())
    other = CalibrationEProcess(names, **OPTIONS, grace_period=least)
    other.load(both.state())
    assert other.state() == both.state()


@given(life=LIFE, sizes=st.lists(st.integers(1, 30)))
def test_verdicts_read_what_is_settled(life: list[tuple[int, float]], sizes: list[int]) -> None:
    """Verdicts have the labels of observations in their order, since the last alarm, and skips."""
    bets, oracle = CalibrationEProcess(**OPTIONS), Oracle(0)
    alarms = dict[int, int]()
    made = moves(life)
    opened(oracle, made)
    for size in [*sizes, len(made)]:
        batch, made = made[:size], made[size:]
        if batch:
            found = bets.run(steps(batch))
            alarms |= {one.incident.first: one.shift.since for one in found if one.shift}
    (sequence,) = bets.verdicts
    expected = VerdictSequence("calibrated", bets.tolerance)
    skipped = 0
    for one in oracle.settled():
        time = 7 * oracle.kept.index(one)
        if one.label is None:
            skipped += 1
            continue
        p, label = np.array([one.forecast]), np.array([float(one.label)])
        expected.update(p, label, np.array([time]), np.array([skipped]))
        skipped = 0
        if time in alarms:
            expected.restart(time, alarms[time])
    assert sequence.state() == expected.state()


# What is guaranteed, by simulation


def stream(
    forecasts: Floats, labels: NDArray[np.int64], delays: NDArray[np.int64]
) -> EProcessSteps:
    """Delay each label by some predictions; labels beyond the end are left out."""
    n = len(forecasts)
    due = np.arange(n) + delays
    labelled = np.flatnonzero(due < n)
    kinds = np.repeat(np.array([PREDICTS, LEARNS], np.uint8), (n, len(labelled)))
    numbers = np.concatenate((np.arange(n), labelled))
    at = np.concatenate((np.arange(n), due[labelled]))
    order = np.lexsort((numbers, kinds, at))
    numbers = numbers[order]
    kinds = kinds[order]
    values = np.where(kinds == PREDICTS, forecasts[numbers], labels[numbers])
    return EProcessSteps(kinds, numbers, numbers, values[:, np.newaxis])


def wealth(made: EProcessSteps, *, alpha: float = 0.05) -> CalibrationEProcess:
    """Return the bet of each forecast."""
    bets = CalibrationEProcess(alpha=alpha, average_run_length=10_000)
    bets.run(made)
    return bets


def arrival_order(made: EProcessSteps) -> float:
    """Multiply factors as labels arrive, which is wrong: the largest log-wealth."""
    bettor = core.GridBets()
    known: dict[int, tuple[float, float]] = {}
    wealth = largest = 0.0
    steps = (made.kinds.tolist(), made.numbers.tolist(), made.values[:, 0].tolist())
    for kind, number, value in zip(*steps, strict=True):
        if kind == PREDICTS:
            known[number] = value, bettor.bet(value)[0]
            continue
        p, q = known[number]
        wealth += math.log(factor(q, p, int(value)))
        largest = max(largest, wealth)
        bettor.learn(p, value == 1.0)
    return largest


def calibrated(rng: np.random.Generator, n: int) -> tuple[Floats, NDArray[np.int64]]:
    """Draw calibrated forecasts and their labels."""
    forecasts = rng.uniform(0.02, 0.98, n)
    return forecasts, (rng.random(n) < forecasts).astype(np.int64)


def delays_of(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return delays: none for positives, and 1,000 for negatives."""
    return np.where(labels == 1, 0, 1000)


def crossings(seed: int, runs: int, n: int, alpha: float) -> tuple[int, int]:
    """Count runs with an active test: in the order of observations, and in that of labels."""
    rng = np.random.default_rng(seed)
    right = wrong = 0
    for _ in range(runs):
        forecasts, labels = calibrated(rng, n)
        made = stream(forecasts, labels, delays_of(labels))
        right += wealth(made, alpha=alpha).evidence()[0].active
        wrong += arrival_order(made) >= -math.log(alpha)
    return right, wrong


def most(runs: int, alpha: float) -> float:
    """Return the largest number of false alarms, but for a chance of about one in a million."""
    return runs * alpha + 4.9 * math.sqrt(runs * alpha * (1.0 - alpha))


@pytest.mark.simulation
def test_delays_that_depend_on_the_label() -> None:
    """In observation order at most a share alpha is active, in order of arrival all runs are."""
    runs, alpha = 40, 0.05
    right, wrong = crossings(3, runs, 3_000, alpha)
    assert right <= most(runs, alpha)
    assert wrong == runs


@pytest.mark.simulation
@pytest.mark.long
def test_delays_that_depend_on_the_label_at_length() -> None:
    """The same of many more, and longer, runs."""
    runs, alpha = 600, 0.05
    right, wrong = crossings(4, runs, 6_000, alpha)
    assert right <= most(runs, alpha)
    assert wrong == runs


@pytest.mark.simulation
def test_average_run_length() -> None:
    """Mean distances between alarms are at least the average run length."""
    rng = np.random.default_rng(5)
    n, distance = 60_000, 100
    forecasts, labels = calibrated(rng, n)
    bets = CalibrationEProcess(average_run_length=distance, cooldown=1)
    bets.run(stream(forecasts, labels, np.zeros(n, np.int64)))
    crossings = max(bets.evidence()[1].incidents, 1)  # adjacent crossings are one incident
    assert n / crossings > distance * (1.0 - 4.0 / math.sqrt(crossings))


def off(rng: np.random.Generator, n: int, odds: float) -> tuple[Floats, NDArray[np.int64]]:
    """Draw forecasts and labels, whose odds are those of the forecasts times a factor."""
    forecasts = rng.uniform(0.02, 0.98, n)
    truth = odds * forecasts / (1.0 - forecasts)
    return forecasts, (rng.random(n) < truth / (1.0 + truth)).astype(np.int64)


def tolerant_crossings(seed: int, runs: int, n: int, alpha: float) -> int:
    """Count runs in which the test since the start is active, at odds off by the tolerance."""
    rng, crossed = np.random.default_rng(seed), 0
    for run in range(runs):
        forecasts, labels = off(rng, n, 1.25 if run % 2 else 0.8)
        delays = delays_of(labels if run % 4 < 2 else 1 - labels)
        bets = CalibrationEProcess(alpha=alpha, tolerance=1.25)
        bets.run(stream(forecasts, labels, delays))
        crossed += bets.evidence()[2].active
    return crossed


@pytest.mark.simulation
def test_odds_off_by_the_tolerance() -> None:
    """Odds off by exactly the tolerance trigger at most a share alpha, whatever delays do."""
    runs, alpha = 60, 0.05
    assert tolerant_crossings(8, runs, 3_000, alpha) <= most(runs, alpha)


@pytest.mark.simulation
@pytest.mark.long
def test_odds_off_by_the_tolerance_at_length() -> None:
    """The same of many more, and longer, runs."""
    runs, alpha = 600, 0.05
    assert tolerant_crossings(9, runs, 6_000, alpha) <= most(runs, alpha)


@pytest.mark.simulation
@pytest.mark.parametrize("late", [0, 1_000])
def test_average_run_length_with_a_tolerance(late: int) -> None:
    """Odds off by exactly the tolerance: distances are as promised, restarted again and again."""
    rng = np.random.default_rng(10)
    n, distance = 120_000, 200
    forecasts, labels = off(rng, n, 1.25)
    bets = CalibrationEProcess(tolerance=1.25, average_run_length=distance, cooldown=1)
    found = bets.run(stream(forecasts, labels, np.where(labels == 1, 0, late)))
    crossings = sum(one.test == "change-tolerance" for one in found)
    assert crossings > 10  # armed again after each
    assert n / crossings > distance * (1.0 - 4.0 / math.sqrt(crossings))


def test_good_forecasts_are_quiet_however_long() -> None:
    """Forecasts within their tolerance raise no alarm when the run length is over.

    Nothing is bet on them, so R would grow by 1 with each: it would reach the run length.
    """
    n = 6_000
    labels = np.arange(n) % 4 == 0
    made = stream(np.full(n, 0.25), labels.astype(np.int64), np.zeros(n, np.int64))
    bets = CalibrationEProcess(average_run_length=1_000)
    assert not [one for one in bets.run(made) if one.test == "change-tolerance"]
    assert bets.evidence()[3].log_wealth < math.log(100)


@pytest.mark.simulation
def test_odds_off_by_more_than_the_tolerance_are_found() -> None:
    """Odds off by 1.7 are found with a tolerance of 1.25 within 3,000 observations."""
    rng, delays = np.random.default_rng(11), []
    for _ in range(6):
        forecasts, labels = off(rng, 6_000, 1.7)
        bets = CalibrationEProcess(average_run_length=10_000)
        found = bets.run(stream(forecasts, labels, np.zeros(6_000, np.int64)))
        alarms = [one for one in found if one.test == "change-tolerance"]
        delays.append(alarms[0].incident.first if alarms else math.inf)
        shift = alarms[0].shift
        assert shift is not None
        assert shift.direction == -1
    assert np.median(delays) < 3_000


def drifting(rng: np.random.Generator, n: int, start: int, odds: float) -> EProcessSteps:
    """Draw forecasts that are calibrated up to an observation, from where the odds differ."""
    forecasts = rng.uniform(0.02, 0.98, n)
    truth = np.where(np.arange(n) < start, 1.0, odds) * forecasts / (1.0 - forecasts)
    labels = (rng.random(n) < truth / (1.0 + truth)).astype(np.int64)
    return stream(forecasts, labels, np.zeros(n, np.int64))


def part(made: EProcessSteps, rows: NDArray[np.bool_]) -> EProcessSteps:
    """Return some of the steps."""
    columns: list[Any] = [column[rows] for column in made]
    return EProcessSteps(*columns)


def first_crossing(made: EProcessSteps, start: int, test: int) -> float:
    """Return how many observations after a change a test triggers; infinite if it does not."""
    bets = CalibrationEProcess(alpha=0.01, average_run_length=10_000, cooldown=1)
    bets.run(part(made, made.numbers < start))
    after = part(made, made.numbers >= start)
    rung = [
        one.incident.first for one in bets.run(after) if one.test == ("since-start", "change")[test]
    ]
    return rung[0] - start if rung else math.inf


@pytest.mark.simulation
@pytest.mark.parametrize("start", [0, 10_000])
def test_detection_delay(start: int) -> None:
    """A change of the odds by e^0.5 is found within 1,500 observations, early and late."""
    rng = np.random.default_rng(6)
    delays = [
        first_crossing(drifting(rng, start + 3_000, start, math.exp(0.5)), start, 1)
        for _ in range(8)
    ]
    assert np.median(delays) < 1_500


@pytest.mark.simulation
@pytest.mark.long
def test_late_drift() -> None:
    """After 40,000 good steps the product has lost little, and yet takes thousands to grow.

    The forecast itself has a weight in the bets, and by then nearly all of it.
    """
    rng = np.random.default_rng(7)
    start, lost, since, change = 40_000, [], [], []
    for _ in range(8):
        made = drifting(rng, start + 15_000, start, math.exp(0.5))
        bets = CalibrationEProcess()
        bets.run(part(made, made.numbers < start))
        lost.append(bets.evidence()[0].log_wealth)
        since.append(first_crossing(made, start, 0))
        change.append(first_crossing(made, start, 1))
    assert -3 < np.mean(lost) < 0
    assert np.median(change) < 1_500 < np.median(since)


TURNS = (1_500, 9_000, 9_000)


def turning(seed: int, *odds: float, process: CalibrationEProcess, batch: int = 1_000) -> None:
    """Pass stretches of forecasts whose odds are so many times too high, with their labels."""
    rng = np.random.default_rng([8, seed])
    off = np.repeat(odds, TURNS[: len(odds)])
    n = len(off)
    p = rng.beta(2.0, 5.0, n)
    labels = rng.random(n) < p / (p + (1.0 - p) * off)
    numbers = np.repeat(np.arange(n), 2)
    kinds = np.tile(np.array([PREDICTS, LEARNS], np.uint8), n)
    values = np.column_stack((p, labels)).reshape(-1, 1)
    for at in range(0, 2 * n, batch):
        part = slice(at, at + batch)
        process.run(EProcessSteps(kinds[part], numbers[part], numbers[part], values[part]))


@pytest.mark.simulation
def test_a_test_is_armed_again_when_the_incident_is_over() -> None:
    """A second change triggers it again, at 6 / alpha; before, it is not active any more."""
    found = []
    for odds in ((4.0, 1.0), (4.0, 1.0, 4.0)):
        process = CalibrationEProcess(tolerance=1.5, average_run_length=10_000)
        turning(1, *odds, process=process)
        found.append(process.evidence()[2])
    between, after = found
    assert between.name == "since-start-tolerance"
    assert (between.incidents, between.active, between.status) == (1, False, "triggered")
    assert between.log_threshold == pytest.approx(math.log(600.0))
    assert "since it counts anew" in between.guarantee
    assert (after.incidents, after.active) == (2, True)
    assert after.last is not None
    assert after.last.first >= sum(TURNS[:2])


@pytest.mark.simulation
def test_batches_and_states_do_not_change_when_tests_are_armed() -> None:
    """Tests are armed at the same observation, however rows are batched, and after loading."""
    whole, parts = (CalibrationEProcess(tolerance=1.5, average_run_length=10_000) for _ in range(2))
    turning(1, 4.0, 1.0, 4.0, process=whole, batch=30_000)
    turning(1, 4.0, 1.0, 4.0, process=parts, batch=777)
    assert whole.state() == parts.state()
    again = CalibrationEProcess(tolerance=1.5, average_run_length=10_000)
    again.load(whole.state())
    assert again.evidence() == whole.evidence()


@pytest.mark.simulation
@pytest.mark.parametrize("runs", [100, pytest.param(200, marks=pytest.mark.long)])
def test_false_alarms_after_a_test_was_armed_again(runs: int) -> None:
    """With alpha 0.3 it is triggered once more, while forecasts are right, in 5 % of runs."""
    armed = wrong = 0
    for seed in range(runs):
        process = CalibrationEProcess(tolerance=1.5, average_run_length=10_000, alpha=0.3)
        turning(seed, 4.0, 1.0, process=process)
        for one in (process.evidence()[0], process.evidence()[2]):
            armed += one.log_threshold > math.log(15.0)
            wrong += one.incidents > 1
    assert armed > 1.5 * runs
    assert wrong <= armed * 0.05 + 3.0 * (armed * 0.05 * 0.95) ** 0.5
