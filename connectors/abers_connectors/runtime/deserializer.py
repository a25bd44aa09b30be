"""Deserializer of the records of a batch to events.

Records are decoded to raw columns together; a bad cell refuses its record alone. If that
fails, as a text cannot be decoded, each half is decoded, down to the bad record. So a
bad record costs a little time, and the result of the others does not depend on it. That also finds
a record on which abers itself fails (see `poison`): decoding changes no state.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np

from abers.stream import Events
from abers.stream.cells import BadRecordError
from abers.stream.fields import missing
from abers.stream.schema import Reading, Schema
from abers.stream.schema_columns import UNLABELLED
from abers_connectors.mapping.bad_record import too_large
from abers_connectors.runtime.checkpoint import TOMBSTONE
from abers_connectors.runtime.label_headers import refusal_of
from abers_connectors.runtime.poison import INTERNAL_ERROR, NO_FAULT_OF_A_RECORD, rejection
from abers_connectors.runtime.record_columns import RecordColumns, input_columns, look_up_schemas
from abers_connectors.runtime.routed_record import RoutedRecord
from abers_connectors.runtime.transport import BadHeaders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers_connectors.config.model import Config
    from abers_connectors.runtime.transport import Record

__all__ = ["DecodedBatch", "Deserializer"]

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


class Deserializer:
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
        self._limit = config.input.max_record_bytes
        by_model = config.kafka is not None and config.kafka.route_by is not None
        self._keyed, self._now = partitions > 1 and not by_model, now
        self._routed = routed

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
        looks_up = {number: one.prepare for number, one in enumerate(self._inputs)}
        look_up_schemas(looks_up, records, inputs, tick)

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
    return Schema(config.fields(), reads), Schema(config.label_fields(), reads, "labels")


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
        f"about {size} bytes with its key and headers, which the topic of routers does not take, "
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
        """Yield the records in as few parts as can each be decoded at once."""
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
        """Return why a record is bad; a label is sent when it is known, unlike in a table."""
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
        except Exception:  # noqa: BLE001 - what it means is known once it is of a single record
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
