"""How long the command takes to start: processor time of whole processes, which take turns."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.page import Key, Section, table
from benchmarks.timing import Spread, in_turns

if TYPE_CHECKING:
    from benchmarks.plan import Plan

ROWS = 10
START, REPLAY = "start", f"`abers replay` of {ROWS} rows of Parquet"
FLOOR = "the floor: `import numpy, pyarrow.parquet`"
_COMMAND = ("-m", "abers_connectors")
_FILE = "rows.parquet"
_WORDS = {
    REPLAY: (*_COMMAND, "replay", _FILE, "--delay=2"),
    FLOOR: ("-c", "import numpy, pyarrow.parquet"),
    "`abers --help`": (*_COMMAND, "--help"),
    "`abers --version`": (*_COMMAND, "--version"),
    "`import abers`": ("-c", "import abers"),
    "its floor: `import numpy`": ("-c", "import numpy"),
}


def starts(plan: Plan) -> Section:
    """Measure commands that have next to nothing to do; milliseconds."""
    with TemporaryDirectory() as folder:
        _write(Path(folder, _FILE))
        calls = {name: partial(_spent, folder, words) for name, words in _WORDS.items()}
        for call in calls.values():
            call()  # compiles what was never imported
        found = in_turns(plan.rounds, calls)
    values: dict[Key, Spread] = {(START, name, ROWS): spread for name, spread in found.items()}
    body = (
        "Whole processes, from the start of Python to their end. What they import takes nearly all"
        " of their time.\n\n"
    )
    return Section("Start", body + table(["process", "ms of a processor"], found.items()), values)


def _write(path: Path) -> None:
    scores = [(row + 1) / (ROWS + 1) for row in range(ROWS)]
    labels = [row % 2 for row in range(ROWS)]
    pq.write_table(pa.table({"score": scores, "label": labels}), path)


def _spent(folder: str, words: tuple[str, ...]) -> float:
    """Run a program; return its milliseconds of a processor."""
    before = getrusage(RUSAGE_CHILDREN)
    run = [sys.executable, *words]
    subprocess.run(run, cwd=folder, capture_output=True, check=True)  # noqa: S603 - of ours
    after = getrusage(RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
