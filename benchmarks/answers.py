"""Answers about now on streams with known true probabilities: false ones, and how soon.

`benchmarks.verdicts` runs these streams and writes them into its page. Labels feed back: the true
probability of a label depends on the labels that came before its forecast.
"""

from __future__ import annotations

import json
import math
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.backends import core
from abers.monitoring import VerdictSequence
from abers.monitoring.answers.answer import NO, YES, state_of
from abers.monitoring.answers.pays import saved_of
from abers.monitoring.answers.rows import view_of
from abers.monitoring.answers.sums import groups_of, losses_of
from benchmarks.page import table
from benchmarks.verdict_streams import powerful

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Executor
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.verdict_streams import Case

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["Answer", "answers", "section"]

TOLERANCE, ALPHA, WARM = 1.25, 0.05, 300
STREAMS, CHUNK = 2_000, 50  # of a setting; that a worker runs at once
FOUND = 200  # streams of a fault
RATES = {0.5: (0.0, 12_000), 0.05: (-3.4, 40_000), 0.005: (-5.75, 250_000)}  # log odds, labels
READS = 50  # of a stream, at even distances
LATE = 2_000
DELAYS = ("at once", "up to 2,000 late", "1,000 late if 1")
ODDS = (1.0, TOLERANCE)

TEXT = """\
## Answers about now

The three answers of `TaskMonitor.answers` are about the latest labels: those since the last mark
but one, a mark standing at each full 500 of the sum of p (1 - p). **The guarantee is for each
window, whenever it is read**: the probability that any range of a view ever misses the
truth while the window lasts is at most 5 %. It is not for all windows together, as that of verdicts
and alarms is.

Up to {streams:,} streams a setting, each read {reads} times while labels come, so also in the
middle of a window. Forecasts have normal log odds with standard deviation 1. Labels feed back: the
log odds of forecast and truth rise with what the last labels that came before it were above their
forecasts. A window is counted as false if at any reading a range missed the truth: with right
forecasts a row leaned, with odds off by 1.25 times a row did not have the true gap in its range.
*Called wrong* is the share of windows that were ever called too high or too low in any row. *Called
right* is that of windows with the answer Yes at any time, in which odds are off by exactly the
tolerance. *Saving missed* is the share of streams in which the range of the loss saved ever missed
the mean expected saving; what is served is off by a random factor of odds there.

{false}
Each share may be {most:.1%} by chance (5 % and three standard errors of 2,000 windows); where there
are fewer, more.

### How soon answers are found

The streams of the first table of this page, {found} each. *Verdict* is the median number of labels
until the verdict is right, *answer* until the answer is: Yes where forecasts are right, else No or
Partly. *Stays* is the share of later readings at which it still was, up to twice as many labels.

{power}
### What calibration saved at least

Let the raw forecast of label i give the probabilities r(k) to what can come, and the calibrated one
s(k). Both are known before the label. So the saving d = log(s(k) / r(k)) takes known values; m is
the smallest, M the largest. With C = 6 nats X = min(d, m + C) lies in [m, m + C], a range that is
known before the label and not wider than C, and X <= d. The confidence sequence for such outcomes
bounds the sum of X minus that of E[X | past] by b(V), at all times at once, with a probability of
2.5 %; V is the sum of squares of X - g, g being 0 moved into the range. So

    sum of E[d | past] >= sum of E[X | past] >= sum of X - b(V),

and the upper end follows from Y = max(d, M - C) >= d. As X <= d <= Y, the range always contains the
mean saving that is shown, whose losses are not clipped. Divided by the mean raw loss that came,
both ends are shares. A raw forecast of 0 or 1 has no M, so there is no upper end then.

### What now cannot show

Right forecasts are called right only near the end of a window, where it has almost 1,000 units: a
half then has 500, and its range is about as wide as the tolerance. With rare events the halves may
never get there; the answer then stays undecided, and verdicts decide.

An answer about now forgets: a fault of the past is gone after 1,000 units, and what takes more
labels than a window has stays undecided. Verdicts count all labels of their block.

"""


class Setting(NamedTuple):
    """A kind of stream of right forecasts, or of odds off by the tolerance."""

    rate: float
    delay: str
    odds: float


class Answer(NamedTuple):
    """What the streams of a setting showed."""

    name: str
    values: list[float]


def settings() -> list[Setting]:
    """Return all settings."""
    return [Setting(*one) for one in product(RATES, DELAYS, ODDS)]


class _Streams(NamedTuple):
    """Streams side by side, a row each: forecasts, truths, labels, and when these come."""

    raw: Floats
    served: Floats
    truth: Floats
    labels: Floats
    arrivals: Integers


def drawn(setting: Setting, seed: list[int], streams: int) -> _Streams:
    """Draw streams with labels that feed back into the forecasts behind them."""
    rng = np.random.default_rng(seed)
    mean, n = RATES[setting.rate]
    n = n + WARM
    noise = rng.normal(mean, 1.0, (n, streams))
    uniform = rng.random((n, streams))
    late = rng.integers(0, LATE + 1, (n, streams)) if setting.delay == DELAYS[1] else None
    p, labels = np.empty((n, streams)), np.empty((n, streams))
    arrivals = np.empty((n, streams), np.int64)
    surplus = np.zeros((n + LATE + 2, streams))  # of labels above forecasts, by arrival
    known, columns = np.zeros(streams), np.arange(streams)
    spread = math.sqrt(setting.rate * 100.0)
    for k in range(n):
        known = 0.99 * known + surplus[k]
        p[k] = 1.0 / (1.0 + np.exp(-noise[k] - 0.3 * np.clip(known / spread, -2.0, 2.0)))
        labels[k] = uniform[k] < p[k]
        if late is not None:
            arrivals[k] = k + 1 + late[k]
        elif setting.delay == DELAYS[2]:
            arrivals[k] = k + 1 + 1_000 * labels[k].astype(np.int64)
        else:
            arrivals[k] = k + 1
        np.add.at(surplus, (arrivals[k], columns), labels[k] - p[k])
    odds = p / (1.0 - p) * setting.odds
    factor = np.exp(rng.normal(0.0, 0.3, (n, streams)))
    served = odds * factor / (1.0 + odds * factor)
    raw = odds / (1.0 + odds)
    return _Streams(raw.T.copy(), served.T.copy(), p.T.copy(), labels.T.copy(), arrivals.T.copy())


def run(task: tuple[Setting, int, int]) -> list[list[int]]:
    """Return of each stream windows, false ones, called wrong, called right; savings missed."""
    setting, index, chunk = task
    streams = drawn(setting, [7, index, chunk], CHUNK)
    return [_read(*rows) for rows in zip(*streams, strict=True)]


def _read(
    raw: Floats, served: Floats, truth: Floats, labels: Floats, arrivals: Integers
) -> list[int]:
    """Read a stream while its labels come."""
    sums, numbers = core.AnswerSums(TOLERANCE, 1), np.arange(len(raw))
    sums.skip(raw[:WARM], raw[:WARM])
    settled = np.maximum.accumulate(arrivals)  # when a row and all before it have labels
    gains = _expected(raw, served, truth)
    at, windows = WARM, dict[int, list[bool]]()
    missed, pays = 0, core.AnswerSums(TOLERANCE, 1)
    pays.skip(raw[:WARM], served[:WARM])
    for time in np.linspace(WARM, settled[-1], READS + 1)[1:]:
        end = int(np.searchsorted(settled, time, side="right"))
        if end <= at:
            continue
        part = slice(at, end)
        sums.add(raw[part], raw[part], labels[part], numbers[part], numbers[part])
        pays.add(raw[part], served[part], labels[part], numbers[part], numbers[part])
        at = end
        now = sums.now()
        first, last = now[0][:2]
        found = windows.setdefault(first, [False, False, False])
        rows = slice(first, last + 1)
        for k, one in enumerate(_wrong(now, raw[rows], truth[rows])):
            found[k] |= one
        saved = saved_of(losses_of([pays.whole()[3]]), end - WARM)
        mean = gains[WARM:end].mean()
        missed |= int(not (saved.nats_low or 0.0) <= mean <= (saved.nats_high or 0.0))
    false, wrong, right = (sum(one) for one in zip(*windows.values(), strict=True))
    return [len(windows), false, wrong, right, missed]


def _wrong(now: tuple[Any, ...], p: Floats, truth: Floats) -> tuple[bool, bool, bool]:
    """Return whether a range misses the truth, a row is called wrong, and the view right."""
    groups = groups_of([now[2][0][0]])
    view = view_of(groups)
    cut = groups.cut or 0.0
    inside = {"all": p >= 0.0, "lower": p < cut, "upper": p >= cut}
    ends = [*groups.first[1:], 10]
    for a, b in zip(groups.first, ends, strict=True):
        inside[f"tenth-{a}"] = (p >= a / 10) & ((p < b / 10) | (b == 10))  # noqa: PLR2004 - tenths
    false = False
    for row in view.rows:
        gap = 100.0 * (truth - p)[inside[row.key]].mean()
        false |= not (row.low or 0.0) - 1e-9 <= gap <= (row.high or 0.0) + 1e-9
    wrong = any(row.status.startswith("too") for row in view.rows)
    return false, wrong, state_of(view)[0] == YES


def _expected(raw: Floats, served: Floats, truth: Floats) -> Floats:
    """Return what each label is expected to save."""
    one, zero = np.log(served / raw), np.log((1.0 - served) / (1.0 - raw))
    return truth * one + (1.0 - truth) * zero


# Power


@cache
def cases() -> list[Case]:
    """Return the streams with a known power of their verdicts, except those of intervals."""
    return [one for one in powerful() if "interval" not in one.name and "late" not in one.name]


def soon(task: tuple[int, int]) -> tuple[float, float, float]:
    """Return when the verdict is right first, when the answer is, and how often it is later."""
    index, seed = task
    case = cases()[index]
    rng = np.random.default_rng([11, index, seed])
    n = 2 * case.labels
    (view,) = case.draw(rng, n + WARM)
    y = (rng.random(n + WARM) < view.truth).astype(float)
    verdicts, sums = VerdictSequence("raw", TOLERANCE), core.AnswerSums(TOLERANCE, 1)
    sums.skip(view.p[:WARM], view.p[:WARM])
    numbers = np.arange(n + WARM)
    wanted = {YES} if case.right == "trustworthy" else {NO, "partly"}
    verdict, answer, later = math.inf, math.inf, list[bool]()
    for begin in range(WARM, n + WARM, max(n // 200, 1)):
        part = slice(begin, begin + max(n // 200, 1))
        columns = view.p[part], y[part]
        verdicts.add(*columns, numbers[part])
        sums.add(view.p[part], *columns, numbers[part], numbers[part])
        so_far = float(part.stop - WARM)
        if verdicts.brief()[0] in view.right:
            verdict = min(verdict, so_far)
        right = state_of(view_of(groups_of([sums.now()[2][0][0]])))[0] in wanted
        if right:
            answer = min(answer, so_far)
        if answer < so_far:
            later.append(right)
    return verdict, answer, float(np.mean(later)) if later else math.nan


# All


def answers(file: Path, pool: Executor, streams: int | None = None) -> list[Answer]:
    """Return what all streams showed; what the file has is not run again."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    kept = {one.name: one for one in (Answer(*json.loads(line)) for line in lines)}
    named = [*map(_name, settings()), *(case.name for case in cases())]
    with file.open("a", encoding="utf-8") as out:
        for at, name in enumerate(named):
            if name in kept:
                continue
            power = at - len(settings())
            values = (
                _soon(power, pool, streams or FOUND)
                if power >= 0
                else _false(at, pool, streams or STREAMS)
            )
            kept[name] = Answer(name, values)
            out.write(f"{json.dumps(kept[name])}\n")
            out.flush()
    return [kept[name] for name in named]


def _name(setting: Setting) -> str:
    odds = "right" if setting.odds == 1.0 else f"odds off by {setting.odds:g}"
    return f"{setting.rate:g}, {setting.delay}, {odds}"


def _false(index: int, pool: Executor, streams: int) -> list[float]:
    chunks = [(settings()[index], index, chunk) for chunk in range(math.ceil(streams / CHUNK))]
    each = [one for part in pool.map(run, chunks) for one in part]
    return [len(each), *map(float, np.sum(each, axis=0))]


def _soon(index: int, pool: Executor, streams: int) -> list[float]:
    each = np.array([*pool.map(soon, [(index, seed) for seed in range(streams)], chunksize=5)])
    later = each[:, 2][~np.isnan(each[:, 2])]
    median = np.median(each[:, :2], axis=0).tolist()
    return [streams, *median, float(later.mean()) if len(later) else math.nan]


def section(found: Iterable[Answer]) -> str:
    """Write the section of the page."""
    every = {one.name: one.values for one in found}
    false, power = list[list[str]](), list[list[str]]()
    for rate in RATES:
        for delay in DELAYS:
            right, off = (every[_name(Setting(rate, delay, odds))] for odds in ODDS)
            streams, windows = right[:2]
            shares = [right[2] / windows, right[3] / windows, off[2] / off[1], off[4] / off[1]]
            cells = [f"{one:.2%}" for one in (*shares, right[5] / streams)]
            false.append([f"{rate:g}", delay, f"{streams:,}", f"{windows:,.0f}", *cells])
    for case in cases():
        _, verdict, answer, later = every[case.name]
        power.append(
            [
                case.name,
                _labels(verdict),
                _labels(answer),
                "-" if math.isnan(later) else f"{later:.0%}",
            ]
        )
    windows_of = 2_000
    return TEXT.format(
        streams=int(max(one[0] for one in every.values())),
        reads=READS,
        found=FOUND,
        most=ALPHA + 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / windows_of),
        false=table(
            [
                "mean forecast",
                "labels",
                "streams",
                "windows",
                "right: a range missed",
                "called wrong",
                "off by 1.25: a range missed",
                "called right",
                "saving missed",
            ],
            false,
        ),
        power=table(["stream", "verdict", "answer", "stays"], power),
    )


def _labels(median: float) -> str:
    return f"{median:,.0f}" if median < math.inf else "not found"
