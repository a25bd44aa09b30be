"""Run the benchmarks: `python -m benchmarks [--quick] [--only SECTION … | --page]`.

Each section is printed and written to the results as soon as it is measured, and the pages are made
of them, so a whole measurement can be made in parts. A quick run has results of its own.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from abers import backend
from benchmarks.machine import load, machine
from benchmarks.page import wrapped
from benchmarks.pages import written
from benchmarks.plan import FULL, QUICK
from benchmarks.results import Result, Run, keep
from benchmarks.rivals import ROOT, compiler
from benchmarks.sections import NAMES, SECTIONS
from benchmarks.timing import NOISE, keep_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.plan import Plan

RESULTS = ROOT / "docs" / "benchmarks.jsonl"
QUICK_RESULTS = ROOT / "build" / "benchmarks" / "quick" / "benchmarks.jsonl"


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds on few observations")
    parser.add_argument(
        "--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=", ".join(SECTIONS)
    )
    parser.add_argument("--page", action="store_true", help="measure nothing, only make the pages")
    parser.add_argument(
        "--results", type=Path, help="the results; the pages go into the same folder"
    )
    return parser.parse_args(words)


def _say(text: str) -> None:
    sys.stderr.write(f"benchmarks: {text}\n")
    sys.stderr.flush()


def measured(name: str, plan: Plan) -> Result:
    """Measure a section."""
    NOISE.begin()
    before, started = load(), perf_counter()
    section = SECTIONS[name](plan)
    seconds = round(perf_counter() - started, 1)
    work = NOISE.spread()
    date = datetime.now(UTC).date().isoformat()
    return Result.of(name, section, Run(date, seconds, (before, load()), work, machine()))


def main(words: Sequence[str] | None = None) -> None:
    """Measure, keep each result, and write the pages."""
    arguments = _arguments(words)
    path = arguments.results or (QUICK_RESULTS if arguments.quick else RESULTS)
    if not arguments.page:
        if backend() != "native":
            sys.exit("benchmarks: abers runs on its reference; they compare the native core")
        if compiler() is None:
            _say("no C++ compiler: without the rivals in C++")
        if not keep_memory():
            _say("the allocator gives memory back, so refits in Python take longer")
        for name in arguments.only or NAMES:
            _say(f"{name} …")
            result = measured(name, QUICK if arguments.quick else FULL)
            keep(path, NAMES, result)
            _say(f"{name} took {result.run.seconds} s")
            sys.stdout.write(f"{wrapped(result.section.markdown())}\n")
            sys.stdout.flush()
    for page in written(path):
        _say(f"wrote {page}")


if __name__ == "__main__":
    main()
