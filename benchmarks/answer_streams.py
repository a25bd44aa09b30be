"""Streams of known truth, on which answers about now are read.

Labels feed back: the true probability of a label depends on the labels that came before its
forecast. What is served is right, and the odds of the raw forecasts are off by the tolerance.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.backends import core
from abers.monitoring.answers.answers import YES, state_of
from abers.monitoring.answers.period import saved_of
from abers.monitoring.answers.rows import groups_of, losses_of, view_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.monitoring.answers.rows import ViewGroups

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = [
    "RATES",
    "READS",
    "TOLERANCE",
    "WARM",
    "Rate",
    "Setting",
    "odds_times",
    "run",
    "settings",
]

TOLERANCE, WARM = 1.25, 300
LATE = 2_000
DELAYS = ("at once", "up to 2,000 late", "1,000 late if 1")
READS = 5  # at even distances while the units of one mark come
EXACT = 1e-9  # points: sums of rounded terms differ by less


class Rate(NamedTuple):
    """Streams of a mean forecast: their labels, and how they are drawn."""

    log_odds: float
    labels: int
    marks: float  # that so many labels have, about
    block: int  # forecasts that the same labels feed back into
    chunk: int  # streams that are drawn at once


RATES = {
    0.5: Rate(0.0, 20_000, 4.0, 100, 100),
    0.05: Rate(-3.4, 69_000, 3.0, 200, 50),
    0.005: Rate(-5.75, 490_000, 2.5, 1_000, 20),
}


class Setting(NamedTuple):
    """A mean forecast, and how late labels are."""

    rate: float
    delay: str

    @property
    def name(self) -> str:
        """Name of the setting."""
        return f"{self.rate:g}, {self.delay}"

    @property
    def chunk(self) -> int:
        """Number of streams that are drawn at once."""
        return RATES[self.rate].chunk


def settings() -> list[Setting]:
    """Return all settings."""
    return [Setting(*one) for one in product(RATES, DELAYS)]


def odds_times(p: Floats, factor: float) -> Floats:
    """Return probabilities whose odds are so many times those of p."""
    return np.asarray(p * factor / (1.0 - p + p * factor))


def drawn(setting: Setting, seed: Sequence[int]) -> tuple[Floats, Floats, Integers]:
    """Draw streams, a row each: right forecasts, labels, and when these come.

    Forecasts come in blocks. The labels that came before a block move all its log odds.
    """
    rng = np.random.default_rng(seed)
    mean, n, _, block, streams = RATES[setting.rate]
    blocks = math.ceil((n + WARM) / block)
    p, labels = (np.empty((streams, blocks * block)) for _ in range(2))
    arrivals = np.empty(p.shape, np.int64)
    ahead = LATE // block + 2
    surplus = np.zeros((blocks + ahead, streams))  # of labels above forecasts, by the next block
    known, columns = np.zeros(streams), np.arange(streams)[:, np.newaxis]
    spread = math.sqrt(setting.rate * block)
    for k in range(blocks):
        part = slice(k * block, (k + 1) * block)
        known = 0.5 * known + surplus[k]
        shift = mean + 0.3 * np.clip(known / spread, -2.0, 2.0)
        noise = rng.standard_normal((streams, block), np.float32)
        p[:, part] = 1.0 / (1.0 + np.exp(-shift[:, np.newaxis].astype(np.float32) - noise))
        labels[:, part] = rng.random((streams, block)) < p[:, part]
        late = _late(setting, labels[:, part], rng)
        arrivals[:, part] = np.arange(part.start, part.stop) + 1 + late
        place = (-(-arrivals[:, part] // block) - k) * streams + columns
        above = np.bincount(place.ravel(), (labels[:, part] - p[:, part]).ravel(), ahead * streams)
        surplus[k : k + ahead] += above.reshape(ahead, streams)
    return p, labels, arrivals


def _late(setting: Setting, labels: Floats, rng: np.random.Generator) -> Integers:
    """Return how many forecasts after its own each label comes."""
    if setting.delay == DELAYS[1]:
        return rng.integers(0, LATE + 1, labels.shape)
    every = LATE // 2 if setting.delay == DELAYS[2] else 0
    return every * labels.astype(np.int64)


class TrueGaps:
    """Sums of true probability minus forecast of the rows of a window, by tenth and half."""

    def __init__(self, first: int, groups: ViewGroups) -> None:
        self.at, self.cut = first, groups.cut or 0.0
        self.ends = [*groups.first, 10]
        self.tenths, self.upper = np.zeros(10), 0.0

    def add(self, p: Floats, truth: Floats, until: int) -> None:
        """Take rows until one of these."""
        part = slice(self.at, until)
        gaps, forecasts = truth[part] - p[part], p[part]
        tenth = np.minimum((forecasts * 10.0).astype(np.int64), 9)
        self.tenths += np.bincount(tenth, gaps, 10)
        self.upper += float(gaps[forecasts >= self.cut].sum())
        self.at = until

    def of(self, key: str) -> float:
        """Return the sum of a group."""
        whole = float(self.tenths.sum())
        if key in {"all", "lower", "upper"}:
            return {"all": whole, "lower": whole - self.upper, "upper": self.upper}[key]
        first = int(key.removeprefix("tenth-"))
        return float(self.tenths[first : self.ends[self.ends.index(first) + 1]].sum())


class Found(NamedTuple):
    """What a window showed at any reading, or a reading: by view, raw is off and served right."""

    served_missed: bool = False
    served_wrong: bool = False
    raw_missed: bool = False
    raw_right: bool = False

    def __or__(self, other: Found) -> Found:
        """Return what either showed."""
        return Found(*(a or b for a, b in zip(self, other, strict=True)))


def run(task: tuple[Setting, int]) -> list[float]:
    """Return of a chunk: streams, windows, those that showed what `Found` says; savings missed."""
    setting, chunk = task
    seed = [17, settings().index(setting), chunk]
    readings = round(READS * RATES[setting.rate].marks)
    each = [_read(*rows, readings) for rows in zip(*drawn(setting, seed), strict=True)]
    return [float(len(each)), *np.sum(each, axis=0, dtype=float).tolist()]


def _read(p: Floats, labels: Floats, arrivals: Integers, readings: int) -> list[int]:
    """Read a stream while its labels come."""
    sums, numbers, raw = core.AnswerSums(TOLERANCE, 1), np.arange(len(p)), odds_times(p, TOLERANCE)
    sums.skip(raw[:WARM], p[:WARM])
    settled = np.maximum.accumulate(arrivals)  # when a row and all before it have labels
    windows, missed, at, saved = dict[int, Found](), False, WARM, 0.0
    gaps = TrueGaps(-1, groups_of([sums.now()[2][0][0]]))
    for time in np.linspace(WARM, settled[-1], readings + 1)[1:]:
        end = int(np.searchsorted(settled, time, side="right"))
        if end <= at:
            continue
        part = slice(at, end)
        sums.add(raw[part], p[part], labels[part], numbers[part], numbers[part])
        saved += float(_expected(raw[part], p[part]).sum())
        at, now = end, sums.now()
        first = now[0][0]
        if first not in windows:
            gaps = TrueGaps(first, groups_of([now[2][0][0]]))
        gaps.add(raw, p, end)
        windows[first] = windows.get(first, Found()) | found(now, gaps)
        range_ = saved_of(losses_of([sums.whole()[3]]), end - WARM)
        mean = saved / (end - WARM)
        missed |= not (range_.nats_low or 0.0) <= mean <= (range_.nats_high or 0.0)
    return [len(windows), *np.sum([*windows.values()], axis=0).tolist(), int(missed)]


def found(now: tuple[Any, ...], gaps: TrueGaps) -> Found:
    """Return what a reading shows."""
    raw, served = (view_of(groups_of([one])) for one in now[2][0])
    missed = False
    for row in raw.rows:
        gap = 100.0 * gaps.of(row.key) / row.labels
        missed |= not (row.low or 0.0) - EXACT <= gap <= (row.high or 0.0) + EXACT
    return Found(
        any(not (row.low or 0.0) <= 0.0 <= (row.high or 0.0) for row in served.rows),
        any(row.status.startswith("too") for row in served.rows),
        missed,
        state_of(raw)[0] == YES,
    )


def _expected(raw: Floats, p: Floats) -> Floats:
    """Return what each label is expected to save."""
    return p * np.log(p / raw) + (1.0 - p) * np.log((1.0 - p) / (1.0 - raw))
