"""Streams for tests: observations and late labels by partition, and the expected outputs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from tests.connectors.kafka.brokers import Message

from abers.stream import Label, Observation, Processor

if TYPE_CHECKING:
    from abers.stream import Settings
    from abers.stream.events import Event

__all__ = ["Record", "labels_of", "observations", "oracle", "written"]

START = 1_700_000_000_000


class Record(NamedTuple):
    """A record to be written, and its event."""

    time: int
    partition: int
    event: Event


def observations(count: int, partitions: int = 1, seed: int = 0) -> list[Record]:
    """Return observations a second apart, each with the model of its partition."""
    draw = np.random.default_rng(seed)
    return [
        Record(
            START + 1000 * n,
            part,
            Observation(f"o{n}", START + 1000 * n, f"m{part}", draw.random()),
        )
        for n in range(count)
        for part in [int(draw.integers(partitions))]
    ]


def labels_of(records: list[Record], late: int = 20_000, seed: int = 1) -> list[Record]:
    """Return labels that come some seconds later, some at the time of another observation."""
    draw = np.random.default_rng(seed)
    found = []
    for record in records:
        time = record.time + int(draw.choice([late, late + 500]))
        event = Label(record.event.id, time, record.event.model, int(draw.random() < 0.5))
        found.append(Record(time, record.partition, event))
    return sorted(found)


def written(records: list[Record]) -> list[Message]:
    """Return messages of records: key by model, a header by id, the event's time."""
    return [
        Message(
            _encoded(one.event),
            one.event.model.encode(),
            one.partition,
            one.time,
            [("trace", one.event.id.encode())],
        )
        for one in records
    ]


def _encoded(event: Event) -> bytes:
    given: dict[str, Any] = msgspec.to_builtins(event)
    given["label" if isinstance(event, Label) else "score"] = given.pop(
        "value" if isinstance(event, Label) else "score"
    )
    return json.dumps({name: value for name, value in given.items() if value is not None}).encode()


def oracle(
    seen: list[Record], labels: list[Record], settings: Settings, partitions: int = 1
) -> tuple[list[Processor], list[tuple[int, bytes]]]:
    """Process each event alone, by time, labels first; return processors, and times with lines."""
    processors = [Processor(settings, outcomes=False) for _ in range(partitions)]
    lines = []
    ranked = [(one.time, 0, one) for one in labels] + [(one.time, 1, one) for one in seen]
    for time, _, one in sorted(ranked, key=lambda ranked: ranked[:2]):
        event = msgspec.structs.replace(one.event, recorded=one.time)
        lines += [
            (time, msgspec.json.encode(output))
            for output in processors[one.partition].process(event)
        ]
    return processors, lines
