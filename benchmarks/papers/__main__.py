"""Make published tables again: `python -m benchmarks.papers [PAPER …] [--data FOLDER] [--quick]`.

Governing rule: what was computed once is kept, so a run may be stopped at any time and goes on when
it is called again; the pages in docs/evidence are written from all that is there, but not by a
quick run.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.papers import gp_beta_2019, ivapr_2018, multiclass_2017, streams, venn_abers_2014
from benchmarks.papers.manifest import excuse
from benchmarks.papers.report import data_sets, ending
from benchmarks.papers.runner import Budget, kept, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.papers.paper import Paper
    from benchmarks.papers.runner import Task

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "evidence"
CACHE = ROOT / ".cache" / "papers"

MODULES = venn_abers_2014, ivapr_2018, multiclass_2017, gp_beta_2019, streams
PAPERS: dict[str, Paper] = {module.PAPER.name: module.PAPER for module in MODULES}


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument("--data", type=Path, help="the folder of the data sets, else ABERS_DATA")
    parser.add_argument("--quick", action="store_true", help="a minute, on few repetitions")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no task after these")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where answers are kept")
    parser.add_argument("--output", type=Path, help=f"the folder of pages; else {PAGES.name}")
    found = parser.parse_args(words)
    for name in found.papers:
        if name not in PAPERS:
            parser.error(f"no paper {name}; there are {', '.join(PAPERS)}")
    return found


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _possible(paper: Paper, folder: Path | None, *, quick: bool) -> list[Task]:
    """List the tasks whose data are there; say of each missing set that it is."""
    missing = set()
    for name, file in paper.sets.items():
        why = excuse(folder, file)
        if why:
            missing.add(name)
            _say(f"{paper.name}: without {why}")
    return [task for task in paper.tasks(quick=quick) if task.spec.get("data") not in missing]


def main(words: Sequence[str] | None = None) -> None:
    """Run what is missing, and write the pages."""
    arguments = _arguments(words)
    folder = arguments.data or Path(os.environ.get("ABERS_DATA", ""))
    output = arguments.output or (None if arguments.quick else PAGES)
    for name in arguments.papers or PAPERS:
        paper = PAPERS[name]
        tasks = _possible(paper, folder if folder.is_dir() else None, quick=arguments.quick)
        budget = Budget(arguments.processes, arguments.minutes)
        run(tasks, folder, arguments.cache, budget)
        planned = paper.tasks(quick=arguments.quick)
        answers = kept(arguments.cache, planned)
        page = paper.page(answers)
        markdown = "\n".join([page.markdown, data_sets(paper.sets), ending(planned, answers)])
        if output is None:
            sys.stdout.write(markdown)
            continue
        output.mkdir(parents=True, exist_ok=True)
        for file, text in {f"{name}.md": markdown, **page.figures}.items():
            (output / file).write_text(text, encoding="utf-8")
        _say(f"{name}: wrote {output / name}.md")


if __name__ == "__main__":
    main()
