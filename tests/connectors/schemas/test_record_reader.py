"""Records of a topic become events by its format; a bad record costs only itself."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from tests.connectors.kafka.brokers import unique
from tests.connectors.kafka.reads import Read
from tests.connectors.schemas.registries import (
    NOWHERE,
    avro,
    avro_schema,
    configured,
    misbehaving,
    protobuf,
    registered,
)

from abers.exceptions import BrokerError
from abers.stream import Label, Observation
from abers_connectors.runtime.deserializer import Deserializer

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers_connectors.runtime.deserializer import DecodedBatch

TIME = 1_700_000_000_000
AVRO = avro_schema(
    ("id", "string"),
    ("time", {"type": "long", "logicalType": "timestamp-micros"}),
    ("score", ["null", "double"]),
    ("label", ["null", "int", "string"]),
)
PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Event {
  string id = 1;
  google.protobuf.Timestamp time = 2;
  optional double score = 3;
  optional int32 label = 4;
}
"""
EARLY_PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Event {
  message Features { google.protobuf.Timestamp at = 1; }
  string id = 1;
  google.protobuf.Timestamp time = 2;
  Features f = 3;
}
"""
UNKNOWN = b"\0\x77\x35\x94\0abc"


def decoded(url: str, *values: bytes, **more: Any) -> DecodedBatch:  # noqa: ANN401
    """Decode records, all of the first input."""
    deserializer = Deserializer(configured(url, **more), partitions=1, environ={})
    records = [Read(value, offset, timestamp=-1) for offset, value in enumerate(values)]
    deserializer.prepare(records, [0] * len(records))
    return deserializer.decode(records, [0] * len(records))


def in_avro(number: int, **values: Any) -> bytes:  # noqa: ANN401
    """Return a record in Avro."""
    return avro(number, AVRO, {"time": TIME * 1000, "score": None, "label": None} | values)


def in_protobuf(number: int, **values: Any) -> bytes:  # noqa: ANN401
    """Return a record in Protobuf."""
    return protobuf(number, PROTO, time={"seconds": TIME // 1000}, **values)


def in_json(number: int, **values: Any) -> bytes:  # noqa: ANN401
    """Return a record in JSON with a schema."""
    return b"\0" + number.to_bytes(4) + json.dumps({"time": TIME, **values}).encode()


class Written(NamedTuple):
    """How records of a format are written."""

    kind: str
    schema: Any
    write: Callable[..., bytes]
    bad: str  # reason of a body that is cut


JSON_SCHEMA = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
FORMATS = {
    "avro": Written("AVRO", AVRO, in_avro, "bad-avro"),
    "protobuf": Written("PROTOBUF", PROTO, in_protobuf, "bad-protobuf"),
    "json-schema": Written("JSON", JSON_SCHEMA, in_json, "bad-json"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_records_become_events(name: str, schema_registry: str) -> None:
    """Observations, labels and bad records, in a batch as alone; each bad one has its reason."""
    kind, schema, written, bad = FORMATS[name]
    number = registered(schema_registry, unique("s"), schema, kind)
    other = registered(schema_registry, unique("s"), avro_schema(("x", "long"), name="Other"))
    good = written(number, id="a", score=0.5)
    values = [
        good,
        written(number, id="b", label=1),
        good[:-1],
        written(number, id="c"),
        UNKNOWN,
        json.dumps({"id": "d"}).encode(),
        b"\0\0",
        good,
        b"\0" + other.to_bytes(4) + b"\x02",
        b"\0\xff\xff\xff\xff",
    ]
    found = decoded(schema_registry, *values, input__format=name)
    expected = [Observation("a", TIME, score=0.5), Label("b", TIME, value=1)]
    assert list(found.events) == [*expected, expected[0]]
    assert list(found.rows) == [0, 1, 7]
    reasons = {row: reason for row, reason, _ in found.dead}
    of_other = "missing-field" if name == "avro" else "unusable-schema"
    assert reasons == {
        2: bad,
        3: "missing-field",
        4: "unknown-schema",
        5: "bad-wire-format",
        6: "bad-wire-format",
        8: of_other,
        9: "unknown-schema",
    }
    details = {row: detail for row, _, detail in found.dead}
    assert f"{schema_registry} has no schema 2000000000; register the schema" in details[4]
    assert 'the record has no "score" and no "label"' in details[3]
    if name != "avro":
        assert f'schema {other} is of the type AVRO, and input.format is "{name}"' in details[8]
    for row, value in enumerate(values):
        alone = decoded(schema_registry, value, input__format=name)
        assert [reason for _, reason, _ in alone.dead] == [
            reasons[one] for one in (row,) if one in reasons
        ]


def test_a_later_version_of_a_schema(schema_registry: str) -> None:
    """A batch may have records of several versions; a field that a version lacks is missing."""
    subject = unique("s")
    first = registered(schema_registry, subject, AVRO)
    later = AVRO | {"fields": [*AVRO["fields"], {"name": "new", "type": "long", "default": 0}]}
    second = registered(schema_registry, subject, later)
    without = AVRO | {"fields": AVRO["fields"][:2]}
    third = registered(schema_registry, unique("s"), without)
    values = {"id": "a", "time": TIME * 1000, "score": 0.5, "label": None}
    found = decoded(
        schema_registry,
        in_avro(first, id="a", score=0.5),
        avro(second, later, values | {"new": 3}),
        avro(third, without, values),
        in_avro(first, id="b", score=0.5),
    )
    assert [event.id for event in found.events] == ["a", "a", "b"]
    ((row, reason, detail),) = found.dead
    assert (row, reason) == (2, "missing-field")
    assert detail.startswith('the record has no "score" and no "label"')


def test_a_score_that_is_no_number(schema_registry: str) -> None:
    """NaN and infinity, which JSON does not have, are bad scores and not missing ones."""
    number = registered(schema_registry, unique("s"), AVRO)
    for score in (math.nan, math.inf):
        found = decoded(
            schema_registry,
            in_avro(number, id="a", score=score, label=1),
            in_avro(number, id="b", score=0.5),
        )
        assert [event.id for event in found.events] == ["b"]
        assert [reason for _, reason, _ in found.dead] == ["bad-score"]


@pytest.mark.parametrize("unit", ["millis", "micros", "nanos", "local-millis", "protobuf"])
def test_times_before_1973(unit: str, schema_registry: str) -> None:
    """A time type is a moment in every year; in features and passed on it is milliseconds."""
    early, zone = 365 * 86_400_000, {"input__timezone": "UTC"}
    more: dict[str, Any] = {"input__fields": {"x": "f", "passthrough": ["f", "time"]}, **zone}
    local = unit.startswith("local-")
    if unit == "protobuf":
        schema: Any = EARLY_PROTO
        at = {"seconds": early // 1000}
        number = registered(schema_registry, unique("s"), schema, "PROTOBUF")
        value = protobuf(number, schema, id="a", time=at, f={"at": at})
    else:
        name = "local-timestamp-millis" if local else f"timestamp-{unit}"
        kind = {"type": "long", "logicalType": name}
        fields = avro_schema(("at", kind), name="Features")
        schema = avro_schema(("id", "string"), ("time", ["null", kind]), ("f", fields))
        number = registered(schema_registry, unique("s"), schema)
        ticks = early * {"micros": 1000, "nanos": 10**6}.get(unit, 1)
        value = avro(number, schema, {"id": "a", "time": ticks, "f": {"at": ticks}})
    form = "protobuf" if unit == "protobuf" else "avro"
    found = decoded(schema_registry, value, input__format=form, **more)
    assert not found.dead
    shown = "1971-01-01T00:00:00" if local else early
    extra = {"f": {"at": shown}, "time": shown}
    assert list(found.events) == [Observation("a", early, x={"at": shown}, extra=extra)]
    json.dumps(extra)


def test_nested_fields_and_metadata(schema_registry: str) -> None:
    """Paths reach into records, and next to them are the key and the headers, as with JSON."""
    inner = avro_schema(("txn", "string"), ("p", {"type": "map", "values": "double"}), name="Inner")
    schema = avro_schema(("payload", ["null", inner]), ("country", "string"))
    number = registered(schema_registry, unique("s"), schema)
    config = configured(
        schema_registry,
        input__fields={
            "id": "payload.txn",
            "time": "record:timestamp",
            "model": "record:header:model",
            "score": "payload.p.fraud",
            "passthrough": ["country", "payload"],
        },
    )
    payload = {"txn": "t1", "p": {"fraud": 0.25}}
    record = Read(
        avro(number, schema, {"payload": payload, "country": "de"}),
        headers=[("model", b"m")],
        timestamp=TIME,
    )
    empty = record._replace(value=avro(number, schema, {"payload": None, "country": "de"}))
    found = Deserializer(config, partitions=1).decode([record, empty], [0, 0])
    extra = {"country": "de", "payload": payload}
    assert list(found.events) == [
        Observation("t1", TIME, "m", 0.25, recorded=TIME, extra=extra),
    ]
    assert [reason for _, reason, _ in found.dead] == ["missing-field"]


def test_each_input_has_its_format(schema_registry: str) -> None:
    """Labels may be in another format than observations."""
    number = registered(schema_registry, unique("s"), AVRO)
    config = configured(schema_registry, input__label_format="json")
    label = json.dumps({"id": "a", "time": TIME, "label": 1}).encode()
    records = [Read(in_avro(number, id="a", score=0.5)), Read(label)]
    found = Deserializer(config, partitions=1).decode(records, [0, 1])
    assert [type(event) for event in found.events] == [Observation, Label]
    assert not found.dead


def test_a_registry_that_is_away_stops() -> None:
    """Nothing is decoded: preparing a batch, which comes before its transaction, fails."""
    with pytest.raises(BrokerError, match=f"{NOWHERE} gave no answer to /schemas/ids/7 within"):
        decoded(NOWHERE, b"\0\0\0\0\x07", schema_registry__timeout="10ms")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 500 Error\r\nContent-Length: 0\r\n\r\n", b"garbage"])
def test_records_of_a_registry_that_is_away_are_dead_letters(answer: bytes) -> None:
    """If the configuration says so, also if the registry answers what is none of a registry."""
    more = {"schema_registry__timeout": "10ms", "schema_registry__on_unavailable": "dead-letter"}
    with misbehaving(answer) as (url, _):
        found = decoded(url, b"\0\0\0\0\x07", b"{}", **more)
    assert [reason for _, reason, _ in found.dead] == ["registry-unavailable", "bad-wire-format"]
    assert "schema 7 is not known: the schema registry" in found.dead[0][2]


DEEP = b"[" * 100_000
LARGE = b"x" * (1 << 20)
REPLIES: dict[str, bytes] = {
    "not JSON": b"{",
    "no object": b"5",
    "no schema": b"{}",
    "a schema that is none": b'{"schema": ""}',
    "a number": b'{"schema": 5}',
    "deep JSON": DEEP,
    "a deep schema": json.dumps({"schema": "[" * 100_000}).encode(),
    "deep braces": json.dumps({"schema": '{"type":' * 100_000}).encode(),
    "a schema of 1 MiB": b'{"schema": "%s"}' % LARGE,
    "half a character": b'{"schema": "\\ud800"}',
    "a zero": b'{"schema": "\\u0000"}',
    "no UTF-8": b'{"schema": "\xff"}',
    "another type": b'{"schema": "x", "schemaType": "XML"}',
    "odd references": b'{"schema": "x", "references": 5}',
    "a reference to itself": (
        b'{"schema": "x", "references": [{"name": "a", "subject": "s", "version": 1}]}'
    ),
    "a reference elsewhere": (
        b'{"schema": "x", "references": [{"name": "../a", "subject": "..", "version": -9}]}'
    ),
    "1,000 references": json.dumps(
        {
            "schema": "x",
            "references": [{"name": f"n{n}", "subject": "s", "version": 1} for n in range(1000)],
        }
    ).encode(),
    "types of types": b'{"schema": "{\\"type\\": {\\"type\\": []}}"}',
    "a size that is none": (
        b'{"schema": "{\\"type\\": \\"fixed\\", \\"name\\": \\"f\\", \\"size\\": 1.5}"}'
    ),
    "a name that is none": (
        b'{"schema": "{\\"type\\": \\"record\\", \\"name\\": [], \\"fields\\": [{}]}"}'
    ),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_whatever_a_registry_answers(name: str, reply: bytes) -> None:
    """Records are dead letters, and nothing else is raised."""
    kind = FORMATS[name].kind.encode()
    reply = reply.replace(b'{"schema": ', b'{"schemaType": "%s", "schema": ' % kind)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(reply)
    more = {"schema_registry__timeout": "2s", "schema_registry__on_unavailable": "dead-letter"}
    with misbehaving(head + reply) as (url, _):
        found = decoded(url, b"\0\0\0\0\x07\0\0", b"\0\xff\xff\xff\xff", input__format=name, **more)
    reasons = [reason for _, reason, _ in found.dead]
    bad_records = {
        "bad-json",
        "bad-avro",
        "bad-wire-format",
    }  # of a format whose schema need not be any
    assert reasons[0] in {"registry-unavailable", "unusable-schema"} | bad_records
    assert reasons[1] in {"registry-unavailable", "unknown-schema"}
