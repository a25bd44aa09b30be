"""Avro becomes the values that JSON has; a bad body or schema costs only its own records."""

from __future__ import annotations

import datetime as dt
import io
import itertools
import json
import re
import tracemalloc
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from fastavro import schemaless_writer
from fastavro.utils import generate_one
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka.brokers import unique
from tests.connectors.kafka.reads import Read
from tests.connectors.schemas.registries import (
    NOWHERE,
    avro,
    avro_schema,
    client,
    configured,
    misbehaving,
    registered,
)

from abers.stream.cells import BadRecordError
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.schemas.avro import avro_decoder
from abers_connectors.schemas.registry import RegisteredSchema, SchemaReference, UnusableSchemaError

MOMENT = dt.datetime(2026, 1, 31, 12, 30, 15, 250_000, dt.UTC)
MILLISECONDS = 1_769_862_615_250
AT = np.datetime64(MILLISECONDS, "ms")


def decoded(schema: Any, value: Any, reads: frozenset[str] | None = None) -> Any:  # noqa: ANN401
    """Write a value by a schema, and decode it."""
    names = reads or frozenset(field["name"] for field in schema["fields"])
    decode = avro_decoder(RegisteredSchema(json.dumps(schema)), client(NOWHERE), names)
    return decode(avro(7, schema, value))


def logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    """Return a logical type."""
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("kind", "written", "read"),
    [
        ("string", "é", "é"),
        ("long", -(2**63), -(2**63)),
        ("double", 0.1, 0.1),
        ("boolean", True, True),
        ("bytes", b"\xff\0", "/wA="),
        (["null", "double"], None, None),
        (["null", "string", "long"], 5, 5),
        ({"type": "enum", "name": "E", "symbols": ["a", "b"]}, "b", "b"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", "YWI="),
        ({"type": "array", "items": "double"}, [0.5, 1.0], [0.5, 1.0]),
        ({"type": "map", "values": ["null", "long"]}, {"a": 1, "b": None}, {"a": 1, "b": None}),
        (avro_schema(("in", "long"), name="Inner"), {"in": 3}, {"in": 3}),
        (logical("long", "timestamp-millis"), MOMENT, AT),
        (logical("long", "timestamp-micros"), MOMENT, AT),
        (logical("long", "timestamp-nanos"), 10**6 * MILLISECONDS, AT),
        (
            logical("long", "local-timestamp-millis"),
            MOMENT.replace(tzinfo=None),
            "2026-01-31T12:30:15.250000",
        ),
        (
            logical("long", "local-timestamp-micros"),
            MOMENT.replace(tzinfo=None),
            "2026-01-31T12:30:15.250000",
        ),
        (logical("int", "date"), MOMENT.date(), "2026-01-31"),
        (logical("int", "time-millis"), MOMENT.time(), "12:30:15.250000"),
        (logical("long", "time-micros"), MOMENT.time(), "12:30:15.250000"),
        (logical("bytes", "decimal", precision=9, scale=2), Decimal("-12.34"), -12.34),
        (logical("string", "uuid"), uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (
            {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"},
            uuid.UUID(int=5).bytes,
            "00000000-0000-0000-0000-000000000005",
        ),
        ({"type": "fixed", "name": "U", "size": 2, "logicalType": "uuid"}, b"ab", "YWI="),
        (logical("int", "unheard-of"), 5, 5),
    ],
)
def test_values_become_those_of_json(kind: Any, written: Any, read: Any) -> None:  # noqa: ANN401
    """Each type, logical types and unions included."""
    found = decoded(avro_schema(("f", kind)), {"f": written})
    assert found == {"f": read}
    assert type(found["f"]) is type(read)


def test_a_union_of_records() -> None:
    """A topic may have records of several types."""
    types = [avro_schema(("a", "long"), name="A"), avro_schema(("b", "long"), name="B")]
    decode = avro_decoder(RegisteredSchema(json.dumps(types)), client(NOWHERE), frozenset("ab"))
    assert decode(avro(7, types, ("B", {"b": 5}))) == {"b": 5}


def test_named_types_are_used_again() -> None:
    """A type that is defined once is found by its name, in its namespace or another."""
    inner = avro_schema(("v", "long"), name="Inner")
    schema = avro_schema(
        ("a", inner), ("b", "Inner"), ("c", ["null", "x.y.Inner"]), namespace="x.y"
    )
    value = {"a": {"v": 1}, "b": {"v": 2}, "c": {"v": 3}}
    assert decoded(schema, value) == value
    # Where its definition is not wanted, the type is still known.
    wide = avro_schema(("a", inner), *((f"n{n}", "long") for n in range(9)), ("b", "Inner"))
    full = {"a": {"v": 1}, "b": {"v": 2}} | {f"n{n}": n for n in range(9)}
    assert decoded(wide, full, frozenset({"a", "n3"})) == {"a": {"v": 1}, "n3": 3}


def test_only_what_is_read_is_in_the_result() -> None:
    """Other fields are decoded as well, so that a value does not depend on what else is read."""
    schema = avro_schema(("a", ["bytes", "string"]), ("b", {"type": "array", "items": "long"}))
    value = {"a": "x", "b": [1, 2]}
    assert decoded(schema, value, frozenset("a")) == {"a": "x"}
    assert decoded(schema, value, frozenset("ab")) == value
    assert decoded(schema, value, frozenset("z")) == {}


def test_a_type_within_a_type() -> None:
    """The type of a type may be written as a schema of its own."""
    schema = RegisteredSchema(json.dumps(avro_schema(("a", {"type": {"type": "string"}}))))
    decode = avro_decoder(schema, client(NOWHERE), frozenset("a"))
    assert decode(avro(7, avro_schema(("a", "string")), {"a": "x"})) == {"a": "x"}


def test_imported_schemas(schema_registry: str) -> None:
    """Types of other subjects are found, those that these import too."""
    subject, shared = unique("event"), unique("shared")
    leaf = avro_schema(("v", "long"), name="Leaf", namespace="a.b")
    registered(schema_registry, f"{shared}.leaf", leaf)
    to_leaf = SchemaReference("a.b.Leaf", f"{shared}.leaf", 1)
    middle = avro_schema(("leaf", "Leaf"), name="Middle", namespace="a.b")
    registered(schema_registry, f"{shared}.middle", middle, references=(to_leaf,))
    whole = avro_schema(("m", "a.b.Middle"), ("n", ["null", "a.b.Leaf"]))
    to_middle = SchemaReference("a.b.Middle", f"{shared}.middle", 1)
    number = registered(schema_registry, subject, whole, references=(to_middle, to_leaf))
    schema = client(schema_registry).schema(number)
    assert schema is not None
    decode = avro_decoder(schema, client(schema_registry), frozenset("mn"))
    inline = avro_schema(
        ("m", middle | {"fields": [{"name": "leaf", "type": leaf}]}), ("n", "null")
    )
    inline["fields"][1]["type"] = ["null", "a.b.Leaf"]
    value = {"m": {"leaf": {"v": 4}}, "n": {"v": 5}}
    assert decode(avro(number, inline, value)) == value


def test_a_missing_import(schema_registry: str) -> None:
    """A schema whose import is gone cannot be used."""
    missing = RegisteredSchema('"long"', references=(SchemaReference("a", unique("none"), 3),))
    with pytest.raises(UnusableSchemaError, match="imports a, and there is no version 3 of none"):
        avro_decoder(missing, client(schema_registry), frozenset())


def wrapped(depth: int) -> dict[str, Any]:
    """Return the schema of a number within some records of one field, the outermost in an array."""
    kind: Any = "boolean"
    for n in range(depth):
        kind = avro_schema(("in", kind), name=f"W{n}")
    return avro_schema(("id", "string"), ("many", {"type": "array", "items": kind}))


def tree(levels: int, wrappers: int) -> dict[str, Any]:
    """Return the schema of records that branch, each of them within some that have one field."""
    kind: Any = "boolean"
    for level in range(levels):
        for n in range(wrappers):
            kind = avro_schema(("in", kind), name=f"W{level}_{n}")
        again = kind if isinstance(kind, str) else kind["name"]
        kind = avro_schema(("left", kind), ("right", again), name=f"T{level}")
    return avro_schema(("id", "string"), ("all", kind))


NESTED = avro_schema(("next", ["null", "Event"]))


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "is not a valid Avro schema"),
        ('{"type": "record"}', "is not a valid Avro schema"),
        ("[" * 100_000, "is not a valid Avro schema"),
        ('{"type": "array", "items": ' * 100 + '"long"' + "}" * 100, "is nested deeper than 100"),
        (json.dumps(avro_schema(("a", "Nothing"))), "names the type Nothing, which is not defined"),
        # A few bytes of data would be a value that is nested without bound, or has no end.
        (json.dumps(NESTED), "contains itself, by the type Event"),
        (json.dumps(avro_schema(("a", {"type": "array", "items": "null"}))), "takes no bytes"),
        (json.dumps(avro_schema(("a", {"type": "fixed", "name": "F", "size": 0}))), "no bytes"),
        (json.dumps(avro_schema(("a", avro_schema(name="Empty")))), "takes no bytes .record Empty"),
        (json.dumps(wrapped(3)), "has 3 records for 1 of its bytes .the items of one array"),
        (json.dumps(tree(6, 4)), "has 135 records for 16 of its bytes .record T3"),
        (json.dumps(tree(20, 3)), "of its bytes .record"),
    ],
)
def test_a_schema_that_cannot_be_used(schema: str, why: str) -> None:
    """It is refused before any record is decoded."""
    with pytest.raises(UnusableSchemaError, match=why):
        avro_decoder(RegisteredSchema(schema), client(NOWHERE), frozenset("a"))


def test_large_records_are_decoded_one_after_the_other() -> None:
    """A batch of them takes no more memory than one, also where none of them can be used."""
    schema = wrapped(2)
    schema["fields"][1]["name"] = "score"
    record = Read(avro(7, schema, {"id": "a", "score": [{"in": {"in": True}}] * 270_000}))
    answer = json.dumps({"schema": json.dumps(schema)}).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer)
    peaks = []
    with misbehaving(head + answer) as (url, _):
        deserializer = Deserializer(configured(url), partitions=1, environ={})
        for count in (1, 2):
            tracemalloc.start()
            dead = deserializer.decode([record] * count, [0] * count).dead
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert [reason for _, reason, _ in dead] == ["bad-score"] * count
    assert peaks[1] < 1.5 * peaks[0]


def test_records_within_records() -> None:
    """A few are read, also where they repeat."""
    schema = wrapped(2)
    value = {"id": "a", "many": [{"in": {"in": True}}, {"in": {"in": False}}]}
    decode = avro_decoder(RegisteredSchema(json.dumps(schema)), client(NOWHERE), frozenset(value))
    assert decode(avro(7, schema, value)) == value


SCHEMA = avro_schema(
    ("id", "string"),
    ("score", ["null", "double"]),
    ("tags", {"type": "array", "items": "string"}),
    ("kind", {"type": "enum", "name": "K", "symbols": ["a", "b"]}),
    ("price", logical("bytes", "decimal", precision=9, scale=2)),
)
DECODE, DECODE_ID = (
    avro_decoder(RegisteredSchema(json.dumps(SCHEMA)), client(NOWHERE), frozenset(reads))
    for reads in (("id", "score", "tags"), ("id",))
)
VALUE = {"id": "a", "score": 0.5, "tags": ["x"], "kind": "b", "price": Decimal("1.5")}
GOOD = avro(7, SCHEMA, VALUE)


def test_a_cut_body_is_a_bad_record() -> None:
    """A body that ends anywhere but at its end is refused, also in fields that are not read."""
    assert DECODE(GOOD)["score"] == 0.5
    assert DECODE_ID(GOOD) == {"id": "a"}
    for decode in (DECODE, DECODE_ID):
        for size in range(5, len(GOOD)):
            with pytest.raises(BadRecordError, match="by its schema the Avro body") as found:
                decode(GOOD[:size])
            assert found.value.reason == "bad-avro"
        with pytest.raises(BadRecordError, match="ends 1 bytes before the record"):
            decode(GOOD + b"\0")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_record_or_a_bad_one(body: bytes) -> None:
    """No bytes do anything else than to be decoded, or to be refused with the same words."""
    found = []
    for _ in range(2):
        try:
            DECODE_ID(GOOD[:5] + body)
        except BadRecordError as error:
            found.append(str(error))
        try:
            found.append(str(DECODE(GOOD[:5] + body)))
        except BadRecordError as error:
            found.append(str(error))
    assert found[: len(found) // 2] == found[len(found) // 2 :]


COUNTS = [2**62 - 1, 5 * 10**7, -(2**62), -(2**63)]


def long(number: int) -> bytes:
    """Return a number as Avro writes it."""
    body = io.BytesIO()
    schemaless_writer(body, "long", number)
    return body.getvalue()


INNER: list[Any] = [
    "float",
    "double",
    "boolean",
    "int",
    "long",
    "bytes",
    "string",
    ["null", "float"],
    ["null", "null"],
    {"type": "fixed", "name": "F", "size": 16},
    {"type": "enum", "name": "E", "symbols": ["a"]},
    avro_schema(("x", "float"), ("y", "double"), name="Pair"),
    avro_schema(("x", avro_schema(("y", "boolean"), name="In")), name="Out"),
    {"type": "array", "items": "float"},
    {"type": "map", "values": "float"},
    logical("bytes", "decimal", precision=9, scale=2),
]


@pytest.mark.parametrize("inner", INNER, ids=[json.dumps(one)[:40] for one in INNER])
@pytest.mark.parametrize("outer", ["array", "map", "nested", "optional", "record"])
def test_a_count_beyond_the_record(inner: Any, outer: str) -> None:  # noqa: ANN401
    """Few bytes that claim any number of values are refused, also where nobody reads the field."""
    many = {"type": "map" if outer == "map" else "array", "items": inner, "values": inner}
    kind, head = {
        "nested": ({"type": "array", "items": many}, long(1)),
        "optional": (["null", many], long(1)),
        "record": (avro_schema(("many", many), ("more", "long"), name="Holder"), b""),
    }.get(outer, (many, b""))
    schema = avro_schema(("id", "string"), ("score", "double"), ("x", kind), ("last", "long"))
    begin = GOOD[:5] + long(1) + b"a" + b"\0" * 8 + head
    for reads in (frozenset({"id"}), frozenset({"id", "x"})):
        decode = avro_decoder(RegisteredSchema(json.dumps(schema)), client(NOWHERE), reads)
        for count in COUNTS:
            raw = begin + long(count) + (long(8) if count < 0 else b"")
            for more in (b"", b"\0", b"\0" * 40):
                with pytest.raises(BadRecordError, match="by its schema the Avro body") as found:
                    decode(raw + more)
                assert found.value.reason == "bad-avro"


@st.composite
def types(draw: st.DrawFn, depth: int = 3) -> Any:  # noqa: ANN401
    """Return a type, nested a few times, whose named types are all called T."""
    kinds = [one for one in INNER if isinstance(one, str)]
    if not depth:
        return draw(st.sampled_from(kinds))
    inner = types(depth - 1)
    fixed = st.builds(lambda size: {"type": "fixed", "name": "T", "size": size}, st.integers(1, 9))
    return draw(
        st.sampled_from(kinds)
        | fixed
        | st.builds(lambda kind: ["null", kind], st.sampled_from(kinds) | fixed)
        | st.builds(lambda kind: {"type": "array", "items": kind}, inner)
        | st.builds(lambda kind: {"type": "map", "values": kind}, inner)
        | st.builds(lambda one, two: avro_schema(("a", one), ("b", two), name="T"), inner, inner)
    )


@given(st.lists(types(), min_size=1, max_size=4), st.data())
def test_any_schema_with_any_bytes(kinds: list[Any], data: st.DataObject) -> None:
    """What is read of a record, whole or changed, is the same whatever else is read of it."""
    numbers = itertools.count()
    text = json.dumps(avro_schema(*((f"f{n}", kind) for n, kind in enumerate(kinds))))
    schema = json.loads(re.sub('"T"', lambda _: f'"T{next(numbers)}"', text))
    names = frozenset(one["name"] for one in schema["fields"])
    registered_schema = RegisteredSchema(json.dumps(schema))
    whole = avro_decoder(registered_schema, client(NOWHERE), names)
    raw = bytearray(avro(7, schema, generate_one(schema)))
    assert whole(bytes(raw)).keys() == names
    at = data.draw(st.integers(5, len(raw)))
    raw[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=12))
    expected = outcome(whole, raw)
    for name in names:
        found = outcome(avro_decoder(registered_schema, client(NOWHERE), frozenset({name})), raw)
        assert found == (expected if isinstance(expected, str) else {name: expected[name]})


def outcome(decode: Any, raw: bytearray) -> str | dict[str, str]:  # noqa: ANN401
    """Return the fields of a record as text, or why it is a bad one."""
    try:
        return {name: str(value) for name, value in decode(bytes(raw)).items()}
    except BadRecordError as error:
        return str(error)


@pytest.mark.parametrize(
    "body",
    [
        b"\x80" * 8 + b"\x40",  # a text of 2^61 bytes
        b"\x02a\0" + b"\x80" * 8 + b"\x40",  # as many texts
        b"\x02a\x08",  # the fifth type of two
        b"\x02a\0\0\x20",  # the ninth of two symbols
        b"\x02\xff\0\0\0\0",  # not UTF-8
        b"\x02a\0\0\0" + b"\x80\x10" + b"\1" * 1024,  # a decimal of 1024 bytes
    ],
)
def test_a_hostile_body_is_a_bad_record(body: bytes) -> None:
    """Lengths beyond the record, indexes beyond the types, and text that is none are refused."""
    with pytest.raises(BadRecordError, match="by its schema the Avro body"):
        DECODE(GOOD[:5] + body)
