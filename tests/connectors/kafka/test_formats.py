"""The service and its tools on topics in each format, on each client, with a real registry."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from fastavro import parse_schema, schemaless_reader
from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.brokers import Message, unique
from tests.connectors.kafka.clients import (
    CLIENTS,
    DEFAULT,
    on_each_classic_client,
    on_each_classic_client_at_length,
)
from tests.connectors.kafka.streams import labels_of, observations, oracle, written
from tests.connectors.schemas.registries import (
    NOWHERE,
    avro,
    avro_schema,
    demand,
    misbehaving,
    proto_type,
    protobuf,
    registered,
)
from tests.connectors.schemas.registries import client as registry

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran
    from tests.connectors.kafka.brokers import Broker
    from tests.connectors.kafka.streams import Record

COUNT = 60
AVRO = avro_schema(
    ("id", "string"),
    ("time", {"type": "long", "logicalType": "timestamp-millis"}),
    ("model", "string"),
    ("score", ["null", "double"]),
    ("label", ["null", "int"]),
)
PROTO = """
syntax = "proto3";
message Event {
  string id = 1;
  int64 time = 2;
  string model = 3;
  optional double score = 4;
  optional int32 label = 5;
}
"""
JSON_SCHEMA = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
SCHEMAS: dict[str, tuple[str, Any]] = {
    "avro": ("AVRO", AVRO),
    "protobuf": ("PROTOBUF", PROTO),
    "json-schema": ("JSON", JSON_SCHEMA),
}
# The fields of CloudEvents in structured and in binary mode.
CLOUD_EVENTS = {
    "binary": """
        id = "record:header:ce_id"
        time = "record:header:ce_time"
        model = "record:header:ce_subject"
        score = "score"
        label = "label"
    """,
    "structured": """
        id = "id"
        time = "time"
        model = "subject"
        score = "data.score"
        label = "data.label"
    """,
}


@pytest.fixture
def served(broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]) -> Served:
    """Return an application without records."""
    return Served(broker, tmp_path, start)


def configure(served: Served, name: str, url: str, *more: str, client: str = DEFAULT) -> None:
    """Configure inputs and outputs in a format."""
    keys = [f'input.format = "{name}"', f'output.format = "{name}"']
    served.configure("\n".join([*keys, f'schema_registry.url = "{url}"', *more, of_client(client)]))


def of_client(name: str) -> str:
    """Return the keys of the configuration that choose a client."""
    return "\n".join(f'kafka.{key} = "{value}"' for key, value in CLIENTS[name].items())


def in_format(name: str, number: int, records: list[Record]) -> list[Message]:
    """Return the messages of records in a format, with a schema id."""
    return [
        one._replace(value=encoded(name, number, json.loads(one.value or b"")))
        for one in written(records)
    ]


def encoded(name: str, number: int, value: dict[str, Any]) -> bytes:
    """Return a value as the registry's clients write it."""
    if name == "avro":
        return avro(number, AVRO, {"score": None, "label": None} | value)
    if name == "protobuf":
        fields = {key: one for key, one in value.items() if key != "segment"}
        return protobuf(number, PROTO, **fields)
    return b"\0" + number.to_bytes(4) + json.dumps(value).encode()


def decoded(name: str, url: str, raw: bytes) -> dict[str, Any]:
    """Return an output as a consumer reads it that knows only the registry."""
    schema = registry(url).schema(int.from_bytes(raw[1:5]))
    assert schema is not None
    if name == "avro":
        found: Any = schemaless_reader(
            io.BytesIO(raw[5:]), parse_schema(json.loads(schema.schema)), None
        )
    elif name == "protobuf":
        message = proto_type(schema.schema).FromString(raw[6:])
        found = {
            field.name: getattr(message, field.name)
            for field in message.DESCRIPTOR.fields
            if not field.has_presence or message.HasField(field.name)
        }
    else:
        found = json.loads(raw[5:])
    return {key: one for key, one in found.items() if one not in (None, "")}


@on_each_classic_client_at_length
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_service_in_each_format(
    name: str, client: str, served: Served, schema_registry: str
) -> None:
    """Predictions are those of the same stream in JSON; the state is restored without registry."""
    seen = observations(COUNT, PARTITIONS)
    labels = labels_of(seen)
    number = registered(schema_registry, unique("events"), SCHEMAS[name][1], SCHEMAS[name][0])
    served.broker.produce(served.topics["observations"], in_format(name, number, seen))
    served.broker.produce(served.topics["labels"], in_format(name, number, labels))
    configure(served, name, schema_registry, client=client)
    served.serve()
    processors, lines = oracle(seen, labels, served.config().settings(), PARTITIONS)
    topic = served.topics["predictions"]
    found = [decoded(name, schema_registry, one.value) for one in served.broker.consume(topic)]
    expected = [json.loads(line) for _, line in lines]
    assert sorted(found, key=lambda one: one["time"]) == expected
    outcomes = served.broker.consume(served.topics["outcomes"])
    assert len(outcomes) == COUNT
    assert decoded(name, schema_registry, outcomes[0].value)["label"] in (0, 1)
    assert not served.broker.consume(served.topics["dead_letters"])
    assert registry(schema_registry).version(f"{topic}-value", 1)
    configure(served, name, NOWHERE)
    with served.log() as log:
        tasks = log.tasks()
    for task, processor in zip(tasks, processors, strict=True):
        assert task.processor.counters["labels"] == processor.counters["labels"]


@on_each_classic_client
def test_what_becomes_of_bad_records(client: str, served: Served, schema_registry: str) -> None:
    """An unknown schema is a dead letter with its id, and so are a cut body and plain JSON."""
    (seen,) = observations(1)
    number = registered(schema_registry, unique("events"), AVRO)
    (good,) = in_format("avro", number, [seen])
    assert good.value is not None
    bad = [b"\0\x77\x35\x94\0abc", good.value[:-4], b'{"id": "a"}']
    topic = served.topics["observations"]
    served.broker.produce(topic, [good, *(good._replace(value=one) for one in bad)])
    all_dead = "output.max_dead_letter_ratio = 1.0"
    configure(served, "avro", schema_registry, all_dead, client=client)
    served.serve()
    dead = [
        msgspec.json.decode(one.value)
        for one in served.broker.consume(served.topics["dead_letters"])
    ]
    assert [(one["reason"], one["offset"]) for one in dead] == [
        ("unknown-schema", 1),
        ("bad-avro", 2),
        ("bad-wire-format", 3),
    ]
    assert "has no schema 2000000000" in dead[0]["detail"]
    assert dead[0]["base64"] == "AHc1lABhYmM="
    assert len(served.broker.consume(served.topics["predictions"])) == 1


@on_each_classic_client_at_length
def test_the_registry_is_away(
    client: str, served: Served, schema_registry: str, invoke: Callable[..., Ran]
) -> None:
    """The service ends with 75 and a sentence, or goes on with dead letters, as configured.

    What ends it is not committed, so that nothing is lost.
    """
    (seen,) = observations(1)
    number = registered(schema_registry, unique("events"), AVRO)
    served.broker.produce(served.topics["observations"], in_format("avro", number, [seen]))
    inputs = f'{of_client(client)}\ninput.format = "avro"\nschema_registry.timeout = "300ms"\n'
    served.configure(f'{inputs}schema_registry.url = "{NOWHERE}"')
    ran = invoke("check", "abers.toml", "--connect")
    assert (ran.code, f"the schema registry {NOWHERE} gave no answer" in ran.err) == (75, True)
    code, err = served.refused()
    assert code == 75, err
    sentence = f"the schema registry {NOWHERE} gave no answer to /schemas/ids/{number} within 0.3 s"
    assert sentence in err
    assert not served.broker.consume(served.topics["dead_letters"])
    with misbehaving(b"HTTP/1.1 500 Error\r\nContent-Length: 0\r\n\r\n") as (url, _):
        away = 'schema_registry.on_unavailable = "dead-letter"\noutput.max_dead_letter_ratio = 1.0'
        served.configure(f'{inputs}schema_registry.url = "{url}"\n{away}')
        served.serve()
    (dead,) = served.broker.consume(served.topics["dead_letters"])
    found = msgspec.json.decode(dead.value)
    assert found["reason"] == "registry-unavailable"
    assert f"schema {number} is not known" in found["detail"]
    assert "it answers 500" in found["detail"]


@on_each_classic_client_at_length
def test_a_refused_schema_of_outputs(client: str, served: Served, schema_registry: str) -> None:
    """The service does not start if the registry refuses its schema, and says why."""
    subject = f"{served.topics['predictions']}-value"
    registered(schema_registry, subject, avro_schema(("id", "long"), name="Other"))
    demand(schema_registry, subject, "FULL")
    configure(served, "avro", schema_registry, client=client)
    code, err = served.refused()
    assert code == 78, err
    assert f"the schema registry refuses the schema of {subject}: " in err


@on_each_classic_client_at_length
def test_check_and_replay(
    client: str, served: Served, schema_registry: str, invoke: Callable[..., Ran], broker: Broker
) -> None:
    """A sample shows ten records as understood, and a replay reads and writes the format."""
    seen = observations(COUNT, PARTITIONS)
    number = registered(schema_registry, unique("events"), AVRO)
    served.broker.produce(served.topics["observations"], in_format("avro", number, seen))
    configure(served, "avro", schema_registry, client=client)
    topic = served.topics["observations"]
    ran = invoke("check", "abers.toml", "--connect", "--sample", topic)
    assert ran.code == 0, ran.err
    rows = [line.split() for line in ran.out.splitlines() if line.startswith("  [")]
    assert len(rows) == 10
    assert rows[0][1:3] == ["o0", seen[0].event.model]
    assert "in Avro" in ran.out
    ran = invoke("replay", "abers.toml", "--output", "out.jsonl")
    assert ran.code == 0, ran.err
    of_file = [*map(json.loads, (served.folder / "out.jsonl").read_text().splitlines())]
    assert len(of_file) == COUNT
    target = broker.create("replayed", PARTITIONS)
    ran = invoke("replay", "abers.toml", "--output", f"kafka:{target}")
    assert ran.code == 0, ran.err
    found = [decoded("avro", schema_registry, one.value) for one in broker.consume(target)]
    assert sorted(found, key=lambda one: one["time"]) == of_file


def as_cloud_event(mode: str, record: Message) -> Message:
    """Return a record as a CloudEvent."""
    data = json.loads(record.value or b"")
    attributes = {
        "specversion": "1.0",
        "id": data.pop("id"),
        "source": "/scores",
        "type": "com.example.score",
        "time": datetime.fromtimestamp(data.pop("time") / 1000, UTC).isoformat(),
        "subject": data.pop("model"),
    }
    traced = ("traceparent", b"00-1")
    if mode == "structured":
        kind = ("content-type", b"application/cloudevents+json")
        value = json.dumps({**attributes, "data": data}).encode()
        return record._replace(value=value, headers=[kind, traced])
    headers = [(f"ce_{name}", value.encode()) for name, value in attributes.items()]
    headers += [("content-type", b"application/json"), traced]
    return record._replace(value=json.dumps(data).encode(), headers=headers)


# The mode "structured" is JSON to a client, as all else; "binary" needs headers.
@on_each_classic_client
@pytest.mark.parametrize("mode", ["binary", pytest.param("structured", marks=pytest.mark.long)])
def test_a_service_on_cloud_events(mode: str, client: str, served: Served) -> None:
    """Predictions are those of the same stream in JSON; headers that describe the event are not."""
    seen = observations(COUNT, PARTITIONS)
    labels = labels_of(seen)
    for topic, records in (("observations", seen), ("labels", labels)):
        events = [as_cloud_event(mode, one) for one in written(records)]
        served.broker.produce(served.topics[topic], events)
    served.configure(f"{of_client(client)}\n[input.fields]\n{CLOUD_EVENTS[mode]}")
    served.serve()
    _, lines = oracle(seen, labels, served.config().settings(), PARTITIONS)
    found = served.broker.consume(served.topics["predictions"])
    expected = sorted(line for _, line in lines)
    assert sorted(one.value for one in found) == expected
    assert {tuple(one.headers) for one in found} == {(("traceparent", b"00-1"),)}
    assert len(served.broker.consume(served.topics["outcomes"])) == COUNT
    assert not served.broker.consume(served.topics["dead_letters"])
