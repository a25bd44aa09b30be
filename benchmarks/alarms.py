"""False alarms, and how soon faults are found, on streams with known true probabilities.

`benchmarks.verdicts` runs these streams and writes them into its page. It compares the bets of
`CalibrationEProcess` with those that it had before: two Venn-Abers sets of forecasts rounded to
1/4096, of all labels and of the last 1,000, drawn to the forecast as if 100 labels agreed with it.
"""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from abers import VennAbers
from abers.backends import core
from benchmarks.page import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Generator = np.random.Generator
    Truth = Callable[[Floats, float, Integers], Floats]
    Delays = Callable[[Generator, NDArray[np.bool_]], Integers]

ALPHA, LENGTH, TOLERANCE = 0.01, 1_000_000.0, 1.25
RATES = {0.5: 0.0, 0.05: -3.4, 0.005: -5.75}  # mean log odds by mean forecast
TESTS = ("since-start", "change", "since-start-tolerance", "change-tolerance")
STREAMS, CHUNK = 2_000, 20  # of a setting; that a worker runs at once
FOUND, RARE_FOUND = 60, 30  # streams of a fault
N, RARE_N = 20_000, 60_000
LATE = 2_000

TEXT = """\
## False alarms

{streams:,} streams of {n:,} right forecasts each, with normal log odds of standard deviation
1. The first number is of streams in which `since-start` was ever triggered: by chance at most
{chance:.0f} on average. The second is of alarms of `change` among all {all:,} million observations,
at most {alarms:.0f} on average. The third and fourth are those of both tests with a tolerance.
Labels come at once; late by up to {late:,} predictions, in any order; or 1,000 late if they are 1,
and at once if they are 0.

{false}
Odds that are off by exactly the tolerance, where the tests with a tolerance may raise as many:

{border}
### How soon faults are found

The tables have the median number of observations until `since-start` and until the alarm, before
-> now. A > says that fewer than half of the streams have it by the end. Labels are up to 200
predictions late. A fault that begins after a quarter of a stream counts from there.

{power}
**What was lost.** A fault that straddles cells may take longer to learn. The earlier bets on rare
classes leaned upwards. They found sooner that more positives came than forecast, and found later,
or not at all, that fewer came. If positives come 1,000 late, the first labels are nearly all 0, and
teach both bets the opposite of the truth. The present bets believe it sooner and lose more, so
`since-start` needs longer to win it back: at a mean forecast of 0.5 over {n:,} observations in half
of the streams. The test for a change forgets it.

{lost}
Of the medians of both tables {faster} are lower now, {slower} are higher, and {same} are undecided.
The constants of the bets are the best of 19 variants that were tried on twelve settings like these,
so these figures flatter them.
"""


class Setting(NamedTuple):
    """A kind of stream: its faults, and how late its labels are."""

    name: str
    rate: float
    truth: Truth
    delays: Delays
    labels: int = N
    begin: int = 0  # of the fault
    streams: int = STREAMS


class Stream(NamedTuple):
    """Forecasts, labels, and the kinds and numbers of steps."""

    p: Floats
    y: NDArray[np.bool_]
    kinds: NDArray[np.uint8]
    numbers: Integers


# Streams


def _at_once(_: Generator, y: NDArray[np.bool_]) -> Integers:
    return np.zeros(len(y), np.int64)


def _late(most: int, rng: Generator, y: NDArray[np.bool_]) -> Integers:
    return rng.integers(0, most, len(y))


def _late_if_1(_: Generator, y: NDArray[np.bool_]) -> Integers:
    return np.where(y, 1_000, 0)


DELAYS: dict[str, Delays] = {
    "at once": _at_once,
    "up to 2,000 late": partial(_late, LATE),
    "1,000 late if 1": _late_if_1,
}


def _right(x: Floats, _mu: float, _at: Integers) -> Floats:
    return x


def _odds(factor: float, x: Floats, _mu: float, _at: Integers) -> Floats:
    return x + math.log(factor)


def _slope(x: Floats, mu: float, _at: Integers) -> Floats:
    return mu + 0.7 * (x - mu)


def _half(sign: float, factor: float, x: Floats, mu: float, _at: Integers) -> Floats:
    return np.where(sign * (x - mu) > 0.0, x + math.log(factor), x)


def _bump(low: float, high: float, by: float, x: Floats, mu: float, _at: Integers) -> Floats:
    return np.where((x > mu + low) & (x < mu + high), x + by, x)


def _abrupt(x: Floats, _mu: float, at: Integers) -> Floats:
    return np.where(at >= len(at) // 4, x - math.log(2.0), x)


def _gradual(x: Floats, _mu: float, at: Integers) -> Floats:
    begin = len(at) // 4
    return x + np.clip((at - begin) / (2.0 * begin), 0.0, 1.0) * math.log(2.0)


FAULTS: dict[str, Truth] = {
    "odds times 1.5": partial(_odds, 1.5),
    "slope 0.7": _slope,
    "upper half times 2": partial(_half, 1.0, 2.0),
    "a bump, times e on 0.5 log odds": partial(_bump, 0.5, 1.0, 1.0),
    "abrupt, by 2": _abrupt,
    "gradual, times 2": _gradual,
}
LOST: dict[str, Truth] = {
    "a dip, by e on 0.8 log odds": partial(_bump, -0.65, 0.15, -1.0),
    "lower half by 2": partial(_half, -1.0, 0.5),
    "odds times 2": partial(_odds, 2.0),
}


def false_settings() -> list[Setting]:
    """Return streams of right forecasts."""
    return [
        Setting(f"right, {name}, {rate}", rate, _right, delays)
        for rate in RATES
        for name, delays in DELAYS.items()
    ]


def border_settings() -> list[Setting]:
    """Return streams with odds that are off by the tolerance."""
    return [
        Setting(f"off, {rate}", rate, partial(_odds, TOLERANCE), DELAYS["up to 2,000 late"])
        for rate in RATES
    ]


def _fault(name: str, rate: float, truth: Truth, late: str = "") -> Setting:
    n, streams = (RARE_N, RARE_FOUND) if rate == min(RATES) else (N, FOUND)
    begin = n // 4 if truth in {_abrupt, _gradual} else 0
    delays = DELAYS[late] if late else partial(_late, 200)
    label = f"{name}, {late}" if late else name
    return Setting(f"{label}, {rate}", rate, truth, delays, n, begin, streams)


def fault_settings() -> list[Setting]:
    """Return the faults, each with its streams."""
    return [_fault(name, rate, truth) for name, truth in FAULTS.items() for rate in RATES]


def lost_settings() -> list[Setting]:
    """Return streams with faults that are harder to find now."""
    dip, lower, twice = LOST.items()
    return [
        *(_fault(*dip[:1], rate, dip[1]) for rate in RATES),
        *(_fault(*lower[:1], rate, lower[1]) for rate in RATES),
        *(_fault(*twice[:1], rate, twice[1], "1,000 late if 1") for rate in RATES),
    ]


def drawn(setting: Setting, seed: list[int]) -> Stream:
    """Draw a stream; labels that would come after its end are left out."""
    rng, n = np.random.default_rng(seed), setting.labels
    mu, at = RATES[setting.rate], np.arange(n)
    x = rng.normal(mu, 1.0, n)
    y = rng.random(n) < special.expit(setting.truth(x, mu, at))
    due = at + setting.delays(rng, y)
    came = np.flatnonzero(due < n)
    moments = np.concatenate((2 * at, 2 * due[came] + 1))
    order = np.argsort(moments, kind="stable")
    kinds = np.repeat(np.array([0, 1], np.uint8), (n, len(came)))[order]
    return Stream(special.expit(x), y, kinds, np.concatenate((at, came))[order])


# Bets


def factors_now(stream: Stream) -> Floats:
    """Return four factors of each observation, in the order of the tests."""
    p, y, kinds, numbers = stream
    bets, labels = core.GridBets(), y.tolist()
    forecasts, made = p.tolist(), np.empty((len(p), 2))
    for kind, number in zip(kinds.tolist(), numbers.tolist(), strict=True):
        if kind:
            bets.learn(forecasts[number], labels[number])
        else:
            made[number] = bets.bet(forecasts[number])
    return _factors(stream, [*made.T])


def factors_before(stream: Stream) -> Floats:
    """Return those of the earlier bets."""
    p, y, kinds, numbers = stream
    predicts = kinds == 0
    rounded, labels = np.rint(p * 4096) / 4096, y[numbers].astype(np.int64)
    came = np.cumsum(~predicts)[predicts]
    bets = []
    for window in (None, 1_000):
        p0, p1 = VennAbers(window=window).run(kinds, rounded[numbers], labels)
        merged = np.clip((p1 / (1.0 - p0 + p1))[predicts], 2.0**-53, 1.0 - 2.0**-53)
        known = np.minimum(came, window or came)
        bets.append((known * merged + 100.0 * p) / (known + 100.0))
    return _factors(stream, bets)


def _factors(stream: Stream, bets: list[Floats]) -> Floats:
    """Return what two bets win on each observation before the first that waits for its label."""
    p, y, kinds, numbers = stream
    lower = p / (p + (1.0 - p) * TOLERANCE)
    upper = p * TOLERANCE / (p * TOLERANCE + 1.0 - p)
    against = [p, p, *(np.clip(q, lower, upper) for q in bets)]
    pays = [
        np.where(y, q / one, (1.0 - q) / (1.0 - one))
        for q, one in zip(bets * 2, against, strict=True)
    ]
    waits = np.ones(len(p), bool)
    waits[numbers[kinds != 0]] = False
    settled = int(np.argmax(waits)) if waits.any() else len(p)
    return np.column_stack(pays)[:settled]


def crossings(factors: Floats) -> list[list[int]]:
    """Return the observations at which each test was triggered; an alarm does not last."""
    numbers, found = np.arange(len(factors)), []
    for name, column in zip(TESTS, np.ascontiguousarray(factors.T), strict=True):
        kind = core.SequentialTest
        since = name.startswith("since")
        test = kind.since_start(ALPHA) if since else kind.of_change(LENGTH, 1.0, 0)
        found.append([incident[1] for _, incident in test.update(column, numbers)])
    return found


BETS = {"before": factors_before, "now": factors_now}
KINDS = {
    "false": (false_settings, ("now",)),
    "border": (border_settings, ("now",)),
    "power": (fault_settings, ("before", "now")),
    "lost": (lost_settings, ("before", "now")),
}


def run(task: tuple[str, int, str, range]) -> list[list[list[int]]]:
    """Return the crossings in streams of a setting."""
    kind, index, bets, seeds = task
    setting = KINDS[kind][0]()[index]
    salt = [*KINDS].index(kind)
    return [crossings(BETS[bets](drawn(setting, [44, salt, index, seed]))) for seed in seeds]


class Answer(NamedTuple):
    """What streams of a setting showed, by test."""

    kind: str
    name: str
    bets: str
    streams: int
    triggered: list[int]  # streams in which the test was ever
    times: list[int]  # that it was in all of them
    medians: list[float | None]  # observations until the first, after the fault began


def answered(setting: Setting, kind: str, bets: str, found: list[list[list[int]]]) -> Answer:
    """Sum up the crossings of all streams."""
    triggered, times, medians = [], [], list[float | None]()
    for test in range(len(TESTS)):
        column = [one[test] for one in found]
        after = [max(one[0] - setting.begin, 0) if one else math.inf for one in column]
        triggered.append(sum(map(bool, column)))
        times.append(sum(map(len, column)))
        median = sorted(after)[len(after) // 2]
        medians.append(median if median < math.inf else None)
    return Answer(kind, setting.name, bets, len(found), triggered, times, medians)


def answers(file: Path, pool: Executor, streams: int | None = None) -> list[Answer]:
    """Return all answers: those that are kept, and those that are missing, which are then kept."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = {one[:3]: one for one in (Answer(*json.loads(line)) for line in lines)}
    with file.open("a", encoding="utf-8") as kept:
        for kind, (settings, both) in KINDS.items():
            for index, setting in enumerate(settings()):
                for bets in both:
                    if (kind, setting.name, bets) in found:
                        continue
                    n = min(setting.streams, streams or setting.streams)
                    parts = [range(at, min(at + CHUNK, n)) for at in range(0, n, CHUNK)]
                    tasks = [(kind, index, bets, part) for part in parts]
                    ran = [one for part in pool.map(run, tasks) for one in part]
                    one = answered(setting, kind, bets, ran)
                    found[one[:3]] = one
                    kept.write(f"{json.dumps(one)}\n")
                    kept.flush()
    return [*found.values()]


# The page


def section(found: Iterable[Answer]) -> str:
    """Return the section of the page."""
    known = {(one.kind, one.name, one.bets): one for one in found}
    right = [
        [
            f"{rate:g}",
            *(_counts(known["false", f"right, {name}, {rate}", "now"]) for name in DELAYS),
        ]
        for rate in RATES
    ]
    border = [
        [f"{rate:g}", one.triggered[2], one.times[3]]
        for rate, one in ((rate, known["border", f"off, {rate}", "now"]) for rate in RATES)
    ]
    signs = [
        _sign(*(known[kind, setting.name, bets].medians[test] for bets in BETS))
        for kind, settings in (("power", fault_settings()), ("lost", lost_settings()))
        for setting in settings
        for test in (0, 3)
    ]
    streams = known["false", false_settings()[0].name, "now"].streams
    return TEXT.format(
        streams=streams,
        n=N,
        late=LATE,
        chance=ALPHA * streams,
        all=streams * N // 10**6,
        alarms=streams * N / LENGTH,
        false=table(["mean forecast", *DELAYS], right),
        border=table(["mean forecast", TESTS[2], TESTS[3]], border),
        power=_sooner(known, "power", fault_settings()),
        lost=_sooner(known, "lost", lost_settings()),
        faster=signs.count(-1),
        slower=signs.count(1),
        same=signs.count(0),
    )


def _counts(one: Answer) -> str:
    since, change, tolerant, alarms = (
        one.triggered[0],
        one.times[1],
        one.triggered[2],
        one.times[3],
    )
    return f"{since} / {change} / {tolerant} / {alarms}"


def _sooner(
    known: dict[tuple[str, str, str], Answer], kind: str, settings: Iterable[Setting]
) -> str:
    rows: dict[str, list[str]] = {}
    for setting in settings:
        name = setting.name.removesuffix(f", {setting.rate}")
        before, now = (known[kind, setting.name, bets].medians for bets in BETS)
        cells = [f"{_shown(before[test])} -> {_shown(now[test])}" for test in (0, 3)]
        rows.setdefault(name, [name]).append(" / ".join(cells))
    heads = [f"mean forecast {rate:g}: since-start / alarm" for rate in RATES]
    return table(["fault", *heads], [*rows.values()])


def _sign(before: float | None, now: float | None) -> int:
    """Return 1 if a fault is found later now, -1 if sooner, 0 if that is not known."""
    first, second = (math.inf if one is None else one for one in (before, now))
    return (second > first) - (second < first)


def _shown(median: float | None) -> str:
    return ">" if median is None else f"{median:,.0f}"
