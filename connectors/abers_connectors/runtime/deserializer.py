"""Deserializer of the records of a batch to events.

All records are decoded at once. If that fails, each half is decoded, down to the one record that is
bad. So a bad record costs a little time, and the result of the others does not depend on it. That
also finds a record on which abers itself fails (see `poison`): decoding changes no state.
"""

from __future__ import annotations

import os
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np

from abers.stream import Events
from abers.stream.columns import column, objects
from abers_connectors.mapping import mapper
from abers_connectors.mapping.bad_record import BadRecordError, not_utf8, too_large
from abers_connectors.mapping.fields import is_of_record
from abers_connectors.mapping.rows import events_of
from abers_connectors.runtime.checkpoint import TOMBSTONE
from abers_connectors.runtime.poison import INTERNAL_ERROR, NO_FAULT_OF_A_RECORD, rejection
from abers_connectors.runtime.transport import BadHeaders
from abers_connectors.schemas.record_reader import record_reader
from abers_connectors.schemas.registry_client import SchemaRegistry
from abers_connectors.schemas.wire_format import HEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers_connectors.config.model import Config
    from abers_connectors.mapping.mapper import Mapper
    from abers_connectors.runtime.transport import Record
    from abers_connectors.schemas.record_reader import RecordReader

__all__ = ["DecodedBatch", "Deserializer"]

_KEY, _TIMESTAMP, _HEADER = "record:key", "record:timestamp", "record:header:"

_AT_ONCE = 1 << 19  # bytes of records that are decoded together: a byte may take 400 of memory

_DeadRow: TypeAlias = tuple[int, str, str]  # row, reason, and a sentence
_NO_KEY = BadRecordError(
    "null-key",
    "the record has no key, which brings a label to the partition of its observation; write "
    "observations and labels with the same key, such as the model",
)
_BAD_HEADERS = BadRecordError(
    "not-utf8",
    "the name of a header is not UTF-8, so all headers are left out here; write it as UTF-8",
)


class DecodedBatch(NamedTuple):
    """Decoded records.

    The events have the order of the records. Their `recorded` is the timestamp of the record, or
    the time of its arrival if that is known and earlier.
    """

    events: Events
    rows: Sequence[int]  # row of the record of each event
    dead: Sequence[_DeadRow]  # records that are no events
    tombstones: Sequence[int]  # rows of the records without a value, which are skipped

    @classmethod
    def rejected(cls, why: str) -> Self:
        """Return a batch of one record, on which abers fails."""
        return cls(events_of([]), [], [(0, INTERNAL_ERROR, why)], [])

    def no_events(self) -> list[tuple[int, str]]:
        """Return row and reason of the records that are no events; see `TOMBSTONE`."""
        dead = [(row, reason) for row, reason, _ in self.dead]
        return sorted([*dead, *((row, TOMBSTONE) for row in self.tombstones)])


class Deserializer:
    """Decodes observations and labels, as the configuration maps their fields.

    If the inputs have several `partitions`, a record needs a key, which brings a label to the
    partition of its observation. `now` is the wall clock in milliseconds, for a service whose
    records have just arrived: a producer with a wrong clock gives the record the same wrong time as
    the event. The changelog keeps what was rejected because of it. The password of the schema
    registry is in the environment.
    """

    def __init__(
        self,
        config: Config,
        *,
        partitions: int,
        now: Callable[[], int] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        reads, section = config.reads(), config.schema_registry
        registry = None if section is None else SchemaRegistry(section, environ)
        stop = section is not None and section.on_unavailable == "stop"
        mappers = (
            mapper.mixed(config.fields(), reads),
            mapper.labels(config.label_fields(), reads),
        )
        first, second = (
            _InputReader(one, record_reader(name, one, registry, stop=stop))
            for one, name in zip(mappers, config.topic_formats, strict=True)
        )
        self._inputs = first, second
        self._limit = config.input.max_record_bytes
        self._keyed, self._now = partitions > 1, now

    def prepare(
        self,
        records: Sequence[Record],
        inputs: Sequence[int],
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Look up the schemas of records, so that `decode` waits for no registry.

        `tick` is called after each: many together may take long. Raises a BrokerError if the
        registry is away and the configuration says stop.
        """
        for number, one in enumerate(self._inputs):
            heads = {
                record.value[:HEAD]: record.value
                for record, which in zip(records, inputs, strict=True)
                if which == number and record.value is not None
            }
            for raw in heads.values():
                one.prepare([raw])
                tick()

    def decode(self, records: Sequence[Record], inputs: Sequence[int]) -> DecodedBatch:
        """Decode records in the order of processing; inputs are 0 (observations) or 1 (labels)."""
        rows: tuple[list[int], list[int]] = ([], [])
        dead: list[_DeadRow] = []
        tombstones: list[int] = []
        limit, keyed = self._limit, self._keyed
        for row, (record, number) in enumerate(zip(records, inputs, strict=True)):
            value = record.value
            if value is None:
                tombstones.append(row)
            elif len(value) > limit:
                dead.append(_row_of_error(row, too_large(len(value), limit)))
            elif type(record.headers) is BadHeaders:
                dead.append(_row_of_error(row, _BAD_HEADERS))
            elif keyed and record.key is None:
                dead.append(_row_of_error(row, _NO_KEY))
            else:
                rows[number].append(row)
        parts: list[tuple[list[int], Events]] = []
        for part, one in zip(rows, self._inputs, strict=True):
            parts.extend(one.read(records, part, dead))
        events, order = _in_order(parts)
        stamps = [records[row].timestamp for row in order]
        if self._now is not None:
            arrived = self._now()
            stamps = [arrived if stamp < 0 else min(stamp, arrived) for stamp in stamps]
        return DecodedBatch(_recorded(events, stamps), order, sorted(dead), tombstones)


class _InputReader:
    """Decodes the records of one input."""

    def __init__(self, mapper: Mapper, reader: RecordReader) -> None:
        self._mapper, self._reader = mapper, reader
        self.prepare = reader.prepare
        self._parts = {path: _part(path) for path in sorted(mapper.reads) if is_of_record(path)}

    def read(
        self, records: Sequence[Record], rows: list[int], dead: list[_DeadRow]
    ) -> Iterator[tuple[list[int], Events]]:
        """Yield the events of some rows with their rows; append bad records to `dead`."""
        if not rows:
            return
        if len(rows) == 1:
            try:
                yield rows, self._one_surely(records[rows[0]])
            except BadRecordError as error:
                dead.append(_row_of_error(rows[0], error))
            return
        events = self._all([records[row] for row in rows])
        if events is not None:
            yield rows, events
            return
        half = len(rows) // 2
        yield from self.read(records, rows[:half], dead)
        yield from self.read(records, rows[half:], dead)

    def _all(self, records: list[Record]) -> Events | None:
        """Decode records; None if they are too large for one decoding, or it fails."""
        if sum(len(record.value or b"") for record in records) > _AT_ONCE:
            return None
        try:
            return self._decoded(records)
        except NO_FAULT_OF_A_RECORD:
            raise
        except Exception:  # noqa: BLE001 - what it means is known once it is of a single record
            return None

    def _decoded(self, records: list[Record]) -> Events:
        parts = {path: [*map(part, records)] for path, part in self._parts.items()}
        raws: list[Any] = [record.value for record in records]
        return self._reader.read(raws, self._mapper, map(attrgetter("offset"), records), parts)

    def _one_surely(self, record: Record, *, again: bool = False) -> Events:
        """Decode a record; raise a BadRecordError if abers fails on it twice."""
        try:
            return self._one(record)
        except (*NO_FAULT_OF_A_RECORD, BadRecordError):
            raise
        except Exception as error:
            if not again:
                return self._one_surely(record, again=True)
            raise BadRecordError(INTERNAL_ERROR, rejection(record, error)) from error

    def _one(self, record: Record) -> Events:
        parts = {path: [part(record)] for path, part in self._parts.items()}
        raw = record.value or b""
        return events_of([self._reader.read_one(raw, self._mapper, record.offset, parts)])


def _part(path: str) -> Callable[[Record], Any]:
    """Return a function that reads a part of a record other than its value."""
    if path == _TIMESTAMP:
        return lambda record: record.timestamp if record.timestamp >= 0 else None
    if path == _KEY:
        return lambda record: _text(record.key, "key")
    name = path.removeprefix(_HEADER)

    def header(record: Record) -> str | None:
        found = None
        for key, value in record.headers:  # the last one counts, as in Kafka's own clients
            if key == name:
                found = value
        return _text(found, f"header {name}")

    return header


def _text(raw: bytes | None, what: str) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(error, f" of the {what}") from None


def _in_order(parts: Sequence[tuple[list[int], Events]]) -> tuple[Events, Sequence[int]]:
    """Concatenate events in the order of their rows."""
    if not parts:
        return events_of([]), []
    if len(parts) == 1:
        return parts[0][1], parts[0][0]
    rows = np.concatenate([part for part, _ in parts])
    order = np.argsort(rows)
    events = Events.joined([events for _, events in parts])
    return events.take(order), rows[order].tolist()


def _recorded(events: Events, stamps: Sequence[int]) -> Events:
    """Set the times at which the records were written."""
    if stamps and min(stamps) >= 0:
        return replace(events, recorded=column(stamps))
    if not stamps or max(stamps) < 0:
        return events
    return replace(events, recorded=objects([one if one >= 0 else None for one in stamps]))


def _row_of_error(row: int, error: BadRecordError) -> _DeadRow:
    return row, error.reason, error.detail
