"""Records in Protobuf, decoded with the descriptors of their schema.

Only fields that are read are converted, to the values of JSON: times become milliseconds, wrapped
values what they wrap, enums their names, and bytes Base64. A field that has presence and is not set
is missing; any other that is not set has the default of its type, as Protobuf does not tell them
apart.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from abers_connectors.mapping.bad_record import BadRecordError
from abers_connectors.schemas.protobuf_schema import ProtoFile
from abers_connectors.schemas.references import imported
from abers_connectors.schemas.schema_cache import UnusableSchemaError
from abers_connectors.schemas.wire_format import message_indexes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from google.protobuf.descriptor import EnumDescriptor
    from google.protobuf.message import Message

    from abers_connectors.mapping.fields import Record
    from abers_connectors.schemas.registry_client import RegisteredSchema, SchemaRegistry

__all__ = ["protobuf_decoder"]


def protobuf_decoder(
    schema: RegisteredSchema, registry: SchemaRegistry, reads: frozenset[str]
) -> Callable[[bytes], Record]:
    """Return a decoder of records; `reads` are the top-level fields that are wanted."""
    file = ProtoFile(schema.schema, imported(schema, registry))
    types: dict[tuple[int, ...], tuple[type[Message], Callable[[Any], dict[str, Any]]]] = {}

    def decode(raw: bytes) -> Record:
        indexes, begin = message_indexes(raw)
        if (known := types.get(indexes)) is None:
            try:
                kind = file.message_type(indexes)
            except UnusableSchemaError as error:
                detail = (
                    f"the schema of the record {error}; write it with the registry's serializer"
                )
                raise BadRecordError("bad-wire-format", detail) from None
            known = types[indexes] = kind, _Converters().of_message(kind.DESCRIPTOR, reads)
        kind, convert = known
        try:
            message = kind.FromString(raw[begin:])
        except DecodeError as error:
            detail = (
                f"by its schema the Protobuf body cannot be decoded ({error}); write it with the "
                "schema whose id it has"
            )
            raise BadRecordError("bad-protobuf", detail) from None
        return convert(message)

    return decode


class _Converters:
    """Converters of message types, each made once: a type may contain itself."""

    def __init__(self) -> None:
        self._made: dict[str, Callable[[Any], dict[str, Any]]] = {}

    def of_message(
        self,
        descriptor: Any,  # noqa: ANN401 - of two classes
        only: Collection[str] | None = None,
    ) -> Callable[[Any], dict[str, Any]]:
        """Return the converter of messages of a type to their fields that are set."""
        getters: list[tuple[str, Callable[[Any], Any]]] = []

        def convert(message: Any) -> dict[str, Any]:  # noqa: ANN401 - of the type
            return {name: get(message) for name, get in getters}

        if only is None:
            if (made := self._made.get(descriptor.full_name)) is not None:
                return made
            self._made[descriptor.full_name] = convert
        getters += [
            (field.name, self._getter(field))
            for field in descriptor.fields
            if only is None or field.name in only
        ]
        return convert

    def _getter(self, field: FieldDescriptor) -> Callable[[Any], Any]:
        """Return a function that returns a field of a message, None if it is not set."""
        name = field.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = self._converter(field.message_type.fields_by_name["value"])
            return lambda message: {
                _key(key): value(one) for key, one in getattr(message, name).items()
            }
        convert = self._converter(field)
        if field.is_repeated:
            return lambda message: [convert(one) for one in getattr(message, name)]
        if field.has_presence:
            return lambda message: (
                convert(getattr(message, name)) if message.HasField(name) else None
            )
        return lambda message: convert(getattr(message, name))

    def _converter(self, field: FieldDescriptor) -> Callable[[Any], Any]:
        if field.message_type is not None:
            known = _KNOWN.get(field.message_type.full_name)
            return known or self.of_message(field.message_type)
        if field.enum_type is not None:
            return _enum(field.enum_type)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return lambda value: base64.b64encode(value).decode()
        return lambda value: value


def _key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _enum(descriptor: EnumDescriptor) -> Callable[[int], Any]:
    names: Mapping[int, str] = {one.number: one.name for one in descriptor.values}
    return lambda value: names.get(value, value)


def _milliseconds(message: Any) -> int:  # noqa: ANN401 - a message
    return int(message.seconds * 1000 + message.nanos // 1_000_000)


def _struct(message: Any) -> dict[str, Any]:  # noqa: ANN401 - a message
    return {name: _value(one) for name, one in message.fields.items()}


def _list(message: Any) -> list[Any]:  # noqa: ANN401 - a message
    return [_value(one) for one in message.values]


def _value(message: Any) -> Any:  # noqa: ANN401 - a message
    kind = message.WhichOneof("kind")
    if kind is None or kind == "null_value":
        return None
    found = getattr(message, kind)
    return {"struct_value": _struct, "list_value": _list}.get(kind, lambda one: one)(found)


def _bytes(message: Any) -> str:  # noqa: ANN401 - a message
    return base64.b64encode(message.value).decode()


_WRAPPED = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String")
_KNOWN: Mapping[str, Callable[[Any], Any]] = {
    "google.protobuf.Timestamp": _milliseconds,
    "google.protobuf.Struct": _struct,
    "google.protobuf.ListValue": _list,
    "google.protobuf.Value": _value,
    "google.protobuf.BytesValue": _bytes,
    **{f"google.protobuf.{one}Value": lambda message: message.value for one in _WRAPPED},
}
