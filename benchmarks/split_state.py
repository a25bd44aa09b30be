"""A saved state is split by model, compared with loading it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

from abers.stream import Processor, Settings
from abers.stream.repartition import join, split
from abers.stream.snapshot import Snapshot, read, write
from benchmarks.many_models import filled
from benchmarks.page import Key, Section, size, table
from benchmarks.timing import Spread, cpu_seconds, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.plan import Plan

PARTS, ROUNDS = 16, 5
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


def split_state(plan: Plan) -> Section:
    """Measure each step in turns; microseconds of processor time a model."""
    models = plan.large // 50
    rows: list[list[object]] = []
    values: dict[Key, Spread] = {}
    for name, settings in (
        ("merged", Settings(probability="merged", max_models=models)),
        ("protected", Settings(scores="probability", max_models=models)),
    ):
        found = _micros(settings, models, min(plan.rounds, ROUNDS))
        share = found[RESTORE].median / found[READ].median
        rows.append([name, *found.values(), f"{share:.1f}"])
        values |= {(f"split, {step}", name, models): one for step, one in found.items()}
    body = (
        f"A snapshot of {size(models)} models of 20 labels, with monitors and tests, is read and"
        f" split into {PARTS} parts; these are sealed, and joined again. Restoring loads each"
        " model. µs of processor time a model.\n\n"
        + table(["", READ, SEAL, JOIN, RESTORE, "restore / read and split"], rows)
    )
    return Section("A saved state, split by model", body, values)


def _micros(settings: Settings, models: int, rounds: int) -> dict[str, Spread]:
    blob = filled(settings, models).snapshot()
    parts = split_of(blob)
    calls: dict[str, Callable[[], object]] = {
        READ: partial(split_of, blob),
        SEAL: partial(sealed, parts),
        JOIN: partial(join, parts),
        RESTORE: partial(Processor.restore, blob, settings),
    }

    def micros(call: Callable[[], object]) -> float:
        return 1e6 * cpu_seconds(call) / models

    return in_turns(rounds, {name: partial(micros, call) for name, call in calls.items()})
