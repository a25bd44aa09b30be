"""The journal of a service: cost of writing, of restoring, and of saving while it runs.

A restore is measured as a whole: a snapshot is loaded, and the entries after it are decoded and
applied.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from abers.stream import Events, JournalEntry, Processor, Settings
from benchmarks.events import LATE, arriving
from benchmarks.page import Key, Section, size, table
from benchmarks.paused import BATCH, batch, holding
from benchmarks.rivals import ROOT
from benchmarks.timing import Spread, in_turns, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.plan import Plan

    Part = tuple[str, dict[Key, Spread]]

TAKE, NOTED, ADDED = "process_batch", "process_logged", "share added"
PAUSE, RESTORE = "pause", "snapshot and tail"
ONE_BY_ONE, TOGETHER = "apply", "apply_many"
SIZES = (20, 500, 2_000)  # events of a batch
_SMALL = 500  # entries of one event
_TRIES = 5  # at what takes a second each


def journal(plan: Plan) -> Section:
    """Measure writing, pauses and restoring."""
    parts = [_writing(plan), _pausing(plan), _restoring(plan)]
    values = {key: spread for _, found in parts for key, spread in found.items()}
    return Section("The journal of a service", "".join(body for body, _ in parts), values)


def _writing(plan: Plan) -> Part:
    blocks = max(2, plan.replayed // LATE // 10)
    events = [event for block in range(blocks) for event in arriving(block, blocks)]
    rows: list[list[object]] = []
    values: dict[Key, Spread] = {}
    for width in SIZES:
        batches = [Events.of(events[at : at + width]) for at in range(0, len(events), width)]
        found = _beside(batches, len(events), plan.rounds)
        values |= {("journal", name, width): spread for name, spread in found.items()}
        rows.append([size(width), *found.values()])
    body = (
        "### Writing down what was decided\n\nMicroseconds an event, half observations and half"
        f" labels, each {size(LATE)} later, without outcomes; the share is of rounds in turns,"
        " encoding not counted.\n\n" + table(["events a batch", TAKE, NOTED, ADDED], rows)
    )
    return body, values


def _beside(batches: list[Events], events: int, rounds: int) -> dict[str, Spread]:
    shares: list[float] = []
    last = 0.0

    def run(name: str) -> float:
        nonlocal last
        processor = Processor(outcomes=False)
        call: Callable[[Events], object] = getattr(processor, name)
        found = 1e6 * seconds(lambda: [call(one) for one in batches]) / events
        if name == NOTED:
            shares.append(found / last - 1.0)
        last = found
        return found

    spreads = in_turns(rounds, {name: partial(run, name) for name in (TAKE, NOTED)})
    return {**spreads, ADDED: Spread.of(shares)}


def _pausing(plan: Plan) -> Part:
    n = plan.large
    command = [sys.executable, "-m", "benchmarks.paused", str(n), str(plan.rounds)]
    found = json.loads(subprocess.check_output(command, cwd=ROOT))  # noqa: S603 - of ours
    spreads = {name: Spread.of(times) for name, times in found.items()}
    body = (
        f"### Snapshots while the loop runs\n\n{size(n)} labels and {size(n)} observations"
        " waiting, in a process of its own. The loop stops while the process is"
        f" copied; then it takes batches of {size(BATCH)} events, and the slowest is shown."
        " Milliseconds.\n\n"
        + table(
            ["", "the loop stops", "slowest batch meanwhile", "as many without", "done after, s"],
            [["", *(spreads[name] for name in ("pause", "copied", "alone", "seconds"))]],
        )
    )
    return body, {(PAUSE, "loop", n): spreads["pause"]}


def _restoring(plan: Plan) -> Part:
    n, waiting = plan.large, max(LATE, plan.large // 10)
    settings = Settings(max_pending=2 * waiting, dedup_max_ids=n)
    live = holding(n, waiting, settings)
    blob = live.snapshot()
    tail = [
        msgspec.msgpack.encode(live.process_logged(batch(number, n, waiting))[1])
        for number in range(waiting // BATCH)
    ]
    state = live.state_bytes()

    def restored(entries: list[bytes]) -> Processor:
        processor = Processor.restore(blob, settings, outcomes=False)
        for entry in entries:
            processor.apply(msgspec.msgpack.decode(entry, type=JournalEntry))
        return processor

    if restored(tail).state_bytes() != state:
        msg = "the restored processor differs"
        raise RuntimeError(msg)
    names = {"snapshot": [], RESTORE: tail}
    spreads = in_turns(
        min(plan.rounds, _TRIES),
        {name: partial(seconds, partial(restored, some)) for name, some in names.items()},
    )
    body = (
        f"### Restoring\n\n{size(n)} labels, {size(waiting)} observations waiting,"
        f" {size(n)} finished ids remembered, and then {size(len(tail) * BATCH)} events in"
        f" entries of {size(BATCH)}; seconds.\n\n"
        + table(["", *spreads], [["", *spreads.values()]])
    )
    small, values = _small(plan)
    return body + small, values | {
        ("restored", name, n): spread for name, spread in spreads.items()
    }


def _small(plan: Plan) -> Part:
    """Apply entries of one event each, one by one and together."""
    events = [event for block in range(2) for event in arriving(block, 2)][:_SMALL]
    live = Processor(outcomes=False)
    entries = [live.process_logged(Events.of([event]))[1] for event in events]

    def one_by_one() -> None:
        other = Processor(outcomes=False)
        for entry in entries:
            other.apply(entry)

    calls = {
        ONE_BY_ONE: one_by_one,
        TOGETHER: lambda: Processor(outcomes=False).apply_many(entries),
    }
    spreads = in_turns(
        min(plan.rounds, _TRIES),
        {name: partial(_microseconds, call, len(entries)) for name, call in calls.items()},
    )
    body = f"\n{size(len(entries))} entries of one event each; microseconds an entry.\n\n" + table(
        ["", *spreads], [["", *spreads.values()]]
    )
    return body, {("small entries", name, len(entries)): one for name, one in spreads.items()}


def _microseconds(call: Callable[[], object], count: int) -> float:
    return 1e6 * seconds(call) / count
