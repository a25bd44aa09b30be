"""From Arrow to Arrow: how fast one model without monitors predicts and learns.

The events are those of the replayed files, in record batches; the outputs are tables.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from abers.stream import Events, Observation, Processor, Settings
from benchmarks.events import LATE, arriving
from benchmarks.page import Key, Section, size, table
from benchmarks.timing import Spread, in_turns, seconds

if TYPE_CHECKING:
    from benchmarks.plan import Plan

ARROW = "Arrow to Arrow"
BATCHES = (2_000, 16_384, 65_536)  # rows
_THOUSAND = 1_000


def arrow(plan: Plan) -> Section:
    """Measure batches of several sizes in turns; thousand events a second."""
    blocks = plan.replayed // LATE
    events = _table(blocks)
    found = in_turns(
        plan.rounds, {size(rows): partial(_rate, events.to_batches(rows)) for rows in BATCHES}
    )
    values: dict[Key, Spread] = {("arrow", ARROW, rows): found[size(rows)] for rows in BATCHES}
    body = (
        f"{size(plan.replayed)} observations with their scores and, {size(LATE)} observations"
        " later, their labels, an event each, through `Events.from_arrow`, `process_batch` and"
        " `to_arrow`. One model, no monitors, no outcomes, ids of 16 characters.\n\n"
        + table(["rows of a batch", "thousand events a second"], found.items())
    )
    return Section("Arrow", body, values)


def _table(blocks: int) -> pa.Table:
    """Return the events of so many blocks, and their labels, in one table."""
    events = [event for block in range(blocks + 1) for event in arriving(block, blocks)]
    return pa.table(
        {
            "id": [event.id for event in events],
            "time": [event.time for event in events],
            "model": [event.model for event in events],
            "score": [event.score if type(event) is Observation else None for event in events],
            "label": [getattr(event, "value", None) for event in events],
        }
    )


def _rate(batches: list[pa.RecordBatch]) -> float:
    taken = seconds(partial(_run, batches))
    rows: int = sum(batch.num_rows for batch in batches)
    return rows / taken / _THOUSAND


def _run(batches: list[pa.RecordBatch]) -> None:
    processor = Processor(Settings(monitors=False), outcomes=False)
    for batch in batches:
        processor.process_batch(Events.from_arrow(batch)).to_arrow()
