"""Run the benchmarks: `python -m benchmarks [--quick] [--only SECTION …] [--profile]`.

Only a whole run writes the pages in docs/. Any other run prints, and writes only to a given path.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from abers import backend
from benchmarks import (
    agreement,
    arrow,
    conformal,
    cross,
    distribution,
    floor,
    footprint,
    growth,
    hostile,
    hotspots,
    journal,
    live,
    many_models,
    monitors,
    multiclass,
    predictive,
    processor,
    record_formats,
    scrape,
    service,
    single_events,
    starts,
    unchanged,
    wrapped,
)
from benchmarks.machine import description
from benchmarks.page import Section
from benchmarks.plan import FULL, QUICK, Plan
from benchmarks.rivals import ROOT, compiler
from benchmarks.targets import figures
from benchmarks.timing import NOISE, keep_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

PAGE = ROOT / "docs" / "benchmarks.md"
STREAMS_PAGE = ROOT / "docs" / "benchmarks_streams.md"

SECTIONS: dict[str, Callable[[Plan], Section]] = {
    "prequential": growth.prequential,
    "agreement": lambda _: agreement.agreement(),
    "one": growth.one_at_a_time,
    "unchanged": unchanged.unchanged,
    "window": growth.sliding_window,
    "hostile": hostile.hostile_orders,
    "memory": footprint.memory,
    "saving": footprint.saving,
    "floor": floor.floor,
    "cross": cross.cross,
    "multiclass": multiclass.multiclass,
    "wrapped": wrapped.wrapped,
    "predictive": predictive.predictive,
    "distribution": distribution.distribution,
    "conformal": conformal.conformal,
    "stream": processor.stream,
    "arrow": arrow.arrow,
    "journal": journal.journal,
    "models": many_models.models,
    "monitors": monitors.monitors,
    "single": single_events.single_events,
    "formats": record_formats.record_formats,
    "service": service.service,
    "scrape": scrape.scrape,
    "live": live.live,
    "start": starts.starts,
}

STREAMS = (
    *("stream", "arrow", "journal", "models", "monitors", "single"),
    *("formats", "service", "scrape", "live", "start"),
)

HEAD = """\
# Benchmarks

After this page you know how fast abers is compared with the alternatives, how much memory it takes,
and on which machine; [streams and services](benchmarks_streams.md) have a page of their own.

All times come from one run of `make bench`: one process, the same seeded streams for all
contenders, which take turns after a warm-up. A cell is the median of the rounds, with their range.
The allocator keeps freed memory{kept}, which halves the cost of the refits in Python. The
[targets](#targets) of the project are at the end. The contenders:

- **abers native**, the C++ core, and **abers reference**, the same contract in plain Python;
- **smart brute**, six lines of Python: two sorted numpy arrays, `np.insert`, and two
  `scipy.optimize.isotonic_regression` a query;
- **venn-abers**, the package, through its inner functions, refitted after each label;
- **batch PAVA in C++**, the refit of smart brute as compiled code without allocation.
"""

STREAMS_HEAD = """\
# Benchmarks of streams and services

After this page you know how many events a second a stream or a service takes, and what monitors,
snapshots, formats, metrics and the live page cost. The run, its [targets](benchmarks.md#targets)
and its [machine](benchmarks.md#the-machine) are those of [Benchmarks](benchmarks.md): a cell is the
median of the rounds, with their range.
"""


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds on few observations")
    parser.add_argument(
        "--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=", ".join(SECTIONS)
    )
    parser.add_argument("--profile", action="store_true", help="add where the native core spends")
    parser.add_argument("--output", type=Path, help=f"the page; for a whole run {PAGE.name}")
    return parser.parse_args(words)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _measure(chosen: dict[str, Callable[[Plan], Section]], plan: Plan) -> dict[str, Section]:
    sections: dict[str, Section] = {}
    for name, make in chosen.items():
        _say(f"benchmarks: {name} …")
        NOISE.listen()
        started = perf_counter()
        sections[name] = make(plan)
        _say(f"benchmarks: {name} took {perf_counter() - started:.1f} s")
    values = {key: value for one in sections.values() for key, value in one.values.items()}
    return sections | {
        "targets": figures(values),
        "machine": Section("The machine", description(), {}),
    }


def _page(head: str, sections: Iterable[Section]) -> str:
    return "\n".join([head, *(section.markdown() for section in sections)])


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    arguments = _arguments(words)
    if backend() != "native":
        sys.exit("benchmarks: abers runs on its reference; they compare the native core")
    if compiler() is None:
        _say("benchmarks: no C++ compiler: without batch PAVA and the bare containers")
    kept = "" if keep_memory() else " (this one could not be)"
    chosen = {name: SECTIONS[name] for name in arguments.only or SECTIONS}
    if arguments.profile:
        chosen["profile"] = hotspots.profile
    sections = _measure(chosen, QUICK if arguments.quick else FULL)
    head = HEAD.format(kept=kept)
    page = _page(head, sections.values())
    sys.stdout.write(page)
    pages = {}
    if arguments.output is not None:
        pages[arguments.output] = page
    elif not arguments.quick and not arguments.only:
        pages[STREAMS_PAGE] = _page(STREAMS_HEAD, [sections.pop(name) for name in STREAMS])
        pages[PAGE] = _page(head, sections.values())
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
        _say(f"benchmarks: wrote {path}")


if __name__ == "__main__":
    main()
