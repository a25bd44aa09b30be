"""Raw columns of the records of a topic: the fields of their values, and their metadata."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from abers.stream.cells import Cells
from abers.stream.column_types import objects
from abers.stream.fields import is_of_record
from abers_connectors.config.sections import OF_OBSERVATION
from abers_connectors.mapping.bad_record import not_utf8
from abers_connectors.runtime.label_headers import model_of
from abers_connectors.runtime.routed_record import RoutedRecord
from abers_connectors.schemas.record_reader import record_reader
from abers_connectors.schemas.registry_client import SchemaRegistry
from abers_connectors.schemas.wire_format import HEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abers.stream.cells import RawColumns
    from abers_connectors.config.model import Config
    from abers_connectors.runtime.transport import Record
    from abers_connectors.schemas.record_reader import RecordReader

__all__ = ["RecordColumns", "input_columns", "look_up_schemas"]

_KEY, _TIMESTAMP, _HEADER = "record:key", "record:timestamp", "record:header:"


def input_columns(
    config: Config, reads: Iterable[frozenset[str]], environ: Mapping[str, str] = os.environ
) -> list[RecordColumns]:
    """Return what reads the columns of observations and of labels.

    Parameters
    ----------
    config
        The configuration, with the formats of both.
    reads
        The paths that are read of each.
    environ
        The environment, with the password of the schema registry.
    """
    section = config.schema_registry
    registry = None if section is None else SchemaRegistry(section, environ)
    stop = section is not None and section.on_unavailable == "stop"
    return [
        RecordColumns(paths, record_reader(name, _of_value(paths), registry, stop=stop))
        for paths, name in zip(reads, config.topic_formats, strict=True)
    ]


class RecordColumns:
    """Reads columns of records: those of their values by a reader, and their metadata."""

    def __init__(self, paths: frozenset[str], reader: RecordReader) -> None:
        self._reader = reader
        self._parts = {path: _part(path) for path in sorted(paths) if is_of_record(path)}
        self.of_values = bool(_of_value(paths))
        """Whether a path is in the values."""
        self.prepare = reader.prepare

    def columns(self, records: Sequence[Record], values: Sequence[bytes]) -> RawColumns:
        """Return the columns of records with these values; raise if one cannot be decoded."""
        metadata = self.metadata(records)
        return {**self._reader.columns(values), **metadata}

    def metadata(self, records: Sequence[Record]) -> RawColumns:
        """Return the columns of their metadata alone."""
        return {path: Cells(objects([*map(part, records)])) for path, part in self._parts.items()}


def look_up_schemas(
    looks_up: Mapping[int, Callable[[Iterable[bytes]], None]],
    records: Sequence[Record],
    inputs: Sequence[int],
    tick: Callable[[], None],
) -> None:
    """Look up the schemas of records by `RecordColumns.prepare` of each input, by its number.

    `tick` is called after each: many together may take long. Raises a BrokerError if the registry
    is away and the configuration says stop.
    """
    for number, prepare in looks_up.items():
        heads = {
            record.value[:HEAD]: record.value
            for record, which in zip(records, inputs, strict=True)
            if which == number and record.value is not None
        }
        for raw in heads.values():
            prepare([raw])
            tick()


def _of_value(paths: frozenset[str]) -> frozenset[str]:
    """Return the fields of the value of a record, without those of its metadata."""
    return frozenset(path for path in paths if not is_of_record(path))


def _part(path: str) -> Callable[[Record], Any]:
    """Return a function that reads a part of a record other than its value."""
    if path == _TIMESTAMP:
        return lambda record: record.timestamp if record.timestamp >= 0 else None
    if path == _KEY:
        return lambda record: _text(record.key, "key")
    if path == OF_OBSERVATION:
        return lambda record: model_of(record.found) if isinstance(record, RoutedRecord) else None
    name = path.removeprefix(_HEADER)

    def header(record: Record) -> str | None:
        found = None
        for key, value in record.headers:  # the last counts, as in Kafka's own clients
            if key == name:
                found = value
        return _text(found, f"header {name}")

    return header


def _text(raw: bytes | None, what: str) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(error, f" of the {what}") from None
