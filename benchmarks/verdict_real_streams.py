"""Verdicts on real streams with late labels, and shares that need no theory, as a page.

Usage: python -m benchmarks.verdict_real_streams [--data FOLDER] [--output PAGE]

Without a folder the data sets are read from ABERS_DATA; without a page
docs/evidence/verdicts_real.md is written.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from abers.stream import Label, Observation, Prediction, Processor, Settings
from benchmarks.page import table
from benchmarks.papers.streams_data import two
from benchmarks.papers.streams_scorers import online
from benchmarks.papers.streams_steps import equal, steps
from benchmarks.rivals import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.monitoring import TaskMonitor

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["Watched", "page", "shares", "watch"]

PAGE = ROOT / "docs" / "evidence" / "verdicts_real.md"
STREAMS = ("Elec2", "Bike sharing", "Insects")
DELAY = 1_000
PARTS = 5

TEXT = """\
# Verdicts on real streams

After this page you know whether verdicts say what a reader of the plain numbers would say.
`python -m benchmarks.verdict_real_streams` writes it. The streams drift; the scorer is that of
[the streams](streams.md): an online logistic regression with labels that come {delay:,}
observations late. The calibrator and all settings are the defaults of a stream. Event times are
row numbers.

Each row of a table is a fifth of the stream: its rows, and for the lower and the upper half of its
forecasts their mean and the share of label 1. Forecasts are too high where
the mean is above the share, and over-confident where the lower mean is below its share and the
upper mean above.

A verdict that forecasts are outside the tolerance stays until later labels are inside, or outside
in another way, or are four times as many with a mean within the tolerance. The sentence names the
labels that it is about, and when it was last confirmed. A verdict is about averages: a block with
forecasts that are first too high and then too low may be right on average.

{streams}"""


class Watched(NamedTuple):
    """Forecasts of a stream with their labels, and the monitor at its end."""

    raw: Floats
    served: Floats
    labels: Integers
    monitor: TaskMonitor


def watch(scores: Floats, labels: Integers, delay: int) -> Watched:
    """Replay probabilities with labels that come `delay` observations later."""
    processor = Processor(Settings(scores="probability"))
    served = []
    for row in range(len(scores) + delay):
        events: list[Observation | Label] = []
        if row >= delay:
            known = row - delay
            events.append(Label(f"{known}", row, value=int(labels[known])))
        if row < len(scores):
            events.append(Observation(f"{row}", row, score=float(scores[row])))
        found = processor.process_many(events)
        served += [one.p for one in found if isinstance(one, Prediction)]
    if processor.monitor is None:
        msg = "the stream is empty"
        raise ValueError(msg)
    return Watched(scores, np.array(served), labels, processor.monitor)


def shares(forecasts: Floats, labels: Integers) -> tuple[float, float, float, float]:
    """Return mean forecast and share of label 1, of the lower half and of the upper half."""
    order = np.argsort(forecasts, kind="stable")
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    low, high = ((float(forecasts[h].mean()), float(labels[h].mean())) for h in halves)
    return *low, *high


def section(name: str, found: Watched) -> str:
    """Write the tables and the verdicts of a stream."""
    parts = [f"## {name}\n"]
    verdicts = found.monitor.verdicts
    for verdict, forecasts in zip(verdicts, (found.raw, found.served), strict=True):
        rows = [
            (f"{rows[0]:,} to {rows[-1] + 1:,}", *map("{:.3f}".format, numbers))
            for rows in np.array_split(np.arange(len(forecasts)), PARTS)
            for numbers in [shares(forecasts[rows], found.labels[rows])]
        ]
        heads = ["lower, mean", "lower, share", "upper, mean", "upper, share"]
        subject = {"raw": "Raw scores", "calibrated": "Calibrated probabilities"}[verdict.view]
        parts += [f"**{subject}.** {verdict.sentence}\n", table(["rows", *heads], rows)]
    parts += [f"**Calibration.** {one.sentence}\n" for one in [found.monitor.losses] if one]
    return "\n".join(parts)


def page(folder: Path) -> str:
    """Replay the streams, and write the page."""
    sections = []
    for name in STREAMS:
        x, y = two(folder, name)
        scores = expit(online(x, y, steps(equal(DELAY), y)))
        sections.append(section(name, watch(scores, y, DELAY)))
    return TEXT.format(delay=DELAY, streams="\n".join(sections))


def main(words: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdict_real_streams")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ABERS_DATA", "")))
    parser.add_argument("--output", type=Path, default=PAGE)
    arguments = parser.parse_args(words)
    arguments.output.write_text(page(arguments.data), encoding="utf-8")


if __name__ == "__main__":
    main()
