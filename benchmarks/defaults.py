"""The default settings, with monitors and tests: single events, batches, and a replay from file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from abers.stream import Events, Processor
from abers_connectors.config.model import load
from abers_connectors.replay.job import job_of_config
from benchmarks.by_hand import HAND, ByHand
from benchmarks.events import LATE, ONE, arriving, write_files
from benchmarks.page import Key, Section, size, table
from benchmarks.timing import Spread, cpu_seconds, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.stream import Event
    from benchmarks.plan import Plan

DEFAULTS, ABERS = "default settings", "abers"
SINGLE, BATCHES, REPLAY = "`process(event)`", "`process_batch`", "`abers replay` of JSON Lines"
_EVENTS = 2_000  # of a batch
_TENTH = 10  # of what is replayed elsewhere: a rival takes a millisecond an event there


def defaults(plan: Plan) -> Section:
    """Measure each way of taking a stream, in turns with the same by hand."""
    blocks = max(2, plan.replayed // _TENTH // LATE)
    n = blocks * LATE
    events = [event for block in range(blocks + 1) for event in arriving(block, blocks)]
    values: dict[Key, Spread] = {}
    with TemporaryDirectory() as folder:
        source = write_files(Path(folder), blocks)[ONE, "jsonl"]["input.observations"]
        calls: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            SINGLE: (partial(_one_by_one, events), partial(_by_hand, events)),
            BATCHES: (partial(_in_batches, events), partial(_by_hand, events)),
            REPLAY: (
                partial(_replayed, source, f"{folder}/abers.jsonl"),
                lambda: ByHand().replay(Path(source), Path(folder, "hand.jsonl")),
            ),
        }
        rows = []
        for name, pair in calls.items():
            turns = dict(zip((ABERS, HAND), pair, strict=True))
            found = in_turns(
                plan.rounds, {of: partial(_micros, call, len(events)) for of, call in turns.items()}
            )
            values |= {(f"{DEFAULTS}, {name}", of, n): one for of, one in found.items()}
            rows.append([name, *found.values()])
    body = (
        f"{size(n)} observations of one model and, {size(LATE)} observations later, their labels,"
        f" from the first on; batches have {size(_EVENTS)} events. µs of processor time an event."
        " Monitors and tests are on, as by default. *By hand* is what a team writes without abers:"
        " a dictionary of waiting scores and smart brute, without monitors and checks.\n\n"
        + table(["", ABERS, HAND], rows)
    )
    return Section("The default settings", body, values)


def _micros(call: Callable[[], object], events: int) -> float:
    return 1e6 * cpu_seconds(call) / events


def _by_hand(events: list[Event]) -> None:
    process = ByHand().process
    for event in events:
        process(event)


def _one_by_one(events: list[Event]) -> None:
    process = Processor().process
    for event in events:
        process(event)


def _in_batches(events: list[Event]) -> None:
    processor = Processor()
    for at in range(0, len(events), _EVENTS):
        processor.process_batch(Events.of(events[at : at + _EVENTS]))


def _replayed(source: str, target: str) -> None:
    flags: dict[str, object] = {"input.observations": source, "output.predictions": target}
    with job_of_config(load(flags=flags, environ={})).start() as run:
        for _ in run.run():
            pass
