"""Make published tables again: `python -m benchmarks.papers [PAPER …] [--data FOLDER] [--quick]`.

What was computed once is kept in docs/evidence/answers, so a run may be stopped at
any time and goes on when it is called again; the pages are written from all that is there. A quick
run computes its tasks anew, keeps nothing, and prints its pages.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.papers import (
    conformal_idr_2025,
    gp_beta_2019,
    ivapr_2018,
    multiclass_2017,
    streams,
    venn_abers_2014,
    venn_conformal_2025,
    weka,
)
from benchmarks.papers.manifest import excuse
from benchmarks.papers.report import data_sets, ending, foldings, missing
from benchmarks.papers.runner import Budget, kept, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.papers.paper import Paper
    from benchmarks.papers.runner import Answer, Task

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "evidence"

MODULES = (
    *(venn_abers_2014, ivapr_2018, multiclass_2017, gp_beta_2019),
    *(conformal_idr_2025, venn_conformal_2025, streams),
)
PAPERS: dict[str, Paper] = {module.PAPER.name: module.PAPER for module in MODULES}


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument("--data", type=Path, help="the folder of the data sets, else ABERS_DATA")
    parser.add_argument("--quick", action="store_true", help="a minute, on few repetitions")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no task after these")
    where = f"the folder of pages, and of answers in it; else {PAGES.name}"
    parser.add_argument("--output", type=Path, help=where)
    found = parser.parse_args(words)
    for name in found.papers:
        if name not in PAPERS:
            parser.error(f"no paper {name}; there are {', '.join(PAPERS)}")
    return found


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _possible(paper: Paper, tasks: list[Task], folder: Path | None) -> list[Task]:
    """List the tasks that can be done here; say what is missing for the others, each in a line."""
    missing = set()
    for name, file in paper.sets.items():
        why = excuse(folder, file)
        if why:
            missing.add(name)
            _say(f"{paper.name}: without {why}")
    sources = {task.spec.get("source") for task in tasks}
    if "weka" in sources and not weka.available():
        sources.discard("weka")
        _say(f"{paper.name}: without Weka: {weka.JAR} or javac is missing")
    return [
        task
        for task in tasks
        if task.spec.get("data") not in missing and task.spec.get("source") in sources
    ]


def main(words: Sequence[str] | None = None) -> None:
    """Run what is missing, and write the pages."""
    arguments = _arguments(words)
    folder = arguments.data or Path(os.environ.get("ABERS_DATA", ""))
    budget = Budget(arguments.processes, arguments.minutes)
    with ExitStack() as stack:
        output = arguments.output or PAGES
        if arguments.quick and not arguments.output:
            output = Path(stack.enter_context(TemporaryDirectory()))
        for name in arguments.papers or PAPERS:
            paper = PAPERS[name]
            tasks = paper.tasks(quick=arguments.quick)
            possible = _possible(paper, tasks, folder if folder.is_dir() else None)
            file = output / "answers" / f"{name}.jsonl"
            there = kept(file, possible)
            if len(there) < len(possible):
                _say(f"{name}: {missing(possible, there)}")
            run(possible, folder, file, budget)
            _write(paper, tasks, kept(file, tasks), output)
            if arguments.quick:
                sys.stdout.write((output / f"{name}.md").read_text(encoding="utf-8"))


def _write(paper: Paper, tasks: list[Task], answers: dict[str, Answer], output: Path) -> None:
    page = paper.page(answers)
    data = [data_sets(paper.sets)] if paper.sets else []
    parts = page.markdown, *data, ending(paper.name, tasks, answers)
    text = foldings("\n".join(parts))
    for file, content in {f"{paper.name}.md": text, **page.figures}.items():
        (output / file).write_text(content, encoding="utf-8")
    _say(f"{paper.name}: wrote {output / paper.name}.md")


if __name__ == "__main__":
    main()
