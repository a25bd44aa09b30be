"""Schemas of outputs: one description of their fields, written as Avro, Protobuf and JSON Schema.

A new version of a type of outputs may only add fields that have a default, at its end: then readers
of the old schema read new records, and readers of the new schema read old records. The number of a
field in Protobuf is its place.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["NAMESPACE", "OutputField", "avro_schema", "json_schema", "output_fields", "proto_file"]

Kind: TypeAlias = Literal["string", "long", "double", "boolean", "numbers", "json"]
"""Type of a field; "numbers" are by name, and "json" is an object that is written as JSON text."""

NAMESPACE = "abers"

_KINDS: Mapping[Any, Kind] = {
    str: "string",
    int: "long",
    float: "double",
    bool: "boolean",
    dict[str, float]: "numbers",
}
_AVRO: Mapping[Kind, Any] = {"numbers": {"type": "map", "values": "double"}, "json": "string"}
_PROTO: Mapping[Kind, str] = {
    "long": "int64",
    "boolean": "bool",
    "numbers": "map<string, double>",
    "json": "string",
}
# An infinite number is null in JSON.
_JSON: Mapping[Kind, Any] = {
    "string": {"type": "string"},
    "long": {"type": "integer"},
    "double": {"type": ["number", "null"]},
    "boolean": {"type": "boolean"},
    "numbers": {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
    "json": {"type": "object"},
}


class OutputField(NamedTuple):
    """A field of an output."""

    name: str
    kind: Kind
    required: bool = True  # whether each record has it
    default: Any = None  # of a field that is not required


def output_fields(kind: type[msgspec.Struct]) -> list[OutputField]:
    """Return the fields of a type of outputs, the version of the schema first.

    >>> class Point(msgspec.Struct, tag_field="v", tag=1):
    ...     x: float
    ...     more: dict[str, int] | None = None
    >>> [(one.name, one.kind, one.required) for one in output_fields(Point)]
    [('v', 'long', True), ('x', 'double', True), ('more', 'json', False)]
    """
    config = kind.__struct_config__
    fields = [_field(one) for one in msgspec.structs.fields(kind)]
    return [OutputField(config.tag_field or "v", "long"), *fields]


def _field(field: msgspec.structs.FieldInfo) -> OutputField:
    kinds = {one for one in get_args(field.type) if one is not NoneType}
    plain = kinds.pop() if NoneType in get_args(field.type) and len(kinds) == 1 else field.type
    default = None if field.required else field.default
    return OutputField(field.encode_name, _KINDS.get(plain, "json"), field.required, default)


def avro_schema(name: str, fields: Sequence[OutputField]) -> dict[str, Any]:
    """Return the Avro schema of a type of outputs."""
    return {
        "type": "record",
        "name": name,
        "namespace": NAMESPACE,
        "fields": [_avro_field(one) for one in fields],
    }


def _avro_field(field: OutputField) -> dict[str, Any]:
    kind = _AVRO.get(field.kind, field.kind)
    if field.required:
        return {"name": field.name, "type": kind}
    if field.default is None:
        kind = ["null", kind]
    return {"name": field.name, "type": kind, "default": field.default}


def proto_file(name: str, fields: Sequence[OutputField]) -> str:
    """Return the Protobuf file of a type of outputs."""
    lines = [
        f"  {_presence(one)}{_PROTO.get(one.kind, one.kind)} {one.name} = {number};"
        for number, one in enumerate(fields, 1)
    ]
    body = "\n".join(lines)
    return f'syntax = "proto3";\npackage {NAMESPACE};\n\nmessage {name} {{\n{body}\n}}\n'


def _presence(field: OutputField) -> str:
    missing = not field.required and field.default is None and field.kind != "numbers"
    return "optional " if missing else ""


def json_schema(name: str, fields: Sequence[OutputField]) -> dict[str, Any]:
    """Return the JSON Schema of a type of outputs.

    It allows no other properties. Otherwise registries refuse a new property: old records might
    have had one of its name.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": name,
        "type": "object",
        "properties": {one.name: _JSON[one.kind] for one in fields},
        "required": [one.name for one in fields if one.required],
        "additionalProperties": False,
    }
