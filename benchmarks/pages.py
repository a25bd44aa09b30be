"""The two pages, made of the results: a summary and the misses stay open, all else folds away."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from benchmarks.page import Section, folded, table, wrapped
from benchmarks.results import read, values_of
from benchmarks.sections import NAMES, PAGES
from benchmarks.summary import SUMMARIES, compared
from benchmarks.targets import TARGETS, figures
from benchmarks.timing import digits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.results import Result

HEADS = {
    "": """\
# Benchmarks

After this page you know how fast abers is compared with the nearest alternative, and where it
loses; [streams and services](benchmarks_streams.md) have a page of their own. `make bench` measures
all of it, `python -m benchmarks --only SECTION` a part; [benchmarks.jsonl](benchmarks.jsonl) has
the figures.
""",
    "_streams": """\
# Benchmarks of streams and services

After this page you know how many events a second a stream or a service takes, compared with the
least that any program must do, and where abers loses. [Benchmarks](benchmarks.md) has the
calibrators; both pages are made of [the same figures](benchmarks.jsonl).
""",
}

READING = {
    "": """\
A *stream* is predicted and learned, observation after observation, at n of them; µs an observation.
*Bare containers* only keep the scores in order. A *lookup* learns nothing. *CDFs* are both bounds
of a distribution of numbers. *Smart brute* is two sorted arrays and two isotonic fits a query.
""",
    "_streams": """\
*By hand* is a dictionary of waiting scores and smart brute, without monitors and tests, which abers
has by default; an event is an observation or its label. The bare loops, servers and imports do the
least that any program must. Times are of the processor; *k/s* is thousand records a second by the
clock.
""",
}
TIMES = """\
*Times* says how many times as fast as the rival abers is, so it loses below 1; where the ranges of
the rounds overlap, it is undecided. Rivals have their newest versions and best settings. Compare
times within a row or a section alone: sections can come from different runs.
"""


def written(results_path: Path) -> list[Path]:
    """Write both pages into the folder of the results; return their paths."""
    results = read(results_path, NAMES)
    paths = []
    for suffix in PAGES:
        path = results_path.with_name(f"{results_path.stem}{suffix}.md")
        path.write_text(page(suffix, results), encoding="utf-8")
        paths.append(path)
    return paths


def page(suffix: str, results: dict[str, Result]) -> str:
    """Make a page of the results that it shows."""
    groups = PAGES[suffix]
    names = [name for group in groups.values() for name in group]
    shown = [results[name] for name in names if name in results]
    values = values_of(shown)
    text = f"{compared(SUMMARIES[suffix], values)}\n{READING[suffix]}{TIMES}"
    summary = Section("Summary", f"{text}{_measured(shown)}", {})
    parts = [HEADS[suffix], summary.markdown(), figures(TARGETS[suffix], values).markdown()]
    for title, group in groups.items():
        sections = [results[name].section.markdown() for name in group if name in results]
        if sections:
            parts.append(folded(escape(title), "\n".join(sections)))
    if shown:
        parts.append(folded("Machines, versions, loads and durations", _machine(shown)))
    return wrapped("\n".join(parts))


def _measured(results: Sequence[Result]) -> str:
    """Return where and when some results were measured."""
    if not results:
        return ""
    runs = [one.run for one in results]
    dates, loads = sorted({run.date for run in runs}), [load for run in runs for load in run.load]
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    where = " and ".join(sorted({run.machine["processor"] for run in runs}))
    return f"Measured on {where}; {when}; load {min(loads):.1f} to {max(loads):.1f}.\n"


def _machine(results: Sequence[Result]) -> str:
    return table(["what", "which"], _facts(results)) + _load(results)


def _facts(results: Sequence[Result]) -> list[list[str]]:
    """Return what the machines have in common, and what differs with its sections."""
    rows = []
    for what in results[0].run.machine:
        by_fact: dict[str, list[str]] = {}
        for one in results:
            by_fact.setdefault(one.run.machine.get(what, "unknown"), []).append(one.name)
        for fact, names in by_fact.items():
            of = f" ({', '.join(names)})" if len(by_fact) > 1 else ""
            rows.append([what, fact + of])
    return rows


def _load(results: Sequence[Result]) -> str:
    """Return when each section ran, how long, and what the load was."""
    fastest = {
        processor: min(one.run.work[1] for one in some)
        for processor, some in groupby(sorted(results, key=_processor), key=_processor)
    }
    rows = []
    for one in results:
        work = [digits(taken / fastest[_processor(one)]) for taken in one.run.work]
        load = " to ".join(f"{each:.1f}" for each in one.run.load)
        rows.append(
            [f"`{one.name}`", one.run.date, f"{one.run.seconds:.0f}", load, work[0], work[2]]
        )
    text = (
        "Equal work is a fixed loop, timed in each round: its median and its worst, relative to the"
        " best of all sections.\n\n"
    )
    head = ["section", "date (UTC)", "took, s", "load", "equal work, median", "worst"]
    return text + table(head, rows)


def _processor(one: Result) -> str:
    return one.run.machine["processor"]
