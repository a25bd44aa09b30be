"""Serializer of outputs to the records that are written.

An output keeps the key, the headers and the timestamp of the record that caused it, so that both
can be joined; but not the headers that describe the value of that record. An assumed label has no
record, so its outcome has only a timestamp. Every record fits its topic: one that the brokers
reject would come again after every restart.
"""

from __future__ import annotations

import base64
from collections import deque
from itertools import compress, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from abers.stream.outputs import TIMED_OUT, DeadLetterRecord
from abers_connectors.runtime.batches import INTERNAL_ERROR
from abers_connectors.schemas.outputs import as_json
from abers_connectors.sinks.alarm_record import AlarmRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.stream import DeadLetter, Outputs, Rows
    from abers_connectors.runtime.deserializer import DecodedBatch
    from abers_connectors.runtime.transport import Headers, Producer, Record, TopicPartition
    from abers_connectors.schemas.outputs import Encoder

__all__ = ["ALERTS", "DEAD_LETTERS", "OutputRecords", "Serializer"]

ALERTS, DEAD_LETTERS = "alerts", "dead_letters"
"""Names of the sinks of alarms and of dead letters."""

_SINKS = ("predictions", "outcomes", ALERTS, DEAD_LETTERS)
_PREVIEW = 1000  # bytes of a value that is too large
_BATCH_OVERHEAD, _HEADER_OVERHEAD = 128, 10  # bytes of a batch and of a header, at most
_encode = msgspec.json.Encoder().encode


class OutputRecords(NamedTuple):
    """Records to be written to the topic of a sink, by columns."""

    keys: Sequence[bytes | None] = ()
    values: Sequence[bytes] = ()
    headers: Sequence[Headers] = ()
    timestamps: Sequence[int | None] = ()  # milliseconds; None if the cause of a record has none
    reasons: Sequence[str] = ()  # of dead letters

    def send(self, producer: Producer, to: TopicPartition) -> None:
        """Send the records; `map` calls for half the price of a loop."""
        columns = self.keys, self.values, self.headers, self.timestamps
        deque(map(producer.send, repeat(to), *columns), maxlen=0)

    def without(self, numbers: Collection[int]) -> OutputRecords:
        """Return the records without some, by number."""
        kept = [number not in numbers for number in range(len(self.values))]
        return OutputRecords._make([*compress(column, kept)] for column in self)


class _DeadLetter(NamedTuple):
    """A dead letter; `raw` is the value of its cause, or the event if that label timed out."""

    row: int
    rank: int  # orders the dead letters of a row
    reason: str
    detail: str
    raw: bytes
    cause: Record
    timed_out: bool = False
    cut: bool = False  # to its first bytes


class _Made(NamedTuple):
    """Records for a sink, with the records that caused them."""

    sink: str
    records: OutputRecords
    causes: Sequence[Record]


class Serializer:
    """Serializes outputs to records of at most `max_bytes`, with their keys and headers.

    Predictions, outcomes and alarms of events before the time `publish_from` are left out.
    `encoders` encode the rows of sinks; those of all others are JSON.
    """

    def __init__(
        self,
        *,
        max_bytes: int,
        publish_from: int | None = None,
        encoders: Mapping[str, Encoder] | None = None,
    ) -> None:
        self._max_bytes, self._encoders = max_bytes - _BATCH_OVERHEAD, encoders or {}
        self._publish_from = publish_from

    def serialize(
        self, outputs: Outputs | None, decoded: DecodedBatch, records: Sequence[Record]
    ) -> dict[str, OutputRecords]:
        """Serialize the outputs of a batch, by sink; `outputs` is None if it had no events.

        The records of each sink have the order of their causes. A dead letter replaces an output
        that is too large, and comes before all other dead letters.
        """
        found = self.nothing()
        dead: list[_DeadLetter] = []
        if outputs is not None:
            causes = decoded.causes(records)
            made = [self._rows("predictions", outputs.predictions, outputs.predicted, causes)]
            if outputs.outcomes is not None:
                made.append(self._rows("outcomes", outputs.outcomes, outputs.settled, causes))
            made.append(self._alarms(outputs, causes))
            for one in made:
                large = self._too_large(one)
                dead += large.values()
                found[one.sink] = one.records.without(large) if large else one.records
        dead += self._dead(outputs, decoded, records)
        found[DEAD_LETTERS] = self._dead_records(dead)
        return found

    @staticmethod
    def nothing() -> dict[str, OutputRecords]:
        """Return no records for each sink, for a batch that is not published."""
        return dict.fromkeys(_SINKS, OutputRecords())

    def predictions(
        self, outputs: Outputs, decoded: DecodedBatch, records: Sequence[Record]
    ) -> tuple[OutputRecords, dict[int, bytes]]:
        """Serialize only the predictions; see `serialize`.

        The result has a record for each, and the dead letters of those that are too large.
        """
        causes = decoded.causes(records)
        made = self._rows("predictions", outputs.predictions, outputs.predicted, causes)
        large = self._too_large(made)
        dead = self._dead_records(large.values())
        return made.records, dict(zip(large, dead.values, strict=True))

    def dead_letters(
        self, outputs: Outputs | None, decoded: DecodedBatch, records: Sequence[Record]
    ) -> OutputRecords:
        """Serialize only the dead letters; see `serialize`."""
        return self._dead_records(self._dead(outputs, decoded, records))

    def _rows(
        self, sink: str, outputs: Rows[Any], rows: NDArray[np.int64], causes: Sequence[Record]
    ) -> _Made:
        if self._publish_from is not None:
            kept = outputs.columns["time"] >= self._publish_from
            outputs, rows = outputs.take(kept), rows[kept]
        values = self._encoders.get(sink, as_json)(outputs)
        own, assumed = _taken(causes, rows), outputs.columns.get("assumed")
        return _Made(sink, _records(values, own, assumed), own)

    def _alarms(self, outputs: Outputs, causes: Sequence[Record]) -> _Made:
        kept = [
            (causes[row], alarm)
            for row, alarm in outputs.alarms
            if self._publish_from is None or alarm.time >= self._publish_from
        ]
        values = [
            _encode(AlarmRecord.of(alarm, cause.topic, cause.partition, cause.offset))
            for cause, alarm in kept
        ]
        own = [cause for cause, _ in kept]
        return _Made(ALERTS, _records(values, own), own)

    def _too_large(self, made: _Made) -> dict[int, _DeadLetter]:
        """Return the dead letters of the outputs that are too large, by their numbers."""
        found: dict[int, _DeadLetter] = {}
        if _at_most(made.records) <= self._max_bytes:
            return found
        keys, values, headers, *_ = made.records
        for number, (key, value, some) in enumerate(zip(keys, values, headers, strict=True)):
            size = len(value) + _overhead(key, some)
            if size > self._max_bytes:
                detail = (
                    f"the record for {made.sink} has {size} bytes with its key and headers, and at "
                    f"most {self._max_bytes} are allowed; pass fewer fields through to it"
                )
                cause = made.causes[number]
                dead = _DeadLetter(0, 0, "output-too-large", detail, value, cause, cut=True)
                found[number] = dead
        return found

    def _dead(
        self, outputs: Outputs | None, decoded: DecodedBatch, records: Sequence[Record]
    ) -> list[_DeadLetter]:
        """Return the dead letters of deserializer and processor in the order of their causes."""
        found = [
            _DeadLetter(row, 0, reason, detail, records[row].value or b"", records[row])
            for row, reason, detail in decoded.dead
        ]
        for row, letter in () if outputs is None else outputs.dead_letters:
            cause = decoded.rows[row]
            found.append(_of_processor(cause, records[cause], letter))
        return sorted(found, key=itemgetter(0, 1))

    def _dead_records(self, dead: Iterable[_DeadLetter]) -> OutputRecords:
        return OutputRecords(*zip(*map(self._dead_record, dead), strict=True))

    def _dead_record(
        self, letter: _DeadLetter
    ) -> tuple[bytes | None, bytes, Headers, int | None, str]:
        """Return the parts of a record, without what does not fit."""
        cause = letter.cause
        key, kept = (None, ()) if letter.timed_out else (cause.key, cause.headers)
        if letter.reason == INTERNAL_ERROR:  # headers may be the cause
            kept = ()
        own = _dead_letter_headers(letter)
        value, headers = _encode(_dead_value(letter)), (*kept, *own)
        if len(value) + _overhead(key, headers) > self._max_bytes:
            value, headers = _encode(_dead_value(letter._replace(cut=True))), (*own,)
        if len(value) + _overhead(key, headers) > self._max_bytes:
            key = None
        timestamp = cause.timestamp if cause.timestamp >= 0 else None
        return key, value, headers, timestamp, letter.reason


def _taken(causes: Sequence[Record], rows: NDArray[np.int64]) -> Sequence[Record]:
    if len(rows) == len(causes) and (rows == np.arange(len(rows))).all():
        return causes
    return [causes[row] for row in rows.tolist()]


def _records(
    values: Sequence[bytes], causes: Sequence[Record], assumed: NDArray[np.bool_] | None = None
) -> OutputRecords:
    """Return the records of outputs.

    The outcome of an assumed label has no key: the record that causes it is of another id.
    """
    keys = [one.key for one in causes]
    headers = [one.headers for one in causes]
    timestamps = [one.timestamp for one in causes]
    if any(headers):
        headers = [*map(_of_record, headers)]
    if assumed is not None:
        for row in np.flatnonzero(assumed).tolist():
            keys[row], headers[row] = None, ()
    if min(timestamps, default=0) < 0:
        known = [one if one >= 0 else None for one in timestamps]
        return OutputRecords(keys, values, headers, known)
    return OutputRecords(keys, values, headers, timestamps)


def _of_record(headers: Headers) -> Headers:
    return [one for one in headers if not _describes_value(one[0])] if headers else headers


def _describes_value(header: str) -> bool:
    """Return whether a header is of the value, as those of CloudEvents are, and not of the record.

    >>> _describes_value("ce_type"), _describes_value("content-type"), _describes_value("trace")
    (True, True, False)
    """
    return header.startswith("ce_") or header == "content-type"


def _overhead(key: bytes | None, headers: Headers) -> int:
    """Return an upper bound of the bytes of a record without its value."""
    size = len(key) if key else 0
    for name, value in headers:
        size += 4 * len(name) + len(value or b"") + _HEADER_OVERHEAD
    return size


def _at_most(records: OutputRecords) -> int:
    """Return an upper bound of the bytes of each record."""
    values, keys = map(len, records.values), map(len, filter(None, {*records.keys}))
    headers = (_overhead(None, some) for some in filter(None, records.headers))
    return max(values, default=0) + max(keys, default=0) + max(headers, default=0)


def _of_processor(row: int, cause: Record, letter: DeadLetter) -> _DeadLetter:
    if letter.row is not None:
        return _DeadLetter(row, 2, letter.reason, letter.detail, cause.value or b"", cause)
    raw = _encode(letter.event)  # the record of a label that timed out is no longer known
    return _DeadLetter(row, 1, letter.reason, letter.detail, raw, cause, timed_out=True)


def _dead_value(letter: _DeadLetter) -> DeadLetterRecord:
    raw, origin = letter.raw, _origin(letter)
    where = "{topic}[{partition}]@{offset}".format(**origin) if origin else TIMED_OUT
    size = len(raw) if letter.cut and len(raw) > _PREVIEW else None
    shown = raw if size is None else raw[:_PREVIEW]
    try:
        raw.decode()
    except UnicodeDecodeError:
        value: dict[str, Any] = {"base64": base64.b64encode(shown).decode()}
    else:
        value = {"raw": shown.decode(errors="ignore")}  # a cut may be within a character
    return DeadLetterRecord(letter.reason, letter.detail, where, **origin, **value, size=size)


def _dead_letter_headers(letter: _DeadLetter) -> Headers:
    """Return headers, by which dead letters can be filtered without decoding them."""
    found = {"reason": letter.reason, "detail": letter.detail, **_origin(letter)}
    return [(f"abers.{name}", str(value).encode()) for name, value in found.items()]


def _origin(letter: _DeadLetter) -> dict[str, Any]:
    if letter.timed_out:
        return {}
    cause = letter.cause
    return {"topic": cause.topic, "partition": cause.partition, "offset": cause.offset}
