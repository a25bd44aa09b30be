"""What it costs to count for Prometheus, and to tell it.

Governing rule: a service is asked for everything that it tells, in the format that Prometheus
prefers, and its parts are those of a service: only the broker is left out.
"""

from __future__ import annotations

import json
import random
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from abers.stream import Processor
from abers_connectors.config import load
from abers_connectors.kafka.decoding import Decoder
from abers_connectors.kafka.merging import Taken
from abers_connectors.kafka.shard import Place, Shard
from abers_connectors.kafka.status import Status
from abers_connectors.kafka.wording import Wording
from benchmarks.page import Key, Section, size, table
from benchmarks.timing import Spread, digits, in_turns, seconds

if TYPE_CHECKING:
    from abers_connectors.kafka.shard import Work
    from benchmarks.plan import Plan

COUNTING, SCRAPE = "counting", "scrape"
MODELS = (1, 100)
_BATCH = 1_000  # observations, each with its label
_ACCEPT = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


class _Record(NamedTuple):
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
        from abers_connectors.http.exposition import exposition  # noqa: PLC0415 - an extra
        from abers_connectors.http.metrics import registry_of  # noqa: PLC0415
    except ImportError:
        return Section(title, "Not measured: prometheus-client is not installed.", {})
    rows, values = [], dict[Key, Spread]()
    for models in MODELS:
        status, (shard, work) = Status(60.0), _worked(models)
        status.commit(shard, work)
        status.weigh([shard])
        registry = registry_of(status)
        text, _ = exposition(registry, _ACCEPT)
        found = in_turns(
            plan.rounds,
            {
                COUNTING: lambda: 1e6 * seconds(partial(status.commit, shard, work)) / (2 * _BATCH),  # noqa: B023 - used within the turn
                SCRAPE: lambda: 1e3 * seconds(partial(exposition, registry, _ACCEPT)),  # noqa: B023
            },
        )
        values |= {(name, "models", models): spread for name, spread in found.items()}
        lines = text.count(b"\n")
        rows.append([size(models), size(lines), digits(len(text) / 1024), *found.values()])
    body = (
        f"A service has committed a batch of {size(_BATCH)} observations and their labels, raw"
        " scores judged beside calibrated ones. Counting them is what `Status.commit` takes, an"
        " event; a scrape is everything from the counters to bytes.\n\n"
        + table(["models", "lines", "KiB", "counting, µs an event", "a scrape, ms"], rows)
    )
    return Section(title, body, values)


def _worked(models: int) -> tuple[Shard, Work]:
    """Let a shard take a batch."""
    flags = {"input.observations": "-", "input.format": "jsonl", "task.scores": "probability"}
    config, draw = load(flags=flags, environ={}), random.Random(11)  # noqa: S311 - no secret
    shard = Shard(Processor(config.settings(), outcomes=False), Place("x", 0, 0, 0, (0, 0)))
    values = []
    for number in range(_BATCH):
        told = {"id": f"{number}", "time": number, "model": f"model-{number % models:03}"}
        score = draw.random()
        values += [told | {"score": score}, told | {"label": int(draw.random() < score**2)}]
    records = [_Record(json.dumps(value).encode(), row) for row, value in enumerate(values)]
    taken = Taken([*records], [0] * len(records))
    return shard, shard.apply(taken, Decoder(config, partitions=1), Wording(max_bytes=1 << 20))
