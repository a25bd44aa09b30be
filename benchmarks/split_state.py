"""A saved state is split by model, compared with loading it: `python -m benchmarks.split_state`.

20,000 models (or the number that is given) of 20 labels each, with monitors and tests. Their
snapshot is read and split into 16 parts, these are sealed, and joined again; restoring loads each
model. The clock is that of the processor, and all take turns.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

from abers.stream import Processor, Settings
from abers.stream.repartition import join, split
from abers.stream.snapshot import Snapshot, read, write
from benchmarks.machine import description
from benchmarks.many_models import filled
from benchmarks.page import table
from benchmarks.timing import Spread, cpu_seconds, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable

MODELS, PARTS, ROUNDS = 20_000, 16, 5
READ, SEAL, JOIN, RESTORE = "read and split", "seal the parts", "join them", "restore"


def owner(model: str) -> int:
    """Return the part of a model."""
    return crc32(model.encode()) % PARTS


def split_of(blob: bytes) -> list[Snapshot]:
    """Read a snapshot, and split it."""
    return split(read(blob), PARTS, owner)


def sealed(parts: list[Snapshot]) -> list[bytes]:
    """Return the snapshots of parts."""
    return [b"".join(write(one, None, None, "")) for one in parts]


def micros(settings: Settings, models: int) -> dict[str, Spread]:
    """Return microseconds a model of each step."""
    blob = filled(settings, models).snapshot()
    parts = split_of(blob)
    calls: dict[str, Callable[[], object]] = {
        READ: partial(split_of, blob),
        SEAL: partial(sealed, parts),
        JOIN: partial(join, parts),
        RESTORE: partial(Processor.restore, blob, settings),
    }
    timed = {name: partial(_micros, call, models) for name, call in calls.items()}
    return in_turns(ROUNDS, timed)


def _micros(call: Callable[[], object], models: int) -> float:
    return 1e6 * cpu_seconds(call) / models


def main(models: int = MODELS) -> None:
    """Measure and print."""
    rows: list[list[object]] = []
    for name, settings in (
        ("merged", Settings(probability="merged", max_models=models)),
        ("protected", Settings(scores="probability", max_models=models)),
    ):
        found = micros(settings, models)
        share = found[RESTORE].median / found[READ].median
        rows.append([name, *found.values(), f"{share:.1f}"])
    head = ["µs of CPU a model", READ, SEAL, JOIN, RESTORE, "restore / read and split"]
    sys.stdout.write(f"{table(head, rows)}\n{description()}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
