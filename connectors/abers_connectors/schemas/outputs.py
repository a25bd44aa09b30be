"""Outputs in the formats of a schema registry: their schemas and encoders.

One description of the fields of an output is written as Avro, Protobuf or JSON Schema. A new
version of a type of outputs may only add fields that have a default, at its end: then readers of
the old schema read new records, and readers of the new schema read old records. The number of a
field in Protobuf is its place.

The schema of a topic is registered under the subject that Confluent's serializers use by default:
the name of the topic with the suffix -value.
"""

from __future__ import annotations

import io
import os
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from abers.exceptions import BrokerError
from abers_connectors.extras import extra
from abers_connectors.schemas.record_reader import EXTRAS, SCHEMA_TYPES
from abers_connectors.schemas.registry import (
    RegisteredSchema,
    SchemaRegistry,
    UnusableSchemaError,
    head,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import TopicFormat

    Encoder: TypeAlias = Callable[[Sequence[msgspec.Struct]], list[bytes]]  # row by row

__all__ = [
    "OutputField",
    "as_json",
    "avro_schema",
    "json_schema",
    "output_encoder",
    "output_fields",
    "proto_file",
    "registered_encoder",
]

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


_json = msgspec.json.Encoder()


def as_json(rows: Sequence[msgspec.Struct]) -> list[bytes]:
    """Encode rows as JSON, which has no line ends; one call for all rows is fastest."""
    return _json.encode_lines([*rows]).splitlines()


def registered_encoder(
    config: Config,
    topic: str,
    kind: type[msgspec.Struct],
    environ: Mapping[str, str] = os.environ,
) -> Encoder:
    """Return the encoder of a type of outputs; its schema is registered for the topic.

    Raises a ConfigError if the registry refuses the schema, and a BrokerError if the registry does
    not answer.
    """
    name, section = config.output.format or "json", config.schema_registry
    if name == "json" or section is None:
        return as_json
    fields = output_fields(kind)
    schema = RegisteredSchema(_text(name, kind.__name__, fields), SCHEMA_TYPES[name])
    number = SchemaRegistry(section, environ).register(f"{topic}-value", schema)
    return output_encoder(name, kind, number)


def output_encoder(name: TopicFormat, kind: type[msgspec.Struct], number: int) -> Encoder:
    """Return the encoder of a type of outputs; `number` is the id of its schema."""
    for module in EXTRAS.get(name, ()):
        extra(module, f'output.format = "{name}"', name)
    fields = output_fields(kind)
    if name == "avro":
        return _avro(kind, fields, number)
    if name == "protobuf":
        return _protobuf(kind, fields, number)
    begin = head(number)
    return lambda rows: [begin + one for one in as_json(rows)]


def _text(name: TopicFormat, type_name: str, fields: Sequence[OutputField]) -> str:
    """Return the schema in the language of a format."""
    if name == "protobuf":
        return proto_file(type_name, fields)
    form = avro_schema if name == "avro" else json_schema
    return _json.encode(form(type_name, fields)).decode()


def _values(kind: type[msgspec.Struct], fields: Sequence[OutputField]) -> Callable[[Any], Any]:
    """Return a function that returns the values of a row by name, nested values as JSON text."""
    tag = {fields[0].name: kind.__struct_config__.tag}
    nested = [one.name for one in fields if one.kind == "json"]

    def values(row: msgspec.Struct) -> dict[str, Any]:
        found = tag | msgspec.structs.asdict(row)
        for name in nested:
            if found[name] is not None:
                found[name] = _json.encode(found[name]).decode()
        return found

    return values


def _avro(kind: type[msgspec.Struct], fields: Sequence[OutputField], number: int) -> Encoder:
    from fastavro import parse_schema, schemaless_writer  # noqa: PLC0415 - an extra

    schema = parse_schema(avro_schema(kind.__name__, fields))
    begin, values = head(number), _values(kind, fields)

    def encode(row: msgspec.Struct) -> bytes:
        body = io.BytesIO()
        body.write(begin)
        schemaless_writer(body, schema, values(row))
        return body.getvalue()

    return lambda rows: [*map(encode, rows)]


def _protobuf(kind: type[msgspec.Struct], fields: Sequence[OutputField], number: int) -> Encoder:
    from abers_connectors.schemas.protobuf import ProtoFile  # noqa: PLC0415 - an extra

    try:
        message = ProtoFile(proto_file(kind.__name__, fields), {}).message_type([0])
    except UnusableSchemaError as error:  # the schema is our own, so the machine is too slow
        msg = f"the Protobuf schema of {kind.__name__} {error}"
        raise BrokerError(msg) from None
    begin, values = head(number) + b"\0", _values(kind, fields)  # the first type of the file

    def encode(row: msgspec.Struct) -> bytes:
        # Equal outputs must be equal bytes, also of maps.
        return begin + message(**values(row)).SerializeToString(deterministic=True)

    return lambda rows: [*map(encode, rows)]
