"""Protobuf becomes the values that JSON has, without generated classes."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka.brokers import unique
from tests.connectors.schemas.registries import NOWHERE, client, protobuf, registered

from abers_connectors.mapping.bad_record import BadRecordError
from abers_connectors.schemas.protobuf import protobuf_decoder
from abers_connectors.schemas.protobuf_schema import ProtoFile
from abers_connectors.schemas.registry_client import RegisteredSchema, SchemaReference
from abers_connectors.schemas.schema_cache import UnusableSchemaError

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
        "at": 1_700_000_000_123,
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
    value = {"leaf": {"v": 5}, "at": 1000}
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
        ProtoFile('syntax = "proto3";', {path: 'syntax = "proto3";'})


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
            found.append(error.detail)
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
    assert len(found.value.detail) < 300


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
