"""What a wrong order of teaching costs: log loss above perfect scores, where delays tell the label.

    python -m benchmarks.stalls

Scores are right, so learning from labels can only lose. It loses much where it
learns them by class. The forecast is that of the set in a protected mixture: the merged interval of
a `VennAbers`, shrunk to the score. It is taught as labels come, or in the order of
`core.TeachingOrder`. Some 20 nats are the price of learning; the first row shows it. The
third figure is that of the whole mixture, which has its own order.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers import ProtectedVennAbers, VennAbers
from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.backends import core
from benchmarks.page import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Delays = Callable[[Integers, np.random.Generator], Integers]

LOST = -1  # the delay of a label that never comes
LATE = 100  # the delay of labels outside stalls
SHARE_LOST = 0.3
RATES = (0.5, 0.3, 0.02, 0.005)


class Perfect(NamedTuple):
    """Log odds, and labels that have their probabilities."""

    scores: Floats
    labels: Integers

    @classmethod
    def of(cls, rate: float, n: int, seed: int) -> Perfect:
        """Draw them, with a mean probability that is nearly the rate."""
        rng = np.random.default_rng(seed)
        scores = rng.normal(0.0, 1.5, n)
        low, high = -20.0, 20.0
        for _ in range(50):
            middle = (low + high) / 2.0
            low, high = (middle, high) if _mean(scores + middle) < rate else (low, middle)
        scores += low
        return cls(scores, (rng.random(n) < 1.0 / (1.0 + np.exp(-scores))).astype(np.int64))


def _mean(scores: Floats) -> float:
    return float(np.mean(1.0 / (1.0 + np.exp(-scores))))


# Delays by row, from the labels. A stall of a class begins at a row, and ends `size` rows later.


def _due(labels: Integers, late: int) -> Integers:
    return np.arange(len(labels)) + late


def stall(
    classes: Sequence[int], size: int, first: int = 3_000, *, late: int = LATE, lost: bool = False
) -> Delays:
    """Let labels of some classes wait for the end of a stall, or be lost in it."""

    def delays(labels: Integers, _: np.random.Generator) -> Integers:
        due, end = _due(labels, late), first + size
        stalls = (due >= first) & (due < end) & np.isin(labels, classes)
        return np.where(stalls, LOST if lost else end - due + late, late)

    return delays


def repeated(its: int, size: int, every: int = 3_000) -> Delays:
    """Let a class stall again and again."""

    def delays(labels: Integers, _: np.random.Generator) -> Integers:
        phase = _due(labels, LATE) % every
        return np.where((phase < size) & (labels == its), LATE + size - phase, LATE)

    return delays


def gradual(its: int, size: int, first: int = 4_000) -> Delays:
    """Let ever more labels of a class stall, and all of it for as long again."""

    def delays(labels: Integers, rng: np.random.Generator) -> Integers:
        due, end = _due(labels, LATE), first + 2 * size
        share = np.clip((due - first) / size, 0.0, 1.0) * (due < end)
        stalls = (labels == its) & (rng.random(len(labels)) < share)
        return np.where(stalls, end - due + LATE, LATE)

    return delays


def by_class(zero: Delays, one: Delays, *, halfway: bool = False) -> Delays:
    """Let delays depend on the label, from the start or from the middle on."""

    def delays(labels: Integers, rng: np.random.Generator) -> Integers:
        found = np.where(labels == 1, one(labels, rng), zero(labels, rng))
        early = np.arange(len(labels)) < len(labels) // 2
        return np.where(early, LATE, found) if halfway else found

    return delays


def equal(late: int) -> Delays:
    """Let all labels be equally late."""
    return lambda labels, _: np.full(len(labels), late)


def heavy(tail: float) -> Delays:
    """Draw delays with a Pareto tail."""
    return lambda labels, rng: np.minimum(10 * rng.pareto(tail, len(labels)), 15_000).astype(int)


def _geometric(labels: Integers, rng: np.random.Generator) -> Integers:
    return np.minimum(rng.geometric(1 / 200, len(labels)), 1_000)


def before(most: int) -> Delays:
    """Draw delays that are all equally likely."""
    return lambda labels, rng: rng.integers(0, most, len(labels))


def either(soon: int, late: int, share: float = 0.5) -> Delays:
    """Let a share of the labels come soon, and all others late."""
    return lambda labels, rng: np.where(rng.random(len(labels)) < share, soon, late)


def waiting(mean: float) -> Delays:
    """Draw exponential delays."""
    return lambda labels, rng: rng.exponential(mean, len(labels)).astype(int)


def _batches(labels: Integers, _: np.random.Generator) -> Integers:
    return 999 - np.arange(len(labels)) % 1_000


def _row_0_lost(labels: Integers, _: np.random.Generator) -> Integers:
    return np.where(np.arange(len(labels)) == 0, LOST, np.where(labels == 1, 100, 500))


def _some_lost(labels: Integers, rng: np.random.Generator) -> Integers:
    return np.where(rng.random(len(labels)) < SHARE_LOST, LOST, LATE)


SCENARIOS: dict[str, Delays] = {
    "all 100 late": equal(LATE),
    "any delay, by no label": _geometric,
    "heavy tails, by no label": heavy(1.2),
    "all labels of 1,000 rows together": _batches,
    "30 % lost": _some_lost,
    "label 1 soon, 0 after 1,000": by_class(equal(1_000), _geometric),
    "label 1 at any time before 1,000, 0 then": by_class(equal(1_000), before(1_000)),
    "label 1 at any time before 5,000, 0 then": by_class(equal(5_000), before(5_000)),
    "label 1 at once, 0 after 1,000": by_class(equal(1_000), equal(0)),
    "label 0 after 10, 1 after 1,000": by_class(equal(10), equal(1_000)),
    "label 1 after 10, 0 after 5,000": by_class(equal(5_000), equal(10)),
    "heavier tails of 0": by_class(heavy(0.8), heavy(1.5)),
    "label 1 after 10 or 1,000, 0 after 100": by_class(equal(LATE), either(10, 1_000)),
    "label 0 after 50 (1 %) or 3,000, 1 before 20": by_class(either(50, 3_000, 0.01), before(20)),
    "label 0 after 50 (10 %) or 3,000, 1 before 20": by_class(either(50, 3_000, 0.1), before(20)),
    "label 1 after 5 (10 %) or 3,000, 0 before 20": by_class(before(20), either(5, 3_000, 0.1)),
    "label 1 after some 200, 0 after some 2,000": by_class(waiting(2_000), waiting(200)),
    "label 0 later from the middle on": by_class(equal(1_000), equal(LATE), halfway=True),
    "label 1 sooner from the middle on": by_class(equal(LATE), equal(0), halfway=True),
    "row 0 lost": _row_0_lost,
    "label 1 alone": by_class(equal(LOST), equal(LATE)),
    "0 stalls for 2,000": stall([0], 2_000),
    "1 stalls for 2,000": stall([1], 2_000),
    "both stall for 2,000": stall([0, 1], 2_000),
    "0 stalls early for 500": stall([0], 500, 600),
    "1 stalls early for 500": stall([1], 500, 600),
    "0 stalls for 3,000, all 1,000 late": stall([0], 3_000, 6_000, late=1_000),
    "0 lost for 2,000": stall([0], 2_000, lost=True),
    "1 lost for 2,000": stall([1], 2_000, lost=True),
    "outage of 2,000": stall([0, 1], 2_000, lost=True),
    "0 stalls for 10,000": stall([0], 10_000, 5_000),
    "1 stalls for 10,000": stall([1], 10_000, 5_000),
    "0 stalls for 500 in 3,000": repeated(0, 500),
    "1 stalls for 500 in 3,000": repeated(1, 500),
    "0 stalls by and by, 2,000": gradual(0, 2_000),
    "1 stalls by and by, 2,000": gradual(1, 2_000),
    "0 stalls by and by, 6,000": gradual(0, 6_000),
}


def events(delays: Integers, expiry: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield kinds and rows: each prediction, then the labels and expiries that are due, by row."""
    due: dict[int, list[tuple[int, int]]] = {}
    for row, delay in enumerate(delays.tolist()):
        yield PREDICT, row
        if delay != LOST:
            due.setdefault(row + delay, []).append((row, LEARN))
        elif expiry is not None:
            due.setdefault(row + expiry, []).append((row, EXPIRE))
        for settled, kind in sorted(due.pop(row, [])):
            yield kind, settled


def on_arrival(labels: Integers, delays: Integers) -> Iterator[tuple[int, int]]:
    """Yield kinds and rows where labels teach as they come."""
    del labels
    yield from events(delays)


def in_order(labels: Integers, delays: Integers) -> Iterator[tuple[int, int]]:
    """Yield kinds and rows where labels teach in the order of `TeachingOrder`."""
    order, known = core.TeachingOrder(), (labels == 1).tolist()
    for kind, row in events(delays):
        if kind == PREDICT:
            yield PREDICT, row
            due = order.predict(row)
        else:
            due = order.label(row, known[row]) or []
        for number in due:
            yield LEARN, number


def excess(stream: Perfect, steps: Iterator[tuple[int, int]]) -> float:
    """Sum the log loss of the forecast above that of the scores, over all rows, in nats."""
    kinds, rows = (np.array(column) for column in zip(*steps, strict=True))
    scores, labels = stream.scores[rows], stream.labels[rows].astype(np.uint8)
    found = VennAbers().run(kinds.astype(np.uint8), scores, labels)
    asked = kinds == PREDICT
    p0, p1 = np.asarray(found.p0)[asked], np.asarray(found.p1)[asked]
    raw = 1.0 / (1.0 + np.exp(-scores[asked]))
    m = 1.0 / np.maximum(p1 - p0, 1e-9) - 1.0
    p = np.clip((m * p1 / (1.0 - p0 + p1) + 30.0 * raw) / (m + 30.0), 1e-6, 1.0 - 1e-6)
    return _above(stream, p)


def protected(stream: Perfect, delays: Integers) -> float:
    """Sum the log loss of the protected probability above that of the scores, in nats."""
    kinds, rows = (np.array(column) for column in zip(*events(delays), strict=True))
    calibrator = ProtectedVennAbers(scores="logit")
    columns = stream.scores[rows], stream.labels[rows]
    found = calibrator.run(kinds.astype(np.uint8), *columns, numbers=rows)
    return _above(stream, np.asarray(found.probability)[kinds == PREDICT])


def _above(stream: Perfect, p: Floats) -> float:
    raw = 1.0 / (1.0 + np.exp(-stream.scores))
    one = stream.labels == 1
    return float(np.sum(np.log(np.where(one, raw / p, (1.0 - raw) / (1.0 - p)))))


def costs(name: str, rate: float, n: int, seed: int) -> tuple[float, float, float]:
    """Return what a scenario costs on arrival, in order, and where it is protected."""
    stream = Perfect.of(rate, n, seed)
    delays = SCENARIOS[name](stream.labels, np.random.default_rng(seed + 1))
    return (
        excess(stream, on_arrival(stream.labels, delays)),
        excess(stream, in_order(stream.labels, delays)),
        protected(stream, delays),
    )


def main(words: Sequence[str] | None = None) -> None:
    """Print the largest cost of some seeds, for each scenario and share of label 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stalls")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args(words)
    rows = []
    for name in SCENARIOS:
        row = [name]
        for rate in RATES:
            seen = [costs(name, rate, arguments.events, seed) for seed in range(arguments.seeds)]
            row.append(" / ".join(f"{max(one):.0f}" for one in zip(*seen, strict=True)))
        rows.append(row)
    shown = "taught on arrival / in order / protected; the worst seed"
    sys.stdout.write(f"Nats above perfect scores, {shown}\n\n")
    sys.stdout.write(table(["labels", *(f"rate {rate}" for rate in RATES)], rows))


if __name__ == "__main__":
    main()
