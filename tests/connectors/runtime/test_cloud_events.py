"""CloudEvents are mapped as other records: structured ones by paths, binary ones by headers."""

from __future__ import annotations

import json

import pytest
from tests.connectors.kafka.reads import TIME, TOPICS, Read
from tests.connectors.kafka.works import sent

from abers.stream import Observation, Processor
from abers_connectors.config.model import load
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.serializer import Serializer

ATTRIBUTES = {
    "specversion": "1.0",
    "id": "a1",
    "source": "/fraud/scores",
    "type": "com.example.score",
    "time": "2023-11-14T22:13:20Z",
    "subject": "fraud",
}
DATA = {"amount": 12.5, "score": 0.83}
STRUCTURED = Read(
    json.dumps({**ATTRIBUTES, "datacontenttype": "application/json", "data": DATA}).encode(),
    headers=[
        ("content-type", b"application/cloudevents+json; charset=UTF-8"),
        ("traceparent", b"00-1"),
    ],
)
BINARY = Read(
    json.dumps(DATA).encode(),
    headers=[
        *((f"ce_{name}", value.encode()) for name, value in ATTRIBUTES.items()),
        ("content-type", b"application/json"),
        ("traceparent", b"00-1"),
    ],
)
FIELDS = {
    "structured": {
        "id": "id",
        "time": "time",
        "model": "subject",
        "score": "data.score",
        "passthrough": ["data.amount"],
    },
    "binary": {
        "id": "record:header:ce_id",
        "time": "record:header:ce_time",
        "model": "record:header:ce_subject",
        "score": "score",
        "passthrough": ["amount"],
    },
}


@pytest.mark.parametrize(("mode", "record"), [("structured", STRUCTURED), ("binary", BINARY)])
def test_a_cloud_event_becomes_an_observation(mode: str, record: Read) -> None:
    """Attributes and data are fields; the prediction does not repeat what describes the event."""
    config = load(flags=TOPICS | {"input.fields": FIELDS[mode]}, environ={})
    decoded = Deserializer(config, partitions=1).decode([record], [0])
    amount = FIELDS[mode]["passthrough"][0]
    assert list(decoded.events) == [
        Observation("a1", TIME, "fraud", 0.83, recorded=TIME, extra={amount: 12.5})
    ]
    outputs = Processor(config.settings()).process_batch(decoded.events)
    (prediction,) = sent(Serializer(max_bytes=10_000).serialize(outputs, decoded, [record]))
    assert [*prediction.headers] == [("traceparent", b"00-1")]
    assert prediction.key == record.key


def test_a_cloud_event_without_data() -> None:
    """It is a dead record with all its headers, so that it can be sent again."""
    config = load(flags=TOPICS | {"input.fields": FIELDS["structured"]}, environ={})
    empty = STRUCTURED._replace(value=json.dumps(ATTRIBUTES).encode())
    decoded = Deserializer(config, partitions=1).decode([empty], [0])
    (record,) = sent(Serializer(max_bytes=10_000).serialize(None, decoded, [empty]))
    assert (record.sink, record.reason) == ("dead_letters", "missing-field")
    assert [*record.headers[:2]] == STRUCTURED.headers
