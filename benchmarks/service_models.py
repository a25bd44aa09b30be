"""The work of a service a record, by models and tasks.

A transaction reads JSON records of all tasks of a process, predicts and learns with the default
settings, encodes the predictions, and makes the changelog. No broker takes part, so the price of a
client is the rest of what `benchmarks.service` measures. Processor time, all cases in turns.
"""

from __future__ import annotations

import json
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers_connectors.config.model import load
from abers_connectors.runtime import task as changelog
from abers_connectors.runtime.application import Application
from abers_connectors.runtime.batches import MergedRecords
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.serializer import Serializer
from abers_connectors.runtime.task import StreamTask
from benchmarks.page import Key, Section, size, table
from benchmarks.timing import Spread, cpu_seconds, in_turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.plan import Plan

TASKS = "tasks"
_CASES = (  # models, tasks, records of a transaction
    *((1, 1, 2_000), (50, 1, 2_000), (3_000, 1, 2_000)),
    *((3_000, 4, 2_000), (3_000, 4, 8_000), (3_000, 16, 2_000), (3_000, 16, 8_000)),
)
_RECORDS, _ROUNDS = 48_000, 7  # of a measurement
_LATE = 8_000  # observations before a label comes
_START = 1_700_000_000_000
_MAX_BYTES = 1_000_000


class _Record(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


class Service:
    """The tasks of a process, without a client; each model belongs to one of them."""

    def __init__(self, models: int, tasks: int, records: int) -> None:
        topics = {"observations": "scores", "labels": "labels", "predictions": "predictions"}
        flags = {f"kafka.{name}": topic for name, topic in topics.items()}
        flags |= {"kafka.bootstrap_servers": "localhost:9092"}
        limits: dict[str, object] = {"limits.max_models": models}
        config = load(flags={**flags, **limits, "task.scores": "probability"}, environ={})
        application = Application.of(config)
        self._tasks = [StreamTask.empty(application, n, (0, 0)) for n in range(tasks)]
        self._deserializer = Deserializer(config, partitions=tasks)
        self._serializer = Serializer(max_bytes=_MAX_BYTES)
        self._stream, self._records = _stream(models), records
        for _ in range(0, 6 * models + 2 * _LATE, records):  # until each model has had labels
            self.transaction(self._next())

    def measured(self) -> float:
        """Return microseconds of processor time a record."""
        batches = [self._next() for _ in range(_RECORDS // self._records)]
        taken = cpu_seconds(lambda: deque(map(self.transaction, batches), maxlen=0))
        return 1e6 * taken / sum(len(part.records) for batch in batches for part in batch)

    def transaction(self, batch: Sequence[MergedRecords]) -> int:
        """Process a batch of each task; return the bytes that a client would send."""
        size = 0
        for task, part in zip(self._tasks, batch, strict=True):
            if part.records:
                result = task.process(part, self._deserializer, self._serializer)
                sent = [one for some in result.output_records.values() for one in some.values]
                size += sum(map(len, (*sent, *changelog.encode(result.changelog_record))))
        return size

    def _next(self) -> list[MergedRecords]:
        """Return the records of a transaction, by task."""
        parts = [MergedRecords([], []) for _ in self._tasks]
        for model, which, record in islice(self._stream, self._records):
            part = parts[model % len(parts)]
            part.records.append(record)
            part.inputs.append(which)
        return parts


def _stream(models: int) -> Iterator[tuple[int, int, _Record]]:
    """Yield observations of random models, and their labels later, in turn."""
    random, number = np.random.default_rng(1), 0
    waiting: deque[tuple[str, int, int]] = deque()
    while True:
        drawn = random.integers(0, models, 1000), random.random(1000), random.random(1000)
        for model, score, chance in zip(*(one.tolist() for one in drawn), strict=True):
            number += 1
            id_ = f"{number:032x}"
            yield model, 0, _record(number, id_, model, score=score)
            waiting.append((id_, model, int(chance < score)))
            if len(waiting) > _LATE:
                id_, of, label = waiting.popleft()
                yield of, 1, _record(number, id_, of, label=label)


def _record(number: int, id_: str, model: int, **given: float) -> _Record:
    """Return a record of an observation or of its label."""
    name, time = f"model{model}", _START + number
    value = json.dumps({"id": id_, "time": time, "model": name, **given}).encode()
    return _Record("scores", 0, number, time, name.encode(), value)


def tasks(plan: Plan) -> Section:
    """Measure all cases in turns; microseconds of processor time a record."""
    whole = plan.rounds >= _ROUNDS
    chosen = _CASES if whole else _CASES[:2]
    cases = {str(case): partial(Service(*case).measured) for case in chosen}
    found = in_turns(_ROUNDS if whole else 1, cases)
    (first, *_) = (one.median for one in found.values())
    rows = [
        [f"{size(models)} models, {tasks} tasks", size(records), one, f"{one.median / first:.2f}"]
        for (models, tasks, records), one in zip(chosen, found.values(), strict=True)
    ]
    values: dict[Key, Spread] = {
        (TASKS, f"{models} models, {tasks} tasks", records): one
        for (models, tasks, records), one in zip(chosen, found.values(), strict=True)
    }
    body = (
        "The work of a service without its client: JSON records of all tasks of a process are"
        " decoded, predicted and learned with protected probabilities, and encoded with the"
        " changelog. µs of processor time a record.\n\n"
        + table(["", "records a transaction", "µs a record", "to the first"], rows)
    )
    return Section("Models and tasks of a service", body, values)
