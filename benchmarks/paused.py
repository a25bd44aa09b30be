"""How long a snapshot in the background stops the loop, measured in a process of its own.

A fork takes time in proportion to the memory of its process, so the process holds only a processor.
The loop processes batches meanwhile, and each is timed too, because memory pages that both
processes write to are copied. Run as `python -m benchmarks.paused N ROUNDS`; prints JSON, in
milliseconds.
"""

from __future__ import annotations

import gc
import json
import sys
from time import perf_counter
from typing import TYPE_CHECKING

from abers.stream import Events, Processor, Settings
from abers.stream.background_snapshot import BackgroundSnapshotter
from benchmarks.events import LATE, labels, observations

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = 1_000  # events


def holding(labelled: int, waiting: int, settings: Settings) -> Processor:
    """Make a processor that holds so many labels, while so many observations wait."""
    processor = Processor(settings, outcomes=False)
    for block in range(labelled // LATE):
        processor.process_batch(Events.of([*observations(block), *labels(block)]))
    for block in range(labelled // LATE, (labelled + waiting) // LATE):
        processor.process_batch(Events.of(observations(block)))
    return processor


def batch(number: int, labelled: int, waiting: int) -> Events:
    """Make the batch that comes next: half of it new, half labels of what waits."""
    half, block = number % 2 * BATCH // 2, number // 2
    new = observations((labelled + waiting) // LATE + block)[half : half + BATCH // 2]
    late = labels(labelled // LATE + block)[half : half + BATCH // 2]
    return Events.of([event for pair in zip(new, late, strict=True) for event in pair])


def pauses(n: int, rounds: int) -> dict[str, list[float]]:
    """Time forks, and the slowest batch with a copy and without."""
    processor = holding(n, n, Settings(max_pending=2 * n, dedup_max_ids=n))
    saver, number = BackgroundSnapshotter(lambda *job: sum(map(len, job[2]))), 0
    found: dict[str, list[float]] = {"pause": [], "copied": [], "alone": [], "seconds": []}

    def taken() -> float:
        nonlocal number
        events = batch(number, n, n)
        number += 1
        return _milliseconds(lambda: processor.process_logged(events))

    gc.disable()
    for _ in range(rounds):
        found["pause"].append(_milliseconds(lambda: saver.start(0, 0, processor.snapshot_pieces)))
        while_copied = [taken()]
        while saver.busy():
            while_copied.append(taken())
        found["copied"].append(max(while_copied))
        found["alone"].append(max(taken() for _ in while_copied))
        (saved,) = saver.finished()
        if saved.error is not None:
            raise RuntimeError(saved.error)
        found["seconds"].append(saved.seconds)
    return found


def _milliseconds(call: Callable[[], object]) -> float:
    started = perf_counter()
    call()
    return 1e3 * (perf_counter() - started)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(pauses(*map(int, sys.argv[1:]))))
