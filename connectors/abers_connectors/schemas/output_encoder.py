"""Encoders of outputs in the formats of a schema registry.

The schema of a topic is registered under the subject that Confluent's serializers use by default:
the name of the topic with the suffix -value.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from abers.exceptions import BrokerError
from abers_connectors.extras import extra
from abers_connectors.schemas.output_schema import (
    avro_schema,
    json_schema,
    output_fields,
    proto_file,
)
from abers_connectors.schemas.record_reader import EXTRAS, SCHEMA_TYPES
from abers_connectors.schemas.registry_client import RegisteredSchema, SchemaRegistry
from abers_connectors.schemas.schema_cache import UnusableSchemaError
from abers_connectors.schemas.wire_format import head

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import TopicFormat
    from abers_connectors.schemas.output_schema import OutputField

    Encoder: TypeAlias = Callable[[Sequence[msgspec.Struct]], list[bytes]]  # row by row

__all__ = ["as_json", "output_encoder", "registered_encoder"]

_json = msgspec.json.Encoder()


def as_json(rows: Sequence[msgspec.Struct]) -> list[bytes]:
    """Encode rows as JSON, which has no line end within; one call for all rows costs least."""
    return _json.encode_lines([*rows]).splitlines()


def registered_encoder(
    config: Config,
    topic: str,
    kind: type[msgspec.Struct],
    environ: Mapping[str, str] = os.environ,
) -> Encoder:
    """Return the encoder of a type of outputs; its schema is registered for the topic.

    A ConfigError is raised if the registry refuses the schema, and a BrokerError if it is away.
    """
    name, section = config.output.format or "json", config.schema_registry
    if name == "json" or section is None:
        return as_json
    fields = output_fields(kind)
    schema = RegisteredSchema(_text(name, kind.__name__, fields), SCHEMA_TYPES[name])
    number = SchemaRegistry(section, environ).register(f"{topic}-value", schema)
    return output_encoder(name, kind, number)


def output_encoder(name: TopicFormat, kind: type[msgspec.Struct], number: int) -> Encoder:
    """Return the encoder of a type of outputs with a schema that has an id."""
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
    from abers_connectors.schemas.protobuf_schema import ProtoFile  # noqa: PLC0415 - an extra

    try:
        message = ProtoFile(proto_file(kind.__name__, fields), {}).message_type([0])
    except UnusableSchemaError as error:  # it is our own, and the machine too slow
        msg = f"the Protobuf schema of {kind.__name__} {error}"
        raise BrokerError(msg) from None
    begin, values = head(number) + b"\0", _values(kind, fields)  # the first type of the file

    def encode(row: msgspec.Struct) -> bytes:
        # Equal outputs must be equal bytes, also of maps.
        return begin + message(**values(row)).SerializeToString(deterministic=True)

    return lambda rows: [*map(encode, rows)]
