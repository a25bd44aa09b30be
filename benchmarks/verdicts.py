"""Verdicts on streams of known truth, as a page of evidence.

Usage: python -m benchmarks.verdicts [--seeds N] [--streams N] [--workers N] [--answers FILE]
[--alarms FILE] [--now FILE] [--output PAGE]

Without a page it writes docs/evidence/verdicts.md. The seeds are 0, 1, ..., so that a run can be
repeated; results do not depend on the number of workers. What was computed is kept, a line a
stream or a part, so that a run that was stopped goes on where it ended; `--streams 1` writes the
page of the results so far.
"""

from __future__ import annotations

import argparse
import json
import math
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks import alarms
from benchmarks import answers as answers_now
from benchmarks.page import table
from benchmarks.papers.report import foldings
from benchmarks.rivals import ROOT
from benchmarks.verdict_streams import ALPHA, Result, borderline, others, powerful, simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.verdict_streams import Case

PAGE = ROOT / "docs" / "evidence" / "verdicts.md"
ANSWERS = PAGE.with_name("answers") / "verdicts.jsonl"
ALARMS, NOW = ANSWERS.with_name("alarms.jsonl"), ANSWERS.with_name("now.jsonl")
KINDS = {"power": powerful, "other": others, "border": borderline}
CHUNK = 20  # seeds that a worker runs at once
LONG = 500_000  # a fifth of the seeds is run of streams with more labels

TEXT = """\
# Verdicts

After this page you know how often verdicts, answers and alarms are right, on streams with known
true probabilities, and how many labels they take. The tolerance is 1.25, and alpha is 0.05.
`python -m benchmarks.verdicts` writes the page.

After every evaluation the claim of a `VerdictSequence` is compared with the true probabilities of
the labels that were counted. For example, the claim "too high" is wrong if the sum of the true
probabilities is not below that of the lower ends of the tolerance. A run has a **wrong claim** if
any claim was wrong at any time. The guarantee allows 5 % of these runs; by chance (three standard
errors) {most} of 1,000 may have one.

A verdict is **right** if its status after the last label is the status in the table. Forecasts are
drawn from Beta(2, 5), rare forecasts from Beta(2, 398), with a mean of .5 %. *Late* labels come
after an exponential delay with mean 50 forecasts if they are 1, and 1,000 if they are 0, through
the buffer that puts them in order.

## Right verdicts where they can be expected

*n* is the number of labels at which the claims hold with probability 99 %, by normal theory and by
the root of the mixture. scipy computes it, apart from abers (`benchmarks/verdict_reference.py`). A
test that is made only once, at *fixed n* labels, with the same shares of alpha, has the same power.
A sequence that you may read at any time needs about half as many labels more. *Found after* is the
median number of labels.

{power}
Before forecasts are called over-confident, lower scores are found too low, or higher scores too
high, which is also true.

The intervals of 90 % have all of alpha here. On a stream they have half of it: quantiles and PIT
values share the other half.

{claims}
### Other streams

*Right, wrong, right again* restarts the block when the test for a change opens an incident, with an
average run length of 100,000. The three classes have four sequences: the top label with half of
alpha, and each class with a sixth; all must be right.

{other}
### Wrong claims where they are easiest

Right forecasts, and odds that are off by exactly the tolerance, so that neither "trustworthy" nor
"too high" is true. *A level* is that of an interval or quantile, or of PIT values in the middle
half. *Restarts where the sums are off* starts another block, every 500 labels, if the sums are two
standard deviations from the forecasts: restarts that depend on labels must not help.

{border}
{now}
{alarms}
## What this does not show

Sizes are statements about averages over the labels of a block, not about every forecast. The
streams are stationary in parts, and labels are independent; the guarantee needs neither.
"""


class Answer(NamedTuple):
    """What the runs of a case showed: numbers of runs, and the median number of labels."""

    kind: str
    name: str
    labels: int
    runs: int
    right: int
    right_early: int
    wrong: int
    first: float

    def share(self, count: int) -> str:
        """Return a number of runs as a share of all."""
        return f"{count / self.runs:.1%}"


@cache
def cases(kind: str) -> list[Case]:
    """Return the cases of a kind."""
    return KINDS[kind]()


def run(task: tuple[str, int, int]) -> Result:
    """Run a seed of a case."""
    kind, index, seed = task
    return simulate(cases(kind)[index], [[*KINDS].index(kind), index, seed])


def most(runs: int) -> float:
    """Return the share of runs that may have wrong claims: alpha and three standard errors."""
    return ALPHA + 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / runs)


def answers(file: Path) -> dict[tuple[str, str], Answer]:
    """Return the answers that are kept, by kind and name."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {(one.kind, one.name): one for one in (Answer(*json.loads(line)) for line in lines)}


def answer(kind: str, index: int, runs: int, pool: ProcessPoolExecutor) -> Answer:
    """Run a case."""
    case = cases(kind)[index]
    results = [*pool.map(run, [(kind, index, seed) for seed in range(runs)], chunksize=CHUNK)]
    return Answer(
        kind,
        case.name,
        case.labels,
        runs,
        sum(one.right for one in results),
        sum(one.right_early for one in results),
        sum(one.wrong for one in results),
        float(np.median([one.first for one in results])),
    )


def page(
    found: dict[tuple[str, str], Answer],
    raised: Sequence[alarms.Answer],
    now: Sequence[answers_now.Answer],
) -> str:
    """Write the page."""
    rows = {kind: [(case, found[kind, case.name]) for case in cases(kind)] for kind in KINDS}
    power = table(
        ["stream", "seeds", "fixed n", "right", "n", "right", "wrong claims", "found after"],
        [
            (
                case.name,
                f"{one.runs:,}",
                f"{case.early:,}",
                one.share(one.right_early),
                f"{one.labels:,}",
                one.share(one.right),
                one.share(one.wrong),
                f"{one.first:,.0f}",
            )
            for case, one in rows["power"]
        ],
    )
    other = table(
        ["stream", "right status", "seeds", "labels", "right", "wrong claims"],
        [
            (
                case.name,
                case.right,
                f"{one.runs:,}",
                f"{one.labels:,}",
                one.share(one.right),
                one.share(one.wrong),
            )
            for case, one in rows["other"]
        ],
    )
    border = table(
        ["stream", "seeds", "labels", "wrong claims"],
        [
            (case.name, f"{one.runs:,}", f"{one.labels:,}", one.share(one.wrong))
            for case, one in rows["border"]
        ],
    )
    text = TEXT.format(
        most=f"{most(1_000):.1%}",
        claims=_claims([*found.values()]),
        power=power,
        other=other,
        border=border,
        now=answers_now.section(now),
        alarms=alarms.section(raised),
    )
    return foldings(text)


def _claims(found: Sequence[Answer]) -> str:
    """Write how many runs of the worst stream had a wrong claim."""
    worst = max(found, key=lambda one: one.wrong / one.runs)
    return (
        f"Of the {len(found)} streams of the tables, those that fold away included, the largest"
        f" share of runs with a wrong claim is {worst.share(worst.wrong)} ({worst.name}).\n"
    )


def main(words: Sequence[str] | None = None) -> None:
    """Run all streams and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.add_argument("--answers", type=Path, default=ANSWERS)
    parser.add_argument("--alarms", type=Path, default=ALARMS)
    parser.add_argument("--now", type=Path, default=NOW)
    parser.add_argument("--streams", type=int, help="at most so many of alarms and answers")
    arguments = parser.parse_args(words)
    found = answers(arguments.answers)
    with ProcessPoolExecutor(arguments.workers) as pool, arguments.answers.open("a") as file:
        for kind in KINDS:
            for index, case in enumerate(cases(kind)):
                if (kind, case.name) not in found:
                    runs = arguments.seeds // 5 if case.labels > LONG else arguments.seeds
                    one = answer(kind, index, runs, pool)
                    found[kind, case.name] = one
                    file.write(f"{json.dumps(one)}\n")
                    file.flush()
        raised = alarms.answers(arguments.alarms, pool, arguments.streams)
        now = answers_now.answers(arguments.now, pool, arguments.streams)
    arguments.output.write_text(page(found, raised, now), encoding="utf-8")


if __name__ == "__main__":
    main()
