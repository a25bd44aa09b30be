"""Deserializer of the records of a batch to events.

If a label carries only its id, the router adds a header before the origin: the model of the
observation, or why it found no model. A label without a model is a dead letter of the task that
reads it.

Records are decoded to raw columns together; a bad cell refuses only its record. If that fails, for
example because a text cannot be decoded, each half is decoded, down to the bad record. So a bad
record costs a little time, and the result of the others does not depend on it. That also finds a
record on which abers itself fails (see `batches.PoisonSearch`), because decoding changes no state.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np

from abers.stream import Events
from abers.stream.cells import BadRecordError, Cells, is_of_record, missing, objects
from abers.stream.columns import Reading, Schema
from abers.stream.option import Option, Ref
from abers.stream.schema_columns import UNLABELLED
from abers_connectors.config.sections import OF_OBSERVATION
from abers_connectors.mapping import not_utf8, too_large
from abers_connectors.runtime.application import TOMBSTONE, RoutedRecord
from abers_connectors.runtime.batches import INTERNAL_ERROR, NO_FAULT_OF_A_RECORD, rejection
from abers_connectors.runtime.transport import BadHeaders
from abers_connectors.schemas.record_reader import record_reader
from abers_connectors.schemas.registry import HEAD, SchemaRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.stream.cells import RawColumns
    from abers_connectors.config.model import Config
    from abers_connectors.runtime.transport import Headers, Record
    from abers_connectors.schemas.record_reader import RecordReader

__all__ = [
    "AMBIGUOUS_ID",
    "MODEL",
    "REFUSED",
    "UNKNOWN_ID",
    "DecodedBatch",
    "Deserializer",
    "RecordColumns",
    "SchemaLookUp",
    "input_columns",
    "model_of",
    "refusal_of",
]

MODEL = "abers.model"
"""The header with the model of a label, in UTF-8."""
REFUSED = "abers.refused"
"""The header with the reason why a label has no model."""

_TIMEOUT = Ref(Option("limits.label_timeout", name="label_timeout"))
_MODEL = Ref(Option("input.label_fields.model", name="label_fields.model"))

UNKNOWN_ID = BadRecordError(
    "unknown-id",
    "no observation with this id came within ",
    _TIMEOUT,
    "; write the label with the id and the key of its observation, or with its model",
)
AMBIGUOUS_ID = BadRecordError(
    "ambiguous-id",
    "observations with this id came in several models; write the model into the label and name "
    "its field as ",
    _MODEL,
    ", or give each observation an id of its own",
)
_REFUSALS = {one.reason.encode(): one for one in (UNKNOWN_ID, AMBIGUOUS_ID)}


def model_of(headers: Headers) -> str | None:
    """Return the model that the router found for a label.

    Parameters
    ----------
    headers
        Headers of the record, without its origin.

    Returns
    -------
    str or None
        The model; None if the last header is another.

    Examples
    --------
    >>> model_of([("trace", b"7"), ("abers.model", b"fraud")])
    'fraud'
    """
    value = _last(headers, MODEL)
    return None if value is None else value.decode("utf-8", "surrogatepass")


def refusal_of(headers: Headers) -> BadRecordError | None:
    """Return why the router found no model for a label; None if the last header is another.

    The headers are those of `model_of`.

    Examples
    --------
    >>> refusal_of([("abers.refused", b"ambiguous-id")]).reason
    'ambiguous-id'
    """
    return _REFUSALS.get(_last(headers, REFUSED) or b"")


def _last(headers: Headers, wanted: str) -> bytes | None:
    """Return the value of the last header if it has this name."""
    name, value = headers[-1] if headers else ("", None)
    return value if name == wanted else None


_KEY, _TIMESTAMP, _HEADER = "record:key", "record:timestamp", "record:header:"


def input_columns(
    config: Config, reads: Iterable[frozenset[str]], environ: Mapping[str, str] = os.environ
) -> list[RecordColumns]:
    """Return the readers of the columns of observations and of labels.

    Parameters
    ----------
    config
        The configuration, with the formats of both inputs.
    reads
        The paths to read, for observations and for labels.
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


class SchemaLookUp:
    """Finds the schemas of the records of both inputs before they are read."""

    _look_ups: Mapping[int, Callable[[Iterable[bytes]], None]]
    """`RecordColumns.prepare` of inputs, by the number of the input."""

    def prepare(
        self,
        records: Sequence[Record],
        inputs: Sequence[int],
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Look up the schemas of records, so that reading them waits for no registry.

        `tick` is called after each schema: many together may take long. Raises a BrokerError if the
        registry does not answer and `schema_registry.on_unavailable` is "stop".
        """
        for number, prepare in self._look_ups.items():
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


_AT_ONCE = 1 << 19  # bytes of records that are decoded together: a byte may take 400 of memory

_SKIPPED = -1  # instead of the number of an input

_DeadRow: TypeAlias = tuple[int, str, str]  # row, reason, and a sentence
_NO_KEY = BadRecordError(
    "null-key",
    "the record has no key, which brings a label to the partition of its observation; write "
    "observations and labels with the same key, such as the model",
)
_NOT_ROUTED = BadRecordError(
    "not-routed",
    "the record has no header abers.origin, so no router of this application wrote it; write it to "
    "the topic of observations or labels instead",
)
_UNREAD = BadRecordError(
    "model-unread",
    "the router could not read its model, so it came to the wrong task; write the record again",
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
        return cls(Events.of([]), [], [(0, INTERNAL_ERROR, why)], [])

    def causes(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the record of each event."""
        every = len(self.rows) == len(records)
        return records if every else [records[row] for row in self.rows]

    def no_events(self) -> list[tuple[int, str]]:
        """Return row and reason of the records that are no events; see `TOMBSTONE`."""
        dead = [(row, reason) for row, reason, _ in self.dead]
        return sorted([*dead, *((row, TOMBSTONE) for row in self.tombstones)])


class Deserializer(SchemaLookUp):
    """Decodes observations and labels, as the configuration maps their fields.

    If the inputs have several `partitions`, a record needs a key, which brings a label to the
    partition of its observation, unless a router does that (`kafka.route_by`). With `routed` the
    records are those that a router wrote, and all others are dead letters. `now` is the wall clock
    in milliseconds, for a service with records that have just arrived: a producer with a wrong
    clock gives the record the same wrong time as the event. The changelog keeps what was rejected
    because of it. The password of the schema registry is in the environment.
    """

    def __init__(
        self,
        config: Config,
        *,
        partitions: int,
        now: Callable[[], int] | None = None,
        routed: bool = False,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        schemas = input_schemas(config)
        columns = input_columns(config, [one.reads for one in schemas], environ)
        first, second = map(_InputReader, schemas, columns)
        self._inputs = first, second
        self._look_ups = {0: first.prepare, 1: second.prepare}
        self._limit = config.input.max_record_bytes
        by_model = config.kafka is not None and config.kafka.route_by is not None
        self._keyed, self._now = partitions > 1 and not by_model, now
        self._routed = routed

    def decode(self, records: Sequence[Record], inputs: Sequence[int]) -> DecodedBatch:
        """Decode records in the order of processing; inputs are 0 (observations) or 1 (labels)."""
        values = [one.value for one in records]
        size = _size(values)
        tombstones = []
        if size is None:
            tombstones = [row for row, one in enumerate(values) if one is None]
            size = sum(map(len, filter(None, values)))
        refused = self._refused(records, values, size)
        dead = [_row_of_error(row, error) for row, error in refused.items()]
        which = [*inputs]
        for row in (*refused, *tombstones):
            which[row] = _SKIPPED
        parts: list[tuple[NDArray[np.int64], Events]] = []
        for number, one in enumerate(self._inputs):
            if count := which.count(number):
                whole = _Records(np.arange(len(which)), records, values, size)
                some = whole if count == len(which) else whole.of(number, which)
                parts.extend(one.read(some, dead))
        events, order = _in_order(parts)
        if self._routed and (unread := _unread(records, order)):
            dead += [_row_of_error(order[at], _UNREAD) for at in unread]
            events = events.take(np.delete(np.arange(len(order)), unread))
            order = [row for at, row in enumerate(order) if at not in unread]
        decoded = DecodedBatch(events, order, sorted(dead), tombstones)
        given = [one.timestamp for one in decoded.causes(records)]
        stamps = np.fromiter(given, np.int64, len(given))
        if self._now is not None:
            arrived = self._now()
            stamps = np.where(stamps < 0, arrived, np.minimum(stamps, arrived))
        return decoded._replace(events=_recorded(events, stamps))

    def _refused(
        self, records: Sequence[Record], values: Sequence[bytes | None], size: int
    ) -> dict[int, BadRecordError]:
        """Return the records that are refused before they are decoded, by their rows."""
        found: dict[int, BadRecordError] = {}
        if self._keyed:
            found = {row: _NO_KEY for row, one in enumerate(records) if one.key is None}
        if self._routed:
            found |= {row: _NOT_ROUTED for row, one in enumerate(records) if not _is_routed(one)}
            cut = ((row, one) for row, one in enumerate(records) if isinstance(one, RoutedRecord))
            found |= {row: _unroutable(one.whole) for row, one in cut if one.whole}
            found |= _without_model(records)
        if BadHeaders in {type(one.headers) for one in records}:
            bad = (row for row, one in enumerate(records) if type(one.headers) is BadHeaders)
            found |= dict.fromkeys(bad, _BAD_HEADERS)
        if size > self._limit:
            sizes = [len(one or b"") for one in values]
            large = (row for row, size in enumerate(sizes) if size > self._limit)
            found |= {row: too_large(sizes[row], self._limit) for row in large}
        return {row: error for row, error in found.items() if values[row] is not None}


def input_schemas(config: Config) -> tuple[Schema, Schema]:
    """Return the schemas of observations and of labels."""
    reads = config.reads()
    first = Schema(config.fields(), reads, config.first_kind)
    return first, Schema(config.label_fields(), reads, "labels")


def _without_model(records: Sequence[Record]) -> dict[int, BadRecordError]:
    """Return why routers found no models for some labels, by their rows."""
    looked_up = (
        (row, refusal_of(one.found))
        for row, one in enumerate(records)
        if isinstance(one, RoutedRecord) and one.found
    )
    return {row: why for row, why in looked_up if why is not None}


def _unroutable(size: int) -> BadRecordError:
    detail = (
        f"about {size} bytes with its key and headers, which the routed topic does not take, "
        "so only its beginning is here; raise max.message.bytes of that topic, and write it again"
    )
    return BadRecordError("too-large", detail)


def _is_routed(record: Record) -> bool:
    return isinstance(record, RoutedRecord)


class _Records(NamedTuple):
    """Some records of a batch, with their rows."""

    rows: NDArray[np.int64]
    records: Sequence[Record]
    values: Sequence[Any]
    size: int  # of the values, at most

    def of(self, number: int, inputs: Sequence[int]) -> _Records:
        """Return the records of an input."""
        kept = [one == number for one in inputs]
        records, values = compress(self.records, kept), compress(self.values, kept)
        return _Records(self.rows[kept], [*records], [*values], self.size)

    def parts(self) -> Iterator[_Records]:
        """Yield the records in as few parts as possible that can each be decoded at once."""
        if self.size <= _AT_ONCE:
            yield self
            return
        ends = np.cumsum([*map(len, self.values)])
        start = before = 0
        while start < len(ends):
            end = max(start + 1, int(ends.searchsorted(before + _AT_ONCE, "right")))
            yield self._slice(start, end)
            start, before = end, int(ends[end - 1])

    def halves(self) -> tuple[_Records, _Records]:
        """Return the first and the second half."""
        half = len(self.rows) // 2
        return self._slice(0, half), self._slice(half, len(self.rows))

    def _slice(self, start: int, end: int) -> _Records:
        rows, records, values, size = self
        return _Records(rows[start:end], records[start:end], values[start:end], size)


class _InputReader:
    """Decodes the records of one input."""

    def __init__(self, schema: Schema, reader: RecordColumns) -> None:
        self._schema, self._reader = schema, reader
        self.prepare = reader.prepare

    def read(
        self, some: _Records, dead: list[_DeadRow]
    ) -> Iterator[tuple[NDArray[np.int64], Events]]:
        """Yield the events of some records with their rows; append bad records to `dead`."""
        for part in some.parts():
            yield from self._part(part, dead)

    def _part(
        self, some: _Records, dead: list[_DeadRow]
    ) -> Iterator[tuple[NDArray[np.int64], Events]]:
        rows = some.rows
        try:
            found = self._surely(some) if len(rows) == 1 else self._all(some)
        except BadRecordError as error:
            dead.append(_row_of_error(int(rows[0]), error))
            return
        if found is None:
            for half in some.halves():
                yield from self._part(half, dead)
            return
        dead.extend(
            (int(rows[row]), *self._why(reason, detail)) for row, reason, detail in found.refused
        )
        if len(found.rows):
            yield rows[found.rows], found.events

    def _why(self, reason: str, detail: str) -> tuple[str, str]:
        """Return why a record is bad: unlike a row of a table, a label must have a value."""
        if reason != UNLABELLED:
            return reason, detail
        error = missing(self._schema.fields.label)
        return error.reason, error.said("toml")

    def _all(self, some: _Records) -> Reading | None:
        """Read records; None if that fails."""
        try:
            return self._reading(some)
        except NO_FAULT_OF_A_RECORD:
            raise
        except Exception:  # noqa: BLE001 - reported for the single record that causes it
            return None

    def _reading(self, some: _Records) -> Reading:
        numbers: Sequence[int] = range(len(some.rows))
        if self._schema.numbered:
            numbers = [one.offset for one in some.records]
        return self._schema.read(self._reader.columns(some.records, some.values), numbers)

    def _surely(self, some: _Records, *, again: bool = False) -> Reading:
        """Read one record; raise a BadRecordError if abers fails on it twice."""
        try:
            return self._reading(some)
        except (*NO_FAULT_OF_A_RECORD, BadRecordError):
            raise
        except Exception as error:
            if not again:
                return self._surely(some, again=True)
            raise BadRecordError(INTERNAL_ERROR, rejection(some.records[0], error)) from error


def _size(values: Sequence[Any]) -> int | None:
    """Return the bytes of all values; None if one is missing."""
    try:
        return sum(map(len, values))
    except TypeError:
        return None


def _in_order(parts: Sequence[tuple[NDArray[np.int64], Events]]) -> tuple[Events, Sequence[int]]:
    """Concatenate events in the order of their rows."""
    if not parts:
        return Events.of([]), []
    if len(parts) == 1:
        return parts[0][1], parts[0][0].tolist()
    rows = np.concatenate([part for part, _ in parts])
    order = np.argsort(rows)
    events = Events.joined([events for _, events in parts])
    return events.take(order), rows[order].tolist()


def _recorded(events: Events, stamps: NDArray[np.int64]) -> Events:
    """Set the times at which the records were written."""
    known = stamps >= 0
    if known.all():
        return replace(events, recorded=stamps) if len(stamps) else events
    if not known.any():
        return events
    return replace(events, recorded=np.where(known, stamps.astype(object), None))


def _unread(records: Sequence[Record], rows: Sequence[int]) -> list[int]:
    """Return the places of rows that a task can read and the router could not."""
    return [
        at
        for at, row in enumerate(rows)
        if isinstance(one := records[row], RoutedRecord) and one.unread
    ]


def _row_of_error(row: int, error: BadRecordError) -> _DeadRow:
    return row, error.reason, error.said("toml")
