"""Protobuf becomes the values that JSON has, without generated classes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import pytest
from google.protobuf.struct_pb2 import Struct
from google.type import date_pb2
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka.brokers import unique
from tests.connectors.schemas.registries import NOWHERE, client, protobuf, registered

from abers.stream.cells import BadRecordError
from abers_connectors.schemas import protobuf as protobuf_schema
from abers_connectors.schemas.protobuf import ProtoFile, protobuf_decoder
from abers_connectors.schemas.registry import RegisteredSchema, SchemaReference, UnusableSchemaError

VALUES = """
syntax = "proto3";
package a.b;
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Event {
  string text = 1;
  int64 whole = 2;
  uint64 large = 3;
  double number = 4;
  bool flag = 5;
  bytes raw = 6;
  Kind kind = 7;
  optional double maybe = 8;
  Inner inner = 9;
  repeated Inner several = 10;
  map<string, double> by_name = 11;
  map<int32, Inner> by_number = 12;
  oneof either { string left = 13; int32 right = 14; }
  google.protobuf.Timestamp at = 15;
  google.protobuf.DoubleValue wrapped = 16;
  google.protobuf.BytesValue wrapped_raw = 17;
  google.protobuf.Struct free = 18;
  enum Kind { NONE = 0; FRAUD = 1; }
  message Inner { int32 v = 1; Inner next = 2; }
}
message Other { message Deep { string id = 1; } }
"""
EMPTY = 'syntax = "proto3";'
HEAD = b"\0\0\0\0\7\0"
FREE = {"a": [1.0, None, True, {"b": "x"}]}


def decoder(text: str, *reads: str) -> Any:  # noqa: ANN401
    """Return the decoder of a file."""
    return protobuf_decoder(RegisteredSchema(text, "PROTOBUF"), client(NOWHERE), frozenset(reads))


def test_values_become_those_of_json() -> None:
    """Each type; what is not set is missing if it has presence, and otherwise the default."""
    names = [one.name for one in ProtoFile(VALUES, {}).message_type([0]).DESCRIPTOR.fields]
    decode = decoder(VALUES, *names)
    free = Struct()
    free.update(FREE)
    written = {
        "text": "é",
        "whole": -(2**63),
        "large": 2**64 - 1,
        "number": 0.1,
        "flag": True,
        "raw": b"\xff\0",
        "kind": "FRAUD",
        "maybe": 0.0,
        "inner": {"v": 3, "next": {"v": 4}},
        "several": [{"v": 1}],
        "by_name": {"x": 0.5},
        "by_number": {7: {"v": 1}},
        "right": 0,
        "at": {"seconds": 1_700_000_000, "nanos": 123_456_789},
        "wrapped": {"value": 0.5},
        "wrapped_raw": {"value": b"a"},
    }
    raw = protobuf(7, VALUES, **written)
    raw += b"\x92\x01" + bytes([free.ByteSize()]) + free.SerializeToString()
    assert decode(raw) == {
        **{name: written[name] for name in ("text", "whole", "large", "number", "flag", "maybe")},
        "raw": "/wA=",
        "kind": "FRAUD",
        "inner": {"v": 3, "next": {"v": 4, "next": None}},
        "several": [{"v": 1, "next": None}],
        "by_name": {"x": 0.5},
        "by_number": {"7": {"v": 1, "next": None}},
        "left": None,
        "right": 0,
        "at": np.datetime64(1_700_000_000_123, "ms"),
        "wrapped": 0.5,
        "wrapped_raw": "YQ==",
        "free": FREE,
    }
    unset = {"text": "", "whole": 0, "large": 0, "number": 0.0, "flag": False, "raw": ""}
    some: dict[str, Any] = {"kind": "NONE", "several": [], "by_name": {}, "by_number": {}}
    assert decode(protobuf(7, VALUES)) == {**dict.fromkeys(names), **unset, **some}


def test_only_what_is_read_is_converted() -> None:
    """Other fields are not in the result, and an unknown enum is its number."""
    raw = protobuf(7, VALUES, text="a", kind=9)
    assert decoder(VALUES, "kind", "nothing")(raw) == {"kind": 9}


def test_the_message_type_is_found_by_its_indexes() -> None:
    """The indexes in the record name a type of the file, or one within another."""
    deep = 'syntax = "proto3"; message Deep { string id = 1; }'
    decode = decoder(VALUES, "id", "v")
    assert decode(protobuf(7, deep, b"\x04\x02\0", id="x")) == {"id": "x"}
    assert decode(protobuf(7, deep.replace("string id", "int32 v"), b"\x04\0\0", v=5)) == {"v": 5}
    with pytest.raises(BadRecordError, match="has no message type 5") as found:
        decode(protobuf(7, deep, b"\x02\x0a", id="x"))
    assert found.value.reason == "bad-wire-format"


def test_imported_files(schema_registry: str) -> None:
    """Files of other subjects are found, those that these import too, as is the library's own."""
    shared = unique("shared")
    leaf = 'syntax = "proto3"; package l; message Leaf { int32 v = 1; }'
    registered(schema_registry, f"{shared}.leaf", leaf, "PROTOBUF")
    middle = (
        'syntax = "proto3"; package m; import "x/leaf.proto"; import '
        '"google/protobuf/timestamp.proto";\n'
        "message Middle { l.Leaf leaf = 1; google.protobuf.Timestamp at = 2; }"
    )
    to_leaf = SchemaReference("x/leaf.proto", f"{shared}.leaf", 1)
    registered(schema_registry, f"{shared}.middle", middle, "PROTOBUF", references=(to_leaf,))
    whole = 'syntax = "proto3"; import "y/middle.proto"; message Event { m.Middle m = 1; }'
    to_middle = SchemaReference("y/middle.proto", f"{shared}.middle", 1)
    number = registered(
        schema_registry, unique("event"), whole, "PROTOBUF", references=(to_middle,)
    )
    schema = client(schema_registry).schema(number)
    assert schema is not None
    assert schema.schema_type == "PROTOBUF"
    decode = protobuf_decoder(schema, client(schema_registry), frozenset("m"))
    body = bytes.fromhex("0a08 0a02 0805 1202 0801")
    value = {"leaf": {"v": 5}, "at": np.datetime64(1000, "ms")}
    assert decode(b"\0" + number.to_bytes(4) + b"\0" + body) == {"m": value}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("message {", "is not a valid Protobuf file: schema.proto:1:9: Expected message name"),
        ('syntax = "proto3"; import "none.proto";', "none.proto: File not found"),
        ("\0", "is not a valid Protobuf file"),
    ],
)
def test_a_schema_that_cannot_be_used(text: str, why: str) -> None:
    """The compiler's own sentence says why."""
    with pytest.raises(UnusableSchemaError, match=why):
        decoder(text, "a")


@pytest.mark.parametrize("path", ["../a.proto", "/a.proto", "", "a/../../b.proto", "a\0"])
def test_an_import_stays_within_its_folder(path: str) -> None:
    """The name of an import cannot reach another file of this machine."""
    with pytest.raises(UnusableSchemaError, match="not the relative path"):
        ProtoFile(EMPTY, {path: EMPTY})


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["a", "a/b.proto"], "imports 'a', which is the folder of another import"),
        (["a/b.proto", "a"], "imports 'a', which is the folder of another import"),
        (["schema.proto/b"], "imports 'schema.proto', which is the folder of another import"),
        (["n" * 300], "imports 'n{60}'…, a name of more than 255 bytes"),
        (["d/" * 140 + "n"], "a name of more than 255 bytes"),
        (["é" * 130], "a name of more than 255 bytes"),
    ],
)
def test_an_import_is_a_file_with_a_short_name(names: list[str], why: str) -> None:
    """A name that cannot be that of a file is an error of the schema."""
    with pytest.raises(UnusableSchemaError, match=why):
        ProtoFile(EMPTY, dict.fromkeys(names, EMPTY))


@pytest.mark.parametrize("name", ["descriptors", "sources", "said", "a b.proto", "é:=.proto"])
def test_an_import_may_have_any_other_name(name: str) -> None:
    """Files of our own are not in the way, and no letter is special."""
    text = f'syntax = "proto3"; import "{name}"; message Event {{ Part p = 1; }}'
    found = ProtoFile(text, {name: 'syntax = "proto3"; message Part { string id = 1; }'})
    raw = found.message_type([0])(p={"id": "a"}).SerializeToString()
    assert raw == b"\x0a\x03\x0a\x01a"


def chain(length: int) -> str:
    """Return a file whose types lead to one another, in a circle."""
    types = [f"message M{n} {{ M{(n + 1) % length} m = 1; }}" for n in range(length)]
    return 'syntax = "proto3"; message Event { string id = 1; M0 m = 2; }' + " ".join(types)


def test_a_chain_of_types() -> None:
    """Types may lead to many others; if there are too many, the schema cannot be used."""
    raw = HEAD + b"\x0a\x01a\x12\x02\x0a\0"
    assert decoder(chain(400), "id", "m")(raw) == {"id": "a", "m": {"m": {"m": None}}}
    with pytest.raises(BadRecordError, match="types that lead to too many others") as found:
        decoder(chain(5000), "id", "m")(raw)
    assert found.value.reason == "unusable-schema"


@pytest.mark.parametrize("name", ["Timestamp", "Value", "Struct", "DoubleValue", "ListValue"])
def test_a_type_with_the_name_of_a_well_known_one(name: str) -> None:
    """It is read by its own fields."""
    text = (
        'syntax = "proto3"; package google.protobuf;'
        f"message Event {{ {name} x = 1; }} message {name} {{ string values = 1; }}"
    )
    assert decoder(text, "x")(HEAD + b"\x0a\x03\x0a\x01a") == {"x": {"values": "a"}}


def test_a_reference_replaces_no_well_known_file() -> None:
    """A file of the registry with the name of a well-known one is not read."""
    text = (
        'syntax = "proto3"; import "google/protobuf/timestamp.proto";'
        "message Event { google.protobuf.Timestamp at = 1; }"
    )
    names = ("google/protobuf/timestamp.proto", "google/protobuf/descriptor.proto")
    file = ProtoFile(text, dict.fromkeys(names, "no Protobuf"))
    raw = file.message_type([0])(at={"seconds": 5}).SerializeToString()
    assert raw == b"\x0a\x02\x08\x05"


KNOWN = [
    *(f"google/type/{path.name}" for path in Path(date_pb2.__file__).parent.glob("*.proto")),
    *(f"confluent/{name}.proto" for name in ("meta", "type/decimal", "type/variant")),
]


def test_imports_that_need_no_reference() -> None:
    """Files that every serializer of Confluent knows are found, options of confluent included."""
    imports = "".join(f'import "{name}"; ' for name in KNOWN)
    text = (
        f'syntax = "proto3"; {imports} message Event {{ '
        'string id = 1 [(confluent.field_meta) = { doc: "x", params: [{key: "a", value: "b"}] }];'
        "confluent.type.Decimal price = 2; google.type.Date day = 3; google.type.TimeOfDay at = 4;"
        "google.type.Decimal text = 5; google.type.Money money = 6; google.type.Decimal none = 7;"
        "repeated confluent.type.Decimal several = 8; google.type.Month month = 9; }"
    )
    decode = decoder(text, "id", "price", "day", "at", "text", "money", "none", "several", "month")
    written = {
        "id": "a",
        "price": {"value": (-1234).to_bytes(2, signed=True), "precision": 9, "scale": 2},
        "day": {"year": 2026, "month": 1, "day": 31},
        "at": {"hours": 12, "minutes": 30, "seconds": 15, "nanos": 250_000_000},
        "text": {"value": "12.5"},
        "money": {"currency_code": "EUR", "units": 5, "nanos": 10},
        "several": [{"value": b"\5", "scale": -3}, {}],
        "month": "MAY",
    }
    assert decode(protobuf(7, text, **written)) == {
        "id": "a",
        "price": -12.34,
        "day": "2026-01-31",
        "at": "12:30:15.250000",
        "text": 12.5,
        "money": {"currency_code": "EUR", "units": 5, "nanos": 10},
        "none": None,
        "several": [5000.0, 0.0],
        "month": "MAY",
    }
    assert decode(protobuf(7, text, day={"year": 2026}, at={"hours": 9}))["day"] == "2026-00-00"


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("confluent.type.Decimal", {"value": b"\1" * 65}),
        ("confluent.type.Decimal", {"value": b"\1", "scale": 2**31 - 1}),
        ("confluent.type.Decimal", {"value": b"\1" * 64, "scale": -400}),
        ("google.type.Decimal", {"value": "one"}),
        ("google.type.Decimal", {"value": "1e400"}),
        ("google.type.Decimal", {"value": "1" * 100_000}),
    ],
)
def test_a_decimal_that_is_none(kind: str, values: dict[str, Any]) -> None:
    """It is a bad record, at once."""
    text = (
        'syntax = "proto3"; import "confluent/type/decimal.proto"; '
        f'import "google/type/decimal.proto"; message Event {{ {kind} x = 1; }}'
    )
    with pytest.raises(BadRecordError, match="the Protobuf body cannot be decoded") as found:
        decoder(text, "x")(protobuf(7, text, x=values))
    assert found.value.reason == "bad-protobuf"


@pytest.mark.parametrize("name", ["meta", "type/decimal", "type/variant"])
def test_files_of_confluent(name: str) -> None:
    """They declare what those do that confluent-kafka ships."""
    package = find_spec("confluent_kafka")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "schema_registry" / "confluent" / f"{name}_pb2.py"
    shipped = run_path(str(path))["DESCRIPTOR"]
    text = f'syntax = "proto3"; import "confluent/{name}.proto"; message Event {{}}'
    ours = ProtoFile(text, {}).message_type([0]).DESCRIPTOR.file.pool.FindFileByName(shipped.name)
    for one in ("message_types_by_name", "extensions_by_name"):
        assert described(getattr(ours, one)) == described(getattr(shipped, one))


def described(types: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return what some message types or extensions of a file are."""
    return {
        name: {field.name: (field.number, field.type, field.is_repeated) for field in one.fields}
        if hasattr(one, "fields")
        else (one.number, one.containing_type.full_name, one.message_type.full_name)
        for name, one in types.items()
    }


def test_a_field_with_the_name_of_a_method() -> None:
    """The library's own names are no others for fields."""
    text = 'syntax = "proto3"; message Event { string HasField = 1; optional string Clear = 2; }'
    decode = decoder(text, "HasField", "Clear")
    assert decode(protobuf(7, text, HasField="a")) == {"HasField": "a", "Clear": None}


def test_text_that_is_none() -> None:
    """Text must be UTF-8, in proto2 as well, where the library does not demand it."""
    text = (
        'syntax = "proto2"; message Event { optional string a = 1; repeated string b = 2; '
        "map<string, int32> c = 3; }"
    )
    decode = decoder(text, "a", "b", "c")
    for body in (b"\x0a\x01\xff", b"\x12\x01\xff", b"\x1a\x05\x0a\x01\xff\x10\1"):
        with pytest.raises(BadRecordError, match="cannot be decoded") as found:
            decode(HEAD + body)
        assert found.value.reason == "bad-protobuf"


def test_a_schema_that_the_library_refuses() -> None:
    """What the compiler only warns of, and the library refuses, is an error of the schema."""
    text = 'syntax = "proto2"; message Event { optional int32 _f = 1; optional int32 __f = 2; }'
    with pytest.raises(UnusableSchemaError, match=r"is not a valid Protobuf file: .*json_name"):
        decoder(text, "f")


@pytest.mark.parametrize(
    ("limit", "body"),
    [
        ({"CPU": 1}, f"reserved {','.join(map(str, range(1, 120_000, 2)))};"),  # each held to each
        ({"AS": 64 << 20}, "".join(f"message M{n} {{}}" for n in range(50_000))),
        ({"FSIZE": 100}, f"message {'M' * 200} {{}}"),
    ],
    ids=["time", "memory", "output"],
)
def test_a_compiler_that_takes_too_much(
    limit: dict[str, int], body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time, memory and output are bounded, whatever the schema is."""
    text = f'syntax = "proto2"; message Event {{ {body} }}'
    limits = {"CPU": 5, "AS": 1 << 30, "FSIZE": 32 << 20}
    monkeypatch.setattr(protobuf_schema, "_LIMITS", limits | limit)
    with pytest.raises(
        UnusableSchemaError, match=r"is not (compiled within|a valid Protobuf file)"
    ):
        decoder(text, "f")


def test_messages_of_many_fields() -> None:
    """Few bytes may not become a great many values, nor take much memory."""
    text = 'syntax = "proto3"; message Event { string id = 1; repeated Wide w = 2; } message Wide {'
    text += "".join(f"int32 f{n} = {n};" for n in range(1, 1001)) + "}"
    assert len(decoder(text, "w")(HEAD + b"\x12\0" * 3)["w"][2]) == 1000
    for reads, size, why in (
        ("w", 100, "more than 8 values a byte"),
        ("id", 70_000, "a type has 1000 fields"),
    ):
        with pytest.raises(BadRecordError, match=why) as found:
            decoder(text, reads)(HEAD + b"\x12\0" * size)
        assert found.value.reason == "bad-protobuf"


DECODE = decoder(VALUES, "text", "inner", "free")
GOOD = protobuf(7, VALUES, text="abc", inner={"v": 300})


@given(st.binary(max_size=60))
def test_any_bytes_are_a_record_or_a_bad_one(body: bytes) -> None:
    """No bytes do anything else than to be decoded, or to be refused with the same words."""
    found = []
    for _ in range(2):
        try:
            found.append(str(DECODE(GOOD[:5] + body)))
        except BadRecordError as error:
            found.append(str(error))
    assert found[0] == found[1]


@pytest.mark.parametrize("depth", [200, 100_000])
def test_a_bomb_of_nesting(depth: int) -> None:
    """A message within itself is refused beyond a hundred levels."""
    body = b""
    if depth == 200:
        for _ in range(depth):
            body = b"\x12" + _varint(len(body)) + body
        body = b"\x4a" + _varint(len(body)) + body
    else:
        body = b"\x4b" * depth  # groups, which have no length
    with pytest.raises(BadRecordError, match="the Protobuf body cannot be decoded") as found:
        DECODE(GOOD[:6] + body)
    assert found.value.reason == "bad-protobuf"
    assert len(str(found.value)) < 300


def test_a_cut_body() -> None:
    """A body that is cut within a field is a bad record."""
    for size in (7, 8, len(GOOD) - 1):
        with pytest.raises(BadRecordError, match="the Protobuf body cannot be decoded"):
            DECODE(GOOD[:size])


def _varint(number: int) -> bytes:
    found = b""
    while number > 0x7F:
        found, number = found + bytes([number & 0x7F | 0x80]), number >> 7
    return found + bytes([number])
