"""Cost of the default monitors of a model, in the processor they are part of.

The same batches go through a processor with monitors and one without, in turns. A cost is the
difference of one round, per observation or label, in CPU time of the processor alone.
"""

from __future__ import annotations

from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.stream import Events, Label, Observation, Processor, Settings
from benchmarks.page import Key, Section, size, table
from benchmarks.streams import SEED
from benchmarks.timing import NOISE, Spread, undisturbed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.stream import Event
    from benchmarks.plan import Plan

COST, SHARE = "cost of monitors", "share of monitors"
BINARY, CLASSES, NUMBERS = "two classes", "five classes", "regression"
LATE = 1_000  # observations between an observation and its label
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
NAMES = ("a", "b", "c", "d", "e")
_MICRO = 1e6


class Watched(NamedTuple):
    """A stream that is monitored."""

    task: str
    models: int
    batch: int  # events

    @property
    def name(self) -> str:
        """Name it as its figures are named."""
        return self.task if self.models == 1 else f"{self.task}, {self.models} models"


STREAMS = (
    Watched(BINARY, 1, 500),
    Watched(BINARY, 1, 2_000),
    Watched(BINARY, 100, 2_000),
    Watched(CLASSES, 1, 2_000),
    Watched(NUMBERS, 1, 2_000),
)
_SETTINGS: dict[str, dict[str, Any]] = {
    BINARY: {"scores": "probability"},
    CLASSES: {"task": "multiclass", "classes": NAMES, "scores": "probability"},
    NUMBERS: {
        "task": "regression",
        "quantiles": _LEVELS,
        "grid": tuple(np.arange(1, 20) / 20),
    },
}


def monitors(plan: Plan) -> Section:
    """Measure processors with and without monitors."""
    n = plan.replayed // 5
    rows: list[list[object]] = []
    values: dict[Key, Spread] = {}
    for stream in STREAMS:
        without, watching, cost, share = _beside(stream, n, plan.rounds)
        rows.append([stream.name, size(stream.batch), without, watching, cost, share])
        values[COST, stream.name, stream.batch] = cost
        values[SHARE, stream.name, stream.batch] = share
    body = (
        f"{size(n)} observations, each with its label {size(LATE)} later, through"
        " `Processor.take` without outcomes; µs of processor time an event. The share is of"
        " the time with monitors: by so much the rate of the processor falls.\n\n"
        + table(["", "events a batch", "without", "with monitors", "cost", "share"], rows)
    )
    return Section("Live monitors", body, values)


def _beside(stream: Watched, n: int, rounds: int) -> list[Spread]:
    batches = _batches(stream, n)
    found: list[list[float]] = []
    for _ in range(rounds):
        NOISE.listen()
        without, watching = (
            _MICRO * _run(batches, stream, watch=watch) / (2 * n) for watch in (False, True)
        )
        cost = watching - without
        found.append([without, watching, cost, cost / watching])
    return [Spread.of(column) for column in zip(*found, strict=True)]


def _run(batches: list[Events], stream: Watched, *, watch: bool) -> float:
    processor = Processor(Settings(**_SETTINGS[stream.task], monitors=watch), outcomes=False)
    with undisturbed():
        started = process_time()
        for batch in batches:
            processor.process_batch(batch)
        return process_time() - started


def _batches(stream: Watched, n: int) -> list[Events]:
    made = [*arriving(stream, n)]
    return [Events.of(made[at : at + stream.batch]) for at in range(0, len(made), stream.batch)]


def arriving(stream: Watched, n: int) -> Iterator[Event]:
    """Return observations, and the label of each after so many further ones."""
    scores, values = _drawn(stream.task, n)
    for i in range(n + LATE):
        if i < n:
            yield Observation(f"{i:016x}", 2 * i, f"m{i % stream.models}", scores[i])
        if (j := i - LATE) >= 0:
            yield Label(f"{j:016x}", 2 * i + 1, f"m{j % stream.models}", values[j])


def _drawn(task: str, n: int) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(SEED)
    if task == CLASSES:
        rows = rng.dirichlet(np.ones(len(NAMES)), n)
        beyond = rows.cumsum(axis=1) > rng.random((n, 1))
        labels = [NAMES[k] for k in beyond.argmax(axis=1).tolist()]
        return [dict(zip(NAMES, row, strict=True)) for row in rows.tolist()], labels
    scores = rng.random(n)
    if task == NUMBERS:
        return scores.tolist(), (scores + rng.normal(0.0, 0.1, n)).tolist()
    return scores.tolist(), (rng.random(n) < scores).astype(int).tolist()
