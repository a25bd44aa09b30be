"""From the records of a batch to events.

Governing rule: records are decoded all at once, and where that fails by halves,
down to the one that cannot be used; so a bad record costs itself and a little
time, and what comes of the others does not depend on it.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from abers.stream import Events
from abers.stream.columns import column, objects
from abers_connectors import fields
from abers_connectors._json import UNREADABLE, Json
from abers_connectors._paths import is_of_record
from abers_connectors._raw import checked, not_utf8, too_large
from abers_connectors.records import BadRecordError, gathered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers_connectors.config import Config
    from abers_connectors.fields import Mapper
    from abers_connectors.kafka.transport import Record

__all__ = ["Decoded", "Decoder"]

_KEY, _TIMESTAMP, _HEADER = "record:key", "record:timestamp", "record:header:"

_Dead: TypeAlias = "tuple[int, str, str]"


class Decoded(NamedTuple):
    """What some records are.

    Parameters
    ----------
    events
        In the order of the records; `recorded` is the timestamp of the record, where it has one, or
        the time of its arrival, where that is known and earlier.
    rows
        Index of the record of each event.
    dead
        Records that are no events: index, reason, and a sentence.
    tombstones
        Indices of the records without a value, which mean nothing.
    """

    events: Events
    rows: Sequence[int]
    dead: Sequence[tuple[int, str, str]]
    tombstones: Sequence[int]


class Decoder:
    """Reads observations and labels.

    Parameters
    ----------
    config
        Which field is what, and how large a record may be.
    partitions
        How many the inputs have: with more than one a record needs a key, since otherwise
        nothing brings a label to its observation.
    now
        The wall clock in milliseconds, of a service whose records have just arrived: a producer
        whose clock is wrong gives the same wrong time to a record as to its event. What is refused
        by it stands in the changelog.
    """

    def __init__(
        self, config: Config, *, partitions: int, now: Callable[[], int] | None = None
    ) -> None:
        reads = config.reads()
        self._inputs = (
            _Input(fields.mixed(config.fields(), reads)),
            _Input(fields.labels(config.label_fields(), reads)),
        )
        self._limit = config.input.max_record_bytes
        self._keyed, self._now = partitions > 1, now

    def decode(self, records: Sequence[Record], inputs: Sequence[int]) -> Decoded:
        """Decode some records.

        Parameters
        ----------
        records
            Of both inputs, in the order in which they are to be processed.
        inputs
            Where each comes from: 0 from the observations, 1 from the labels.

        Returns
        -------
        Decoded
            The events, and why the others are none.
        """
        rows: tuple[list[int], list[int]] = ([], [])
        dead: list[_Dead] = []
        tombstones: list[int] = []
        limit, keyed = self._limit, self._keyed
        for row, (record, number) in enumerate(zip(records, inputs, strict=True)):
            value = record.value
            if value is None:
                tombstones.append(row)
            elif len(value) > limit:
                dead.append(_buried(row, too_large(len(value), limit)))
            elif keyed and record.key is None:
                dead.append(_buried(row, _without_key()))
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
        return Decoded(_recorded(events, stamps), order, sorted(dead), tombstones)


class _Input:
    """Reads the records of one input."""

    def __init__(self, mapper: Mapper) -> None:
        self._mapper = mapper
        self._json = Json(mapper.typed, "a record")
        self._parts = {path: _part(path) for path in sorted(mapper.reads) if is_of_record(path)}

    def read(
        self, records: Sequence[Record], rows: list[int], dead: list[_Dead]
    ) -> Iterator[tuple[list[int], Events]]:
        """Read the records at some rows, and give events with their rows; fill in the dead."""
        if not rows:
            return
        if len(rows) == 1:
            try:
                yield rows, self._one(records[rows[0]])
            except BadRecordError as error:
                dead.append(_buried(rows[0], error))
            return
        try:
            events = self._all([records[row] for row in rows])
        except (*UNREADABLE, BadRecordError):
            half = len(rows) // 2
            yield from self.read(records, rows[:half], dead)
            yield from self.read(records, rows[half:], dead)
        else:
            yield rows, events

    def _all(self, records: list[Record]) -> Events:
        told = {path: [*map(part, records)] for path, part in self._parts.items()}
        raws: list[Any] = [record.value for record in records]
        return self._json.read(raws, self._mapper, map(attrgetter("offset"), records), told)

    def _one(self, record: Record) -> Events:
        told = {path: [part(record)] for path, part in self._parts.items()}
        return gathered(
            [
                checked(
                    record.value or b"",
                    lambda raw: self._json.read_one(raw, self._mapper, record.offset, told),
                )
            ]
        )


def _part(path: str) -> Callable[[Record], Any]:
    """Compile what reads a part of a record beside its value; None where it has none."""
    if path == _TIMESTAMP:
        return lambda record: record.timestamp if record.timestamp >= 0 else None
    if path == _KEY:
        return lambda record: _text(record.key, "key")
    name = path.removeprefix(_HEADER)

    def header(record: Record) -> str | None:
        found = None
        for key, value in record.headers:  # the last one counts, as elsewhere in Kafka
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
    """Join events, and bring them into the order of their rows."""
    if not parts:
        return gathered([]), []
    if len(parts) == 1:
        return parts[0][1], parts[0][0]
    rows = np.concatenate([part for part, _ in parts])
    order = np.argsort(rows)
    events = Events.joined([events for _, events in parts])
    return events.take(order), rows[order].tolist()


def _recorded(events: Events, stamps: Sequence[int]) -> Events:
    """Set when the records of events were written."""
    if stamps and min(stamps) >= 0:
        return replace(events, recorded=column(stamps))
    if not stamps or max(stamps) < 0:
        return events
    return replace(events, recorded=objects([one if one >= 0 else None for one in stamps]))


def _without_key() -> BadRecordError:
    detail = (
        "the record has no key, and without one nothing brings a label to the partition of its "
        "observation; write observations and labels with the same key, such as the model"
    )
    return BadRecordError("null-key", detail)


def _buried(row: int, error: BadRecordError) -> _Dead:
    return row, error.reason, error.detail
