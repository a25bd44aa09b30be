"""How wide ranges of the calibration error are, how often they miss it, and what they cost.

On streams with known true probabilities. ``python -m benchmarks.calibration_error`` writes the
page docs/evidence/calibration_error.md.
"""

from __future__ import annotations

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.backends import core
from abers.monitoring import CalibrationErrorSequence, ConfidenceSequence, ForecastGroups
from abers.monitoring.answers.rows import calibration_error
from benchmarks.page import table
from benchmarks.timing import Spread, digits, seconds, undisturbed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers.arrays import Floats

__all__ = ["STREAMS", "Run", "main", "measured", "page", "run"]

PAGE = Path("docs/evidence/calibration_error.md")
ALPHA, BINS = 0.05, 10
LABELS, GROWTH = 20_000, 100  # reads are at each label up to this number, then at each per cent
SHOWN = (1_000, 3_000, 20_000)
SQUARES = 90.0  # in a bin, where the ranges of the union are tightest
ROUNDS = 9


class Stream(NamedTuple):
    """Forecasts, and the true probabilities that they have."""

    name: str
    alpha: float
    beta: float  # forecasts are of this beta distribution
    truth: Callable[[Floats], Floats]


def _odds(p: Floats) -> Floats:
    """Return probabilities with 1 / 1.5 of the odds."""
    return p / (p + (1.0 - p) * 1.5)


def _wiggle(p: Floats) -> Floats:
    """Return probabilities that are too high and too low in turn, by up to 8 points."""
    return np.clip(p + 0.08 * np.sin(10.0 * math.pi * p), 0.0, 1.0)


def _drift(p: Floats) -> Floats:
    """Return probabilities that are at first too low, then too high, by up to 15 points."""
    turn = np.sin(1.5 * math.pi * np.arange(len(p)) / LABELS)
    return np.clip(p - 0.15 * turn, 0.0, 1.0)


STREAMS = (
    Stream("right forecasts", 2.0, 5.0, np.array),
    Stream("odds 1.5 times too high", 2.0, 5.0, _odds),
    Stream("8 points too high and too low in turn", 2.0, 5.0, _wiggle),
    Stream("drifting by 15 points", 2.0, 5.0, _drift),
    Stream("rare (1.6 %), right", 2.0, 123.0, np.array),
)


class Run(NamedTuple):
    """What a run found: truth, plain error, and both ranges at each of `SHOWN`, and its misses."""

    shown: list[list[float]]
    missed: bool
    missed_at: int


def _reads() -> list[int]:
    """Return the numbers of labels at which a range is read."""
    reads, at = [], 1
    while at < LABELS:
        reads.append(at)
        at += max(1, at // GROWTH)
    return sorted({*reads, *SHOWN, LABELS})


def _union(bins: Floats) -> tuple[float, float]:
    """Return the range by a union over bins, each with its part of the level."""
    level = ALPHA / BINS / 2.0
    sequence = ConfidenceSequence(SQUARES, level)
    low = high = 0.0
    for n, ones, forecasts, squares in bins.tolist():
        if n:
            distance, margin = abs(ones - forecasts), sequence.boundary(squares, level)
            low += max(distance - margin, 0.0)
            high += min(distance + margin, max(forecasts, n - forecasts))
    return low, high


def run(stream: Stream, seed: int) -> Run:
    """Return what one run finds, with its range read at hundreds of numbers of labels."""
    rng = np.random.default_rng([seed, STREAMS.index(stream)])
    p = rng.beta(stream.alpha, stream.beta, LABELS)
    truth = stream.truth(p)
    y = (rng.random(LABELS) < truth).astype(float)
    at = np.minimum((p * BINS).astype(int), BINS - 1)
    terms = np.stack([np.ones(LABELS), y, p, (y - p) ** 2, truth - p])
    sums = np.zeros((BINS, 5))
    shown, missed, begin = [], 0, 0
    for end in _reads():
        for bin_ in range(BINS):
            sums[bin_] += terms[:, begin:end][:, at[begin:end] == bin_].sum(axis=1)
        begin = end
        error, bins = np.abs(sums[:, 4]).sum(), np.ascontiguousarray(sums[:, :4])
        low, high = core.calibration_error(bins, ALPHA)
        if not (low <= error <= high or missed):
            missed = end
        if end in SHOWN:
            plain = np.abs(bins[:, 1] - bins[:, 2]).sum()
            found = (error, plain, low, high, *_union(bins))
            shown.append([float(one) / end for one in found])
    return Run(shown, missed > 0, missed)


def measured() -> list[tuple[str, Spread]]:
    """Return times in microseconds: of an event, and of reads at several numbers of labels."""
    rng = np.random.default_rng(1)
    p = rng.beta(2.0, 5.0, 100_000)
    y = (rng.random(len(p)) < p).astype(float)
    found = []
    with undisturbed():
        sequence = CalibrationErrorSequence()
        times = [seconds(lambda: sequence.update(p, y)) for _ in range(ROUNDS)]
        per_event = Spread.of([1e6 * one / len(p) for one in times])
        found.append(("a label of `CalibrationErrorSequence`", per_event))
        for n in (1_000, 10_000, 100_000, 1_000_000, 10_000_000):
            groups = ForecastGroups(1.0)
            groups.update(p[: min(n, len(p))], y[: min(n, len(p))])
            factor = n / min(n, len(p))
            bins = [[factor * value for value in one] for one in groups.groups()[3:]]
            times = [seconds(partial(calibration_error, bins, ALPHA)) for _ in range(ROUNDS)]
            found.append((f"a read after {n:,} labels", Spread.of([1e6 * one for one in times])))
    return found


def _cells(stream: Stream, runs: Sequence[Run]) -> list[list[str]]:
    """Return the rows of a stream."""
    rows = []
    for at, labels in enumerate(SHOWN):
        middle = np.median([one.shown[at] for one in runs], axis=0)
        truth, plain, *ends = (f"{one:.3f}" for one in middle.tolist())
        ranges = [f"[{low}, {high}]" for low, high in (ends[:2], ends[2:])]
        rows.append([stream.name, f"{labels:,}", truth, plain, *ranges])
    return rows


def _missed(stream: Stream, runs: Sequence[Run]) -> list[str]:
    """Return how many runs missed, with the standard error of their share."""
    missed, n = sum(one.missed for one in runs), len(runs)
    share = missed / n
    error = math.sqrt(max(share, 1.0 / n) * (1.0 - share) / n)
    return [stream.name, f"{n:,}", f"{missed:,}", f"{100 * share:.1f} %", f"{100 * error:.1f} %"]


def page(runs: Sequence[Sequence[Run]], times: Sequence[tuple[str, Spread]]) -> str:
    """Return the page."""
    rows = [row for pair in zip(STREAMS, runs, strict=True) for row in _cells(*pair)]
    missed = [_missed(*pair) for pair in zip(STREAMS, runs, strict=True)]
    head = ["stream", "labels", "truth", "plain ECE", "range", "union over bins"]
    return f"""# Calibration error

After this page you know how wide the range of the calibration error is, how often it misses the
truth, and what it costs, on streams with known true probabilities. The level is 95 %. The range is
that of `CalibrationErrorSequence`. `python -m benchmarks.calibration_error` writes the page.

## Ranges

Medians. *Truth* is the calibration error in ten bins, from the true probabilities of the labels so
far. *Plain ECE* puts the labels in their place, and is too large by chance. *Union over bins* is
the range from a `ConfidenceSequence` for each bin, with a tenth of the level each.

{table(head, rows)}
Forecasts are drawn from Beta(2, 5), rare ones from Beta(2, 123).

## Runs that missed

A run has {LABELS:,} labels. Its range is read {len(_reads())} times: after each label up to
{GROWTH}, then when the labels have grown by 1 %. It missed if the truth was outside the range at
any read. The guarantee allows 5 % of the runs.

{table(["stream", "runs", "missed", "share", "standard error"], missed)}
## Time

Microseconds on a machine that is not quiet: median and range of {ROUNDS} rounds. A stream keeps the
sums anyway, for its answers, so a label costs it nothing more.

{table(["what", "time, µs"], [[name, _time(one)] for name, one in times])}"""


def _time(spread: Spread) -> str:
    return f"{digits(spread.median)} ({digits(spread.low)} to {digits(spread.high)})"


def main(words: Sequence[str] | None = None) -> None:
    """Run all streams and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration_error", description=__doc__
    )
    parser.add_argument("--runs", type=int, default=200, help="of each stream")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=PAGE)
    arguments = parser.parse_args(words)
    with ProcessPoolExecutor(arguments.workers) as pool:
        seeds = range(arguments.runs)
        runs = [[*pool.map(partial(_run, at), seeds, chunksize=10)] for at in range(len(STREAMS))]
    arguments.output.write_text(page(runs, measured()), encoding="utf-8")


def _run(at: int, seed: int) -> Run:
    return run(STREAMS[at], seed)


if __name__ == "__main__":
    main()
