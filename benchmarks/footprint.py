"""Memory per observation, and the time to save and to restore.

Memory is the growth of a fresh process as the system reports it, compared with the size
that the object reports.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from abers import VennAbers
from benchmarks.page import Key, Section, size, table
from benchmarks.resident import RULES
from benchmarks.rivals import ROOT
from benchmarks.streams import ordinary
from benchmarks.timing import Spread, digits, in_turns, seconds

if TYPE_CHECKING:
    from benchmarks.plan import Plan


def memory(plan: Plan) -> Section:
    """Measure resident bytes an observation under every rule of forgetting."""
    title = "Memory"
    if not Path("/proc/self/statm").exists():
        return Section(title, "Not measured: this system has no /proc/self/statm.", {})
    rows: list[list[str]] = []
    values: dict[Key, Spread] = {}
    for rule in RULES:
        command = [sys.executable, "-m", "benchmarks.resident", rule, str(plan.large)]
        found = json.loads(subprocess.check_output(command, cwd=ROOT))  # noqa: S603
        bytes_each = {name: found[name] for name in ("built", "trimmed", "sizeof")}
        rows.append([rule, size(found["held"]), *map(digits, bytes_each.values())])
        for name, value in bytes_each.items():
            values[f"bytes {name}", rule, plan.large] = Spread.of([value])
    body = (
        "Bytes an observation, with unit weights except in one row, and distinct scores; each in a"
        " fresh process. Observations arrive a thousand at a time; where something is forgotten,"
        " 1.5 times as many arrive as are kept. *Resident*: the growth of the process, as built"
        " and after the allocator gave back free memory (`malloc_trim`); *own count*:"
        " `sys.getsizeof` of the core.\n\n"
        + table(["", "kept", "resident", "resident, trimmed", "own count"], rows)
    )
    return Section(title, body, values)


def saving(plan: Plan) -> Section:
    """Measure `to_bytes` and `from_bytes`."""
    stream = ordinary(plan.large)
    rows: list[list[object]] = []
    values: dict[Key, Spread] = {}
    for rule, window in (("no window", None), ("window", plan.large)):
        calibrator = VennAbers(window=window)
        calibrator.learn_many(stream.scores, stream.labels)
        blob = calibrator.to_bytes()
        spreads = in_turns(
            plan.rounds,
            {
                "to_bytes": partial(seconds, calibrator.to_bytes),
                "from_bytes": partial(seconds, partial(VennAbers.from_bytes, blob)),
            },
        )
        rows.append([rule, *spreads.values(), digits(len(blob) / plan.large)])
        values |= {(call, rule, plan.large): spread for call, spread in spreads.items()}
    body = f"{size(plan.large)} observations, seconds.\n\n" + table(
        ["", "to_bytes", "from_bytes", "bytes an observation"], rows
    )
    return Section("Saving and restoring", body, values)
