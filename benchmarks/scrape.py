"""Cost of counting for Prometheus, and of a scrape.

The scrape returns all metrics of a service in the format that Prometheus prefers. All parts of a
service run but the broker.
"""

from __future__ import annotations

import json
import random
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from abers.stream import Events, Label, Observation, Processor, Settings
from abers_connectors.config.model import load
from abers_connectors.runtime.application import Checkpoint
from abers_connectors.runtime.batches import MergedRecords
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.serializer import Serializer
from abers_connectors.runtime.status import Status
from abers_connectors.runtime.task import StreamTask
from benchmarks.page import Key, Section, size, table
from benchmarks.timing import Spread, digits, in_turns, seconds

if TYPE_CHECKING:
    from abers.monitoring.answers import Sums
    from abers_connectors.runtime.task import BatchResult
    from benchmarks.plan import Plan

COUNTING, SCRAPE, LIBRARY, UPDATE = "counting", "scrape", "library's scrape", "update"
CHANGED, KNOWN = "answers of all", "answers of none"
MODELS = (1, 100, 10_000)
_BATCH = 1_000  # observations, each with its label
_ANSWERED = 1_000  # models with answers, each with so many labels
_LABELS = 300
_SETTLING = 20  # updates after which the index has the evidence of all models
_ACCEPT = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


_HEAD = [
    *("models", "lines", "KiB", "counting, µs an event", "a scrape, ms", "by the library, ms"),
    *("an update, ms", "of the evidence of all"),
]


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
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415 - an extra

        from abers_connectors.metrics.exposition import exposition  # noqa: PLC0415
        from abers_connectors.metrics.service_metrics import registry_of  # noqa: PLC0415
    except ImportError:
        return Section(title, "Not measured: prometheus-client is not installed.", {})
    rows, values = [], dict[Key, Spread]()
    for models in MODELS:
        count = max(_BATCH, models)
        status, (task, work) = Status(60.0), _worked(models)
        status.batch_committed(task, work)
        for _ in range(_SETTLING):
            status.update_evidence([task])
        registry = registry_of(status)
        text, _ = exposition(registry, _ACCEPT)
        encoded, _ = choose_encoder(_ACCEPT)
        found = in_turns(
            plan.rounds,
            {
                COUNTING: lambda: (
                    1e6 * seconds(partial(status.batch_committed, task, work)) / (2 * count)  # noqa: B023 - used within the turn
                ),
                SCRAPE: lambda: 1e3 * seconds(partial(exposition, registry, _ACCEPT)),  # noqa: B023
                LIBRARY: lambda: 1e3 * seconds(partial(encoded, registry)),  # noqa: B023
                UPDATE: lambda: 1e3 * seconds(partial(status.update_evidence, [task])),  # noqa: B023
            },
        )
        values |= {(name, "models", models): spread for name, spread in found.items()}
        lines = text.count(b"\n")
        share = found[UPDATE].median / (1e3 * seconds(partial(_all_evidence, task)))
        row = [size(models), size(lines), digits(len(text) / 1024), *found.values()]
        rows.append([*row, digits(share)])
    body = (
        f"A service has committed {size(_BATCH)} observations and their labels, or one for each of"
        " more models, raw scores compared with calibrated ones. `http.max_models` has its default."
        " Counting them is what `Status.batch_committed` takes, an event; a scrape is everything"
        " from the counters to bytes, also by the encoder of prometheus-client. An update, once a"
        " second, finds models with changes, and makes the evidence of those with metrics; the last"
        " column divides it by the time that the evidence of all models takes.\n\n"
        + table(_HEAD, rows)
    )
    answers, of_answers = _answers(plan)
    return Section(title, f"{body}\n\n{answers}", values | of_answers)


def _answers(plan: Plan) -> tuple[str, dict[Key, Spread]]:
    """Measure what the answers about many models cost a scrape."""
    from abers_connectors.metrics.service_metrics import (  # noqa: PLC0415 - an extra
        AnswerCache,
        LabelCache,
    )

    sums, labels, cache = _answered(), LabelCache({}), AnswerCache()

    def made(one: AnswerCache) -> int:
        return sum(len(metric.samples) for metric in one.metrics(sums, labels))

    lines = made(cache)
    found = in_turns(
        plan.rounds,
        {
            CHANGED: lambda: 1e3 * seconds(lambda: made(AnswerCache())),
            KNOWN: lambda: 1e3 * seconds(partial(made, cache)),
        },
    )
    text = (
        f"The three answers about {size(_ANSWERED)} models with {_LABELS} labels each have"
        f" {size(lines)} lines. Where labels of all came since the last scrape, their samples"
        f" take {found[CHANGED]} ms of a scrape, and {found[KNOWN]} ms where none came. They are"
        " made in the thread of the scrape, off the stream."
    )
    return text, {(name, "models", _ANSWERED): spread for name, spread in found.items()}


def _answered() -> dict[str, list[Sums]]:
    """Return the sums behind the answers about models of right probabilities."""
    draw = random.Random(12)  # noqa: S311 - no secret
    processor = Processor(Settings(scores="probability", max_models=_ANSWERED))
    for row in range(_LABELS):
        events: list[Observation | Label] = []
        for model in range(_ANSWERED):
            name, score = f"model-{model:03}", draw.random()
            label = int(draw.random() < score)
            events += [Observation(f"{row}", row, name, score), Label(f"{row}", row, name, label)]
        processor.process_batch(Events.of(events))
    return {
        model: [one.answer_sums(over_time=False) for one in monitor.e_processes]
        for (model, _), monitor in zip(processor.keys, processor.monitors, strict=False)
    }


def _all_evidence(task: StreamTask) -> list[object]:
    return [one.tests for one in task.processor.monitors]


def _worked(models: int) -> tuple[StreamTask, BatchResult]:
    """Process a batch in a stream task."""
    flags: dict[str, object] = {"input.observations": "-", "input.format": "jsonl"}
    flags |= {"task.scores": "probability", "limits.max_models": models}
    config, draw = load(flags=flags, environ={}), random.Random(11)  # noqa: S311 - no secret
    task = StreamTask(
        Processor(config.settings(), outcomes=False), Checkpoint("x", 0, 0, 0, (0, 0))
    )
    values = []
    for number in range(max(_BATCH, models)):
        event = {"id": f"{number}", "time": number, "model": f"model-{number % models:03}"}
        score = draw.random()
        values += [event | {"score": score}, event | {"label": int(draw.random() < score**2)}]
    records = [OneRecord(json.dumps(value).encode(), row) for row, value in enumerate(values)]
    taken = MergedRecords([*records], [0] * len(records))
    return task, task.process(
        taken, Deserializer(config, partitions=1), Serializer(max_bytes=1 << 20)
    )
