"""Answers about now on streams of known truth: false ones, and how soon.

`benchmarks.verdicts` runs these streams and writes them into its page.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.answer_power import CHANGES, FAULTS, Length, cases, lengths, seen, soon
from benchmarks.answer_power import RATES as LENGTH_RATES
from benchmarks.answer_streams import READS, run, settings
from benchmarks.page import table
from benchmarks.verdict_streams import ALPHA

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from numpy.typing import NDArray

    Rows = NDArray[np.float64]

__all__ = ["Answer", "answers", "kept", "section"]

STREAMS, SEEDS, FOUND = 2_000, 100, 200  # of a setting, of a length, of a verdict
PART = 10  # streams of a length or of a verdict that are run at once
BEFORE = "500 to 1,000 units: "  # of what was measured when a mark stood at each full 500

TEXT = """\
## Answers about now

The three answers of `TaskMonitor.answers` are about the labels since the last mark but one. A mark
stands at each full 1,000 of the sum of p (1 - p). **The guarantee is for each window, whenever you
read it**: the probability that any range of a view ever misses the truth while the window lasts is
at most 5 %. Only verdicts and alarms have a guarantee for all time.

{worst}
### How often ranges miss

Run on {dates} by `nice -n 10 python -m benchmarks.verdicts --workers 1`; only what it says of
a mark at each full 500 is from an earlier build. Each stream is read {reads} times a mark, while
labels come, so also in the middle of a window. Forecasts have normal log odds with standard
deviation 1. Labels feed back: if earlier labels were above their forecasts, the log odds of
forecast and truth rise. The calibrated forecasts are right, and the odds of the raw forecasts are
1.25 times too high, exactly the tolerance. A window counts as false if at any reading a range
missed the truth: in the right view a row leaned, in the other view a row did not have the true gap
in its range. *Called wrong* is the share of windows in which a row of the right view was ever
called too high or too low. *Called right* is the share of windows in which the other view ever had
the answer Yes. *Saving missed* is the share of streams in which the range of the loss saved ever
missed the mean expected saving.

{false}
Each share of windows may be {most:.1%} by chance (5 % and three standard errors of {streams:,}
windows); where there are fewer, more.

### How soon answers are found

These are the streams of the first table of this page, up to twice as many labels, read 200 times.
*Answer* is the median number of labels until the answer is Yes if forecasts are right, else
**No**; Partly does not count. *Verdict* is the median number until the verdict is "trustworthy",
else until it says, like No, that all forecasts or a half are outside the tolerance. *Stays* is the
share of later readings at which the answer was still given.

{power}
## Why now has 1,000 to 2,000 units

A shorter now forgets sooner, and decides less. With a mark at each full 500 a half of a window had
250 to 500 units. Its range is then as wide as the tolerance, so Yes came and went. The longer now
also finds smaller faults that last. Its price is a later No after a change, because more of its
labels are from before the change. [Alarms](../monitoring.md#sequential-tests) are for changes, and
do not wait for a window.

### A mark at each full 500, and at each full 1,000

The tables compare both (500 -> 1,000), on {seeds} streams each with normal log odds of standard
deviation 1. Readings begin after 2,000 units, when all windows are full, and go on for 4,000.

The share of readings with the answer Yes if forecasts are right, and No if odds are too high all
the time, by these factors:

{shares}
The median number of labels from a change to the first No, if odds are too high from there on:

{changes}
## What calibration saved at least

Let the raw forecast of label i give the probabilities r(k) to what can come, and the calibrated one
s(k). Both are known before the label. So the saving d = log(s(k) / r(k)) takes known values; m is
the smallest, M the largest. With C = 6 nats X = min(d, m + C) lies in [m, m + C], a range that is
known before the label and not wider than C, and X <= d. The confidence sequence for these outcomes
bounds the sum of X minus that of E[X | past] by b(V), at all times at once, with a probability of
2.5 %; V is the sum of squares of X - g, g being 0 moved into the range. So

    sum of E[d | past] >= sum of E[X | past] >= sum of X - b(V),

and the upper end follows from Y = max(d, M - C) >= d. As X <= d <= Y, the range always contains the
mean saving that is shown; its losses are not clipped. Divided by the mean raw loss that came,
both ends are shares. A raw forecast of 0 or 1 has no M, so there is no upper end then.

### What now cannot show

A window that has just become now has 1,000 units, and a half of it has 500, so right forecasts may
be undecided. For rare events the tolerance ends 0.2 p below a forecast p, which is nearer than
0.25 p above it, so Yes comes later and stays less. Rare events also need many labels for their
units: 2,000 units are some 400,000 labels at a mean forecast of 0.005. Until then all labels count.

An answer about now forgets: a fault of the past is gone after 2,000 units, and what takes more
labels than a window has stays undecided. Verdicts count all labels of their block.

"""


class Answer(NamedTuple):
    """What the streams of a part of a setting showed, and when: a row each, or of all."""

    name: str
    part: int
    date: str
    rows: list[list[float]]


class _Task(NamedTuple):
    """A part of a setting, by the place of the setting among those of its kind."""

    name: str
    part: int
    kind: str
    place: int


def kept(file: Path) -> list[Answer]:
    """Return what streams that were run showed."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [Answer(*json.loads(line)) for line in lines]


def answers(file: Path, pool: Executor, streams: int | None = None) -> list[Answer]:
    """Return what all streams showed; what the file has is not run again."""
    found = kept(file)
    known = {one[:2] for one in found}
    tasks = [one for one in _tasks(streams) if one[:2] not in known]
    with file.open("a", encoding="utf-8") as out:
        for task, rows in zip(tasks, pool.map(rows_of, tasks), strict=True):
            date = datetime.now(UTC).date().isoformat()
            found.append(Answer(task.name, task.part, date, rows))
            out.write(f"{json.dumps(found[-1])}\n")
            out.flush()
    return found


def _tasks(streams: int | None) -> list[_Task]:
    """Return all parts: those that are the same share of their settings follow each other."""
    counts = [
        ("false", [one.name for one in settings()], STREAMS, [one.chunk for one in settings()]),
        ("length", [one.name for one in lengths()], SEEDS, [PART] * len(lengths())),
        ("soon", [one.name for one in cases()], FOUND, [PART] * len(cases())),
    ]
    shares = [
        (part * size / of, _Task(name, part, kind, place))
        for kind, names, of, sizes in counts
        for place, (name, size) in enumerate(zip(names, sizes, strict=True))
        for part in range(math.ceil(min(streams or of, of) / size))
    ]
    return [task for _, task in sorted(shares, key=lambda one: one[0])]


def rows_of(task: _Task) -> list[list[float]]:
    """Run the streams of a part."""
    if task.kind == "false":
        return [run((settings()[task.place], task.part))]
    of_stream: Callable[[tuple[int, int]], tuple[float, ...]]
    of_stream = seen if task.kind == "length" else soon
    seeds = range(task.part * PART, (task.part + 1) * PART)
    return [[*of_stream((task.place, seed))] for seed in seeds]


# The page


def section(found: Sequence[Answer]) -> str:
    """Write the section of the page, of as many streams as there are."""
    rows = defaultdict[str, list[list[float]]](list)
    for one in found:
        rows[one.name] += one.rows
    every = {name: np.array(of_name) for name, of_name in rows.items()}
    dates = sorted({one.date for one in found})
    return TEXT.format(
        dates=" and ".join(dates),
        reads=READS,
        seeds=SEEDS,
        worst=_worst(every),
        false=_false(every),
        streams=STREAMS,
        most=ALPHA + 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / STREAMS),
        power=_power(every),
        shares=_shares(every),
        changes=_changes(every),
    )


def _worst(every: dict[str, Rows]) -> str:
    """Write in which share of the windows of the worst setting a range of any view missed."""
    shares = []
    for one in settings():
        _, windows, right, _, off, *_ = every[one.name].sum(axis=0).tolist()
        shares.append(max(right, off) / windows)
    return (
        f"Simulated in {len(shares)} settings, of rates and delays: in the worst of them a range"
        f" missed the truth in {max(shares):.2%} of the windows.\n"
    )


def _false(every: dict[str, Rows]) -> str:
    head = ["mean forecast", "labels", "streams", "windows", "right: a range missed"]
    head += ["called wrong", "off by 1.25: a range missed", "called right", "saving missed"]
    rows = []
    for one in settings():
        streams, windows, *counts, savings = every[one.name].sum(axis=0).tolist()
        cells = [f"{count / windows:.2%}" for count in counts] + [f"{savings / streams:.2%}"]
        rows.append([f"{one.rate:g}", one.delay, f"{streams:,.0f}", f"{windows:,.0f}", *cells])
    return table(head, rows)


def _power(every: dict[str, Rows]) -> str:
    rows = []
    for case in cases():
        verdict, answer, later = every[case.name].T
        known = later[~np.isnan(later)]
        stays = f"{known.mean():.0%}" if len(known) else "-"
        rows.append([case.name, f"{len(later):,}", _labels(verdict), _labels(answer), stays])
    return table(["stream", "seeds", "verdict", "answer", "stays"], rows)


def _shares(every: dict[str, Rows]) -> str:
    rows = []
    for rate in LENGTH_RATES:
        cells = list[str]()
        for odds in FAULTS:
            name = Length(rate, odds, changes=False).name
            sums = [every[prefix + name].sum(axis=0) for prefix in (BEFORE, "")]
            place = 2 if odds > 1.0 else 1
            cells.append(" -> ".join(f"{one[place] / one[0]:.0%}" for one in sums))
        rows.append([f"{rate:g}", *cells])
    return table(["mean forecast", "right: Yes", *(f"{one:g}: No" for one in FAULTS[1:])], rows)


def _changes(every: dict[str, Rows]) -> str:
    rows = []
    for rate in LENGTH_RATES:
        names = [Length(rate, odds, changes=True).name for odds in CHANGES]
        both = [" -> ".join(_labels(every[one + name]) for one in (BEFORE, "")) for name in names]
        rows.append([f"{rate:g}", *both])
    return table(["mean forecast", *(f"{one:g} times" for one in CHANGES)], rows)


def _labels(found: Rows) -> str:
    median = float(np.median(found))
    return f"{median:,.0f}" if median < math.inf else "not found"
