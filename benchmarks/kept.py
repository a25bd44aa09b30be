"""Resident memory of a stream processor, measured in a process of its own.

Only the growth by the processor is counted, as in `resident`. For a long stream, events are made
when they are read, so nothing else can grow. Run as `python -m benchmarks.kept WHAT N [WIDTH]`;
prints JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from abers.stream import Events, Label, Prediction, Processor, Settings
from abers_connectors.files import FileFormat, packer
from abers_connectors.replay.run import Run
from abers_connectors.sinks.destination import OutputStream
from abers_connectors.sinks.rows import TextSink, row_encoder
from abers_connectors.sources.base import Batch, Origin
from benchmarks.events import LATE, arriving, labels, observations
from benchmarks.resident import resident, trim

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.stream import Event
    from abers_connectors.sources.base import Position

WINDOW = 100_000  # labels kept, ids remembered, and milliseconds waited over a long stream
LOST = 100  # one label in so many never comes
POINTS = 10


def filled(what: str, blocks: int, width: int) -> Processor:
    """Let observations wait, or be finished; a window of one label holds next to nothing else."""
    most = blocks * LATE
    settings = Settings(window=1, max_pending=most, dedup_max_ids=most, monitors=False)
    processor = Processor(settings, outcomes=False)
    for block in range(blocks):
        processor.process_many(observations(block, width))
        if what == "finished":
            processor.process_many(labels(block, width))
    return processor


def bytes_each(what: str, n: int, width: int) -> dict[str, float]:
    """Measure bytes an entry: as built, and after a trim."""
    filled(what, 1, width)
    trim()
    before = resident()
    processor = filled(what, n // LATE, width)
    built = resident()
    trimmed = trim()
    waiting = processor.waiting[0]
    if waiting != (0 if what == "finished" else n):
        msg = f"{waiting} observations wait, of {n}"
        raise RuntimeError(msg)
    return {
        "built": (built - before) / n,
        "trimmed": (resident() - before) / n if trimmed else float("nan"),
    }


class _Made:
    """A stream that is made as it is read."""

    name = "made"

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks

    def batches(self, _position: Position | None = None) -> Iterator[Batch]:
        """Return a block of observations, and the labels that come among them, at a time."""
        for block in range(self._blocks + 1):
            events = [event for event in arriving(block, self._blocks) if not _is_lost(event)]
            columns = Events.of(events)
            yield Batch(columns, (), {"block": block}, len(events), lambda _: Origin("made", ""))

    def fraction(self) -> None:
        """Return that there are no readers."""


def _is_lost(event: Event) -> bool:
    return type(event) is Label and int(event.id, 16) % LOST == 0


def over_a_stream(n: int) -> list[tuple[int, int]]:
    """Sample events taken and resident bytes, ten times over a stream of n observations."""
    settings = Settings(window=WINDOW, dedup_max_ids=WINDOW, label_timeout=WINDOW)
    events = 2 * n - n // LOST
    sink = TextSink(
        OutputStream(os.devnull), row_encoder(Prediction, FileFormat("jsonl", None)), packer(None)
    )
    source = _Made(n // LATE)
    samples: list[tuple[int, int]] = []
    with Run(source, Processor(settings), {"predictions": sink}) as run:
        for records in run.run():
            if records >= (len(samples) + 1) * events / POINTS:
                samples.append((records, resident()))
    return samples


if __name__ == "__main__":
    _, WHAT, N, *REST = sys.argv
    found = over_a_stream(int(N)) if WHAT == "stream" else bytes_each(WHAT, int(N), *map(int, REST))
    sys.stdout.write(json.dumps(found))
