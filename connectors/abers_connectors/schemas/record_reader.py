"""Readers of the records of a topic, by format.

A reader decodes a batch to events, or fails as a whole; then each record is read alone, and a bad
one raises its own error.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from abers_connectors.extras import extra
from abers_connectors.mapping.bad_record import BadRecordError, checked
from abers_connectors.mapping.columns import FieldColumn
from abers_connectors.mapping.json_records import JsonReader, events_by_record
from abers_connectors.schemas.schema_cache import SchemaCache, UnusableSchemaError
from abers_connectors.schemas.wire_format import HEAD, schema_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abers.stream import Events
    from abers_connectors.config.sections import TopicFormat
    from abers_connectors.mapping.fields import Record
    from abers_connectors.mapping.mapper import Mapper
    from abers_connectors.mapping.rows import Row
    from abers_connectors.schemas.registry_client import RegisteredSchema, SchemaRegistry

    Metadata = Mapping[str, list[Any]]
    Decoder: TypeAlias = Callable[[bytes], Record]

__all__ = ["EXTRAS", "SCHEMA_TYPES", "RecordReader", "record_reader"]

SCHEMA_TYPES: Mapping[TopicFormat, str] = {
    "avro": "AVRO",
    "protobuf": "PROTOBUF",
    "json-schema": "JSON",
}
"""What the registry calls the schemas of a format."""

EXTRAS: Mapping[str, Sequence[str]] = {
    "avro": ("fastavro",),
    "protobuf": ("google.protobuf", "google.type.date_pb2", "grpc_tools"),
}
"""Libraries of the formats that have an extra of their name."""


class RecordReader(Protocol):
    """Reads the records of an input, whose fields a mapping reads."""

    def prepare(self, raws: Iterable[bytes]) -> None:
        """Get what decoding needs from elsewhere, so that it waits for nobody then."""

    def read(
        self, raws: Sequence[bytes], mapper: Mapper, numbers: Iterable[int], metadata: Metadata
    ) -> Events:
        """Return the events of records with their numbers and metadata; see `JsonReader.read`."""

    def read_one(self, raw: bytes, mapper: Mapper, number: int, metadata: Metadata) -> Row:
        """Return the row of a record, or raise a BadRecordError."""


class _JsonRecords(JsonReader):
    """Reads JSON without a schema."""

    def prepare(self, raws: Iterable[bytes]) -> None:
        """Do nothing."""

    def read_one(
        self, raw: bytes, mapper: Mapper, number: int, metadata: Metadata | None = None
    ) -> Row:
        """Return the row of a record, or raise a BadRecordError."""
        read = super().read_one
        return checked(raw, lambda text: read(text, mapper, number, metadata))


class _SchemaRecords:
    """Reads records that begin with the id of their schema, which is in a registry."""

    def __init__(self, cache: SchemaCache[Decoder]) -> None:
        self._cache = cache

    def prepare(self, raws: Iterable[bytes]) -> None:
        """Look up the schemas that are not known yet."""
        _look_up(self._cache, raws)

    def read(
        self, raws: Sequence[bytes], mapper: Mapper, numbers: Iterable[int], metadata: Metadata
    ) -> Events:
        """Return the events of records."""
        decoders = {head: self._cache.get(schema_id(head)) for head in {raw[:HEAD] for raw in raws}}
        records = [decoders[raw[:HEAD]](raw) for raw in raws]
        if mapper.typed is not None and (typed := mapper.typed.convert(records)) is not None:
            extra = {path: FieldColumn.of(found) for path, found in metadata.items()}
            events = mapper.columns({**mapper.typed.columns(typed), **extra})
            if events is not None:
                return events
        return events_by_record(records, mapper, numbers, metadata)

    def read_one(self, raw: bytes, mapper: Mapper, number: int, metadata: Metadata) -> Row:
        """Return the row of a record, or raise a BadRecordError."""
        record = self._cache.get(schema_id(raw))(raw)
        return mapper.row({**record, **{path: one for path, (one,) in metadata.items()}}, number)


class _JsonSchemaRecords(_JsonRecords):
    """Reads JSON that begins with the id of its schema, which the registry must know."""

    def __init__(self, mapper: Mapper, cache: SchemaCache[bool]) -> None:
        super().__init__(mapper.typed, "a record")
        self._cache = cache

    def prepare(self, raws: Iterable[bytes]) -> None:
        """Look up the schemas that are not known yet."""
        _look_up(self._cache, raws)

    def read(
        self,
        raws: Sequence[bytes],
        mapper: Mapper,
        numbers: Iterable[int],
        metadata: Metadata | None = None,
    ) -> Events:
        """Return the events of records."""
        for head in {raw[:HEAD] for raw in raws}:
            self._cache.get(schema_id(head))
        return super().read([raw[HEAD:] for raw in raws], mapper, numbers, metadata)

    def read_one(
        self, raw: bytes, mapper: Mapper, number: int, metadata: Metadata | None = None
    ) -> Row:
        """Return the row of a record, or raise a BadRecordError."""
        self._cache.get(schema_id(raw))
        return super().read_one(raw[HEAD:], mapper, number, metadata)


def _look_up(cache: SchemaCache[Any], raws: Iterable[bytes]) -> None:
    for head in {raw[:HEAD] for raw in raws}:
        with suppress(BadRecordError):  # raised again for each of its records
            cache.get(schema_id(head))


def record_reader(
    name: TopicFormat, mapper: Mapper, registry: SchemaRegistry | None, *, stop: bool
) -> RecordReader:
    """Return the reader of a format; all but "json" need a registry.

    If the registry is away, records are bad, or, with `stop`, a BrokerError is raised.
    """
    if name == "json" or registry is None:
        return _JsonRecords(mapper.typed, "a record")
    compiled = _compilers(name, registry, mapper.reads)

    def of_type(schema: RegisteredSchema) -> Any:  # noqa: ANN401 - a decoder, or True
        if schema.schema_type != SCHEMA_TYPES[name]:
            msg = f'is of the type {schema.schema_type}, and input.format is "{name}"'
            raise UnusableSchemaError(msg)
        return compiled(schema)

    cache = SchemaCache[Any](registry, of_type, stop=stop)
    return _JsonSchemaRecords(mapper, cache) if name == "json-schema" else _SchemaRecords(cache)


def _compilers(
    name: TopicFormat, registry: SchemaRegistry, reads: frozenset[str]
) -> Callable[[RegisteredSchema], Any]:
    if name == "json-schema":
        return lambda _: True
    for module in EXTRAS[name]:
        extra(module, f'input.format = "{name}"', name)
    if name == "avro":
        from abers_connectors.schemas.avro import avro_decoder  # noqa: PLC0415 - an extra

        return lambda schema: avro_decoder(schema, registry, reads)
    from abers_connectors.schemas.protobuf import protobuf_decoder  # noqa: PLC0415 - an extra

    return lambda schema: protobuf_decoder(schema, registry, reads)
