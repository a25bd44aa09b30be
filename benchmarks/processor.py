"""The stream processor: its speed, its memory, and the time to save it.

Targets for the whole are measured on the whole, in their configuration; each figure of memory comes
from a fresh process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abers.stream import Processor, Settings
from benchmarks import kept
from benchmarks.events import LATE, labels, observations
from benchmarks.page import Key, Section, size, table
from benchmarks.replays import speed
from benchmarks.rivals import ROOT
from benchmarks.timing import Spread, digits, in_turns, seconds

if TYPE_CHECKING:
    from benchmarks.plan import Plan

    Part = tuple[str, dict[Key, Spread]]

ENTRIES = {
    "waiting, id of 16 characters": ("waiting", 16),
    "waiting, id of 36 characters": ("waiting", 36),
    "finished, id of 16 characters": ("finished", 16),
    "finished, id of 36 characters": ("finished", 36),
}
_TRIES = 5  # at saving: a second each


def stream(plan: Plan) -> Section:
    """Measure replays, memory, and saving."""
    parts = [speed(plan), _memory(plan), _saving(plan)]
    values = {key: spread for _, found in parts for key, spread in found.items()}
    return Section("The stream processor", "".join(body for body, _ in parts), values)


def _apart(*words: object) -> Any:  # noqa: ANN401 - the JSON of `kept`
    command = [sys.executable, "-m", "benchmarks.kept", *map(str, words)]
    return json.loads(subprocess.check_output(command, cwd=ROOT))  # noqa: S603 - of ours


def _memory(plan: Plan) -> Part:
    if not Path("/proc/self/statm").exists():
        return "### Memory\n\nNot measured: this system has no /proc/self/statm.\n\n", {}
    n, rows = plan.large, []
    values: dict[Key, Spread] = {}
    for name, (what, width) in ENTRIES.items():
        found = _apart(what, n, width)
        rows.append([name, *(digits(found[form]) for form in ("built", "trimmed"))])
        values["entry", name, n] = Spread.of([found["built"]])
    samples = [
        [size(events), digits(resident / 2**20)] for events, resident in _apart("stream", plan.long)
    ]
    body = (
        f"### Memory\n\nResident bytes an entry, {size(n)} of them, scores only, each kind in a"
        f" fresh process, events arriving {size(LATE)} at a time; *trimmed*: after `malloc_trim`."
        " A waiting observation has its score and its prediction with it; of a finished"
        " observation only the id is kept, to recognise duplicates.\n\n"
        + table(["", "resident", "resident, trimmed"], rows)
        + f"Resident memory over a stream, predictions encoded and thrown away:"
        f" `window = {size(kept.WINDOW)}`, as many finished ids remembered, and one label in"
        f" {kept.LOST} never comes, so that its observation expires.\n\n"
        + table(["events taken", "MiB"], samples)
    )
    return body, values


def _saving(plan: Plan) -> Part:
    n, settings = plan.large, Settings(max_pending=plan.large, dedup_max_ids=plan.large)
    processor = Processor(settings, outcomes=False)
    for block in range(n // LATE):
        processor.process_many([*observations(block), *labels(block)])
    for block in range(n // LATE, 2 * n // LATE):
        processor.process_many(observations(block))
    blob = processor.snapshot()
    spreads = in_turns(
        min(plan.rounds, _TRIES),
        {
            "snapshot": partial(seconds, processor.snapshot),
            "restore": partial(seconds, partial(Processor.restore, blob, settings)),
        },
    )
    values: dict[Key, Spread] = {(call, "processor", n): spread for call, spread in spreads.items()}
    body = (
        f"### Snapshots\n\n{size(n)} labels, {size(n)} observations waiting, and {size(n)}"
        " finished ids remembered; seconds.\n\n"
        + table(["snapshot", "restore", "MiB"], [[*spreads.values(), digits(len(blob) / 2**20)]])
    )
    return body, values
