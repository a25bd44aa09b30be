"""Readers of the records of a topic, by format.

A reader decodes a batch to raw columns, or fails as a whole; then each record is decoded alone, and
a bad one raises its own error.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from abers.stream.cells import BadRecordError
from abers_connectors.extras import extra
from abers_connectors.mapping import JsonColumns, checked, columns_of
from abers_connectors.schemas.registry import HEAD, SchemaCache, UnusableSchemaError, schema_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abers.stream.cells import RawColumns
    from abers_connectors.config.sections import TopicFormat
    from abers_connectors.mapping import Record
    from abers_connectors.schemas.registry import RegisteredSchema, SchemaRegistry

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
    """Decodes the records of an input to raw columns."""

    def prepare(self, raws: Iterable[bytes]) -> None:
        """Fetch what decoding needs from elsewhere, so that decoding does not wait."""

    def columns(self, raws: Sequence[bytes]) -> RawColumns:
        """Return the fields of records by name.

        Raises if one of them cannot be decoded; a BadRecordError if it is the only one.
        """


class _JsonRecords:
    """Decodes JSON without a schema."""

    def __init__(self, reads: frozenset[str]) -> None:
        self._json = JsonColumns(reads, "a record")

    def prepare(self, raws: Iterable[bytes]) -> None:
        """Do nothing."""

    def columns(self, raws: Sequence[bytes]) -> RawColumns:
        """Return the fields of records by name."""
        return checked(raws[0], self._json.one) if len(raws) == 1 else self._json.many(raws)


class _JsonSchemaRecords(_JsonRecords):
    """Decodes JSON that begins with the id of its schema, which the registry must know."""

    def __init__(self, reads: frozenset[str], cache: SchemaCache[bool]) -> None:
        super().__init__(reads)
        self._cache = cache

    def prepare(self, raws: Iterable[bytes]) -> None:
        """Look up the schemas that are not known yet."""
        _look_up(self._cache, raws)

    def columns(self, raws: Sequence[bytes]) -> RawColumns:
        """Return the fields of records by name."""
        for head in {raw[:HEAD] for raw in raws}:
            self._cache.get(schema_id(head))
        return super().columns([raw[HEAD:] for raw in raws])


class _SchemaRecords:
    """Decodes records that begin with the id of their schema, which is in a registry."""

    def __init__(self, reads: frozenset[str], cache: SchemaCache[Decoder]) -> None:
        self._reads, self._cache = reads, cache

    def prepare(self, raws: Iterable[bytes]) -> None:
        """Look up the schemas that are not known yet."""
        _look_up(self._cache, raws)

    def columns(self, raws: Sequence[bytes]) -> RawColumns:
        """Return the fields of records by name."""
        decoders = {head: self._cache.get(schema_id(head)) for head in {raw[:HEAD] for raw in raws}}
        return columns_of([decoders[raw[:HEAD]](raw) for raw in raws], self._reads)


def _look_up(cache: SchemaCache[Any], raws: Iterable[bytes]) -> None:
    for head in {raw[:HEAD] for raw in raws}:
        with suppress(BadRecordError):  # raised again for each of its records
            cache.get(schema_id(head))


def record_reader(
    name: TopicFormat, reads: frozenset[str], registry: SchemaRegistry | None, *, stop: bool
) -> RecordReader:
    """Return the reader of top-level fields in a format; all but "json" need a registry.

    If the registry does not answer, records are bad; with `stop`, the reader raises a BrokerError.
    """
    if name == "json" or registry is None:
        return _JsonRecords(reads)
    compiled = _compilers(name, registry, reads)

    def of_type(schema: RegisteredSchema) -> Any:  # noqa: ANN401 - a decoder, or True
        if schema.schema_type != SCHEMA_TYPES[name]:
            msg = f'is of the type {schema.schema_type}, and input.format is "{name}"'
            raise UnusableSchemaError(msg)
        return compiled(schema)

    cache = SchemaCache[Any](registry, of_type, stop=stop)
    if name == "json-schema":
        return _JsonSchemaRecords(reads, cache)
    return _SchemaRecords(reads, cache)


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
