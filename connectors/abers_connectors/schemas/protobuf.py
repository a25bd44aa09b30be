"""Records in Protobuf, decoded with the descriptors of their schema.

Only fields that are read are converted, to the values of JSON: times become moments of numpy,
wrapped values what they wrap, enums their names, and bytes Base64. A field that has presence and is
not set is missing; any other that is not set has the default of its type, as Protobuf does not tell
them apart.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from abers.stream.cells import BadRecordError
from abers_connectors.schemas.protobuf_schema import ProtoFile
from abers_connectors.schemas.references import imported
from abers_connectors.schemas.schema_cache import UnusableSchemaError
from abers_connectors.schemas.well_known import known_value
from abers_connectors.schemas.wire_format import message_indexes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from google.protobuf.descriptor import EnumDescriptor
    from google.protobuf.message import Message

    from abers_connectors.mapping.json_columns import Record
    from abers_connectors.schemas.registry_client import RegisteredSchema, SchemaRegistry

    _Getter: TypeAlias = tuple[str, Callable[[Any], Any]]

__all__ = ["protobuf_decoder"]

_VALUES_A_BYTE = 8  # of a record, in messages within messages
_LEAST_VALUES = 10_000
_MAX_MEMORY = 1 << 30  # of a record


def protobuf_decoder(
    schema: RegisteredSchema, registry: SchemaRegistry, reads: frozenset[str]
) -> Callable[[bytes], Record]:
    """Return a decoder of records; `reads` are the top-level fields that are wanted."""
    file = ProtoFile(schema.schema, imported(schema, registry))
    types: dict[tuple[int, ...], _Type] = {}
    converters = _Converters()
    # An empty message has two bytes in a record, and each of its fields up to 16 in memory.
    most_bytes = 2 * _MAX_MEMORY // (16 * max(file.most_fields, 1))

    def decode(raw: bytes) -> Record:
        indexes, begin = message_indexes(raw)
        if (known := types.get(indexes)) is None:
            kind = _message_type(file, indexes)
            known = types[indexes] = _Type(kind, converters.of_fields(kind.DESCRIPTOR, reads))
        try:
            if len(raw) > most_bytes:
                msg = f"more than {most_bytes} bytes, where a type has {file.most_fields} fields"
                raise ValueError(msg)  # noqa: TRY301 - one answer to all
            return known.convert(known.kind.FromString(raw[begin:]), len(raw))
        except (DecodeError, ValueError, ArithmeticError, RecursionError) as error:
            detail = (
                f"by its schema the Protobuf body cannot be decoded ({error}); write it with the "
                "schema of its id"
            )
            raise BadRecordError("bad-protobuf", detail) from None

    return decode


class _Type(NamedTuple):
    kind: type[Message]
    convert: Callable[[Any, int], Record]  # from a message, and the bytes of its record


def _message_type(file: ProtoFile, indexes: Sequence[int]) -> type[Message]:
    try:
        return file.message_type(indexes)
    except UnusableSchemaError as error:
        detail = f"the schema of the record {error}; write it with the registry's serializer"
        raise BadRecordError("bad-wire-format", detail) from None
    except RecursionError:
        detail = "the schema of the record has types that lead to too many others, one by one"
        raise BadRecordError("unusable-schema", detail) from None


class _Converters:
    """Converters of message types, each made once: a type may contain itself."""

    def __init__(self) -> None:
        self._made: dict[str, Callable[[Any], dict[str, Any]]] = {}
        self._values = 0  # that a record may still have in messages within messages
        # Types within types wait here: a recursion would fail at a long chain of them.
        self._left: list[tuple[Any, list[_Getter]]] = []

    def of_fields(
        self,
        descriptor: Any,  # noqa: ANN401 - of two classes
        reads: Collection[str],
    ) -> Callable[[Any, int], Record]:
        """Return what makes the fields that are read of a message and the size of its record."""
        wanted = [
            (field.name, self._getter(field)) for field in descriptor.fields if field.name in reads
        ]
        while self._left:
            nested, getters = self._left.pop()
            getters += [(field.name, self._getter(field)) for field in nested.fields]

        def convert(message: Any, size: int) -> Record:  # noqa: ANN401 - of the type
            self._values = _LEAST_VALUES + _VALUES_A_BYTE * size
            return {name: get(message) for name, get in wanted}

        return convert

    def _of_nested(self, descriptor: Any) -> Callable[[Any], dict[str, Any]]:  # noqa: ANN401 - of two classes
        if (made := self._made.get(descriptor.full_name)) is not None:
            return made
        getters: list[_Getter] = []

        def convert(message: Any) -> dict[str, Any]:  # noqa: ANN401 - of the type
            # An empty message takes two bytes, and has all fields of its type.
            self._values -= len(getters)
            if self._values < 0:
                msg = f"more than {_VALUES_A_BYTE} values a byte, most of them not set"
                raise ValueError(msg)
            return {name: get(message) for name, get in getters}

        self._made[descriptor.full_name] = convert
        self._left.append((descriptor, getters))
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
                convert(getattr(message, name)) if type(message).HasField(message, name) else None
            )
        return lambda message: convert(getattr(message, name))

    def _converter(self, field: FieldDescriptor) -> Callable[[Any], Any]:
        if field.message_type is not None:
            return known_value(field.message_type) or self._of_nested(field.message_type)
        if field.enum_type is not None:
            return _enum(field.enum_type)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return lambda value: base64.b64encode(value).decode()
        if field.type == FieldDescriptor.TYPE_STRING:
            return _text
        return lambda value: value


def _text(value: str | bytes) -> str:
    """Return a text, which proto2 has as bytes if it is not UTF-8."""
    return value if isinstance(value, str) else value.decode()


def _key(key: object) -> str:
    if isinstance(key, bytes):
        return _text(key)
    return str(key).lower() if isinstance(key, bool) else str(key)


def _enum(descriptor: EnumDescriptor) -> Callable[[int], Any]:
    names: Mapping[int, str] = {one.number: one.name for one in descriptor.values}
    return lambda value: names.get(value, value)
