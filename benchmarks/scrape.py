"""Cost of counting for Prometheus, and of a scrape.

The scrape returns all metrics of a service in the format that Prometheus prefers. All parts of a
service run but the broker.
"""

from __future__ import annotations

import json
import random
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from abers.stream import Processor
from abers_connectors.config.model import load
from abers_connectors.runtime.checkpoint import Checkpoint
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.serializer import Serializer
from abers_connectors.runtime.status import Status
from abers_connectors.runtime.task import StreamTask
from abers_connectors.runtime.timestamp_merge import MergedRecords
from benchmarks.page import Key, Section, size, table
from benchmarks.timing import Spread, digits, in_turns, seconds

if TYPE_CHECKING:
    from abers_connectors.runtime.task import BatchResult
    from benchmarks.plan import Plan

COUNTING, SCRAPE = "counting", "scrape"
MODELS = (1, 100)
_BATCH = 1_000  # observations, each with its label
_ACCEPT = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


class OneRecord(NamedTuple):
    """A record of observations."""

    value: bytes
    offset: int
    topic: str = "scores"
    partition: int = 0
    timestamp: int = 1_700_000_000_000
    key: bytes | None = b"k"
    headers: tuple[tuple[str, bytes], ...] = ()


def scrape(plan: Plan) -> Section:
    """Measure counting and scrapes of few models and of many."""
    title = "Metrics"
    try:
        from abers_connectors.metrics.exposition import exposition  # noqa: PLC0415 - an extra
        from abers_connectors.metrics.service_metrics import registry_of  # noqa: PLC0415
    except ImportError:
        return Section(title, "Not measured: prometheus-client is not installed.", {})
    rows, values = [], dict[Key, Spread]()
    for models in MODELS:
        status, (task, work) = Status(60.0), _worked(models)
        status.batch_committed(task, work)
        status.update_evidence([task])
        registry = registry_of(status)
        text, _ = exposition(registry, _ACCEPT)
        found = in_turns(
            plan.rounds,
            {
                COUNTING: lambda: (
                    1e6 * seconds(partial(status.batch_committed, task, work)) / (2 * _BATCH)  # noqa: B023 - used within the turn
                ),
                SCRAPE: lambda: 1e3 * seconds(partial(exposition, registry, _ACCEPT)),  # noqa: B023
            },
        )
        values |= {(name, "models", models): spread for name, spread in found.items()}
        lines = text.count(b"\n")
        rows.append([size(models), size(lines), digits(len(text) / 1024), *found.values()])
    body = (
        f"A service has committed a batch of {size(_BATCH)} observations and their labels, raw"
        " scores scored beside calibrated ones. Counting them is what `Status.batch_committed`"
        " takes, an event; a scrape is everything from the counters to bytes.\n\n"
        + table(["models", "lines", "KiB", "counting, µs an event", "a scrape, ms"], rows)
    )
    return Section(title, body, values)


def _worked(models: int) -> tuple[StreamTask, BatchResult]:
    """Process a batch in a stream task."""
    flags = {"input.observations": "-", "input.format": "jsonl", "task.scores": "probability"}
    config, draw = load(flags=flags, environ={}), random.Random(11)  # noqa: S311 - no secret
    task = StreamTask(
        Processor(config.settings(), outcomes=False), Checkpoint("x", 0, 0, 0, (0, 0))
    )
    values = []
    for number in range(_BATCH):
        event = {"id": f"{number}", "time": number, "model": f"model-{number % models:03}"}
        score = draw.random()
        values += [event | {"score": score}, event | {"label": int(draw.random() < score**2)}]
    records = [OneRecord(json.dumps(value).encode(), row) for row, value in enumerate(values)]
    taken = MergedRecords([*records], [0] * len(records))
    return task, task.process(
        taken, Deserializer(config, partitions=1), Serializer(max_bytes=1 << 20)
    )
