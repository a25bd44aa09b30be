"""Serializer of outputs to the records that are written.

An output keeps the key, the headers and the timestamp of the record that caused it, so that both
can be joined; but not the headers that describe the value of that record. An assumed label has no
record, so its outcome has only a timestamp. Every record fits its topic: one that the brokers
reject would come again after every restart.
"""

from __future__ import annotations

import base64
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from abers.stream.dead_letter_record import TIMED_OUT, DeadLetterRecord
from abers_connectors.runtime.poison import INTERNAL_ERROR
from abers_connectors.sinks.alarm_record import AlarmRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.stream import DeadLetter, Outputs, Rows
    from abers_connectors.runtime.deserializer import DecodedBatch
    from abers_connectors.runtime.transport import Headers, Record

__all__ = ["ALERTS", "OutputRecord", "Serializer"]

ALERTS = "alerts"
"""Name of the sink of alarms."""

_PREVIEW = 1000  # bytes of a value that is too large
_BATCH_OVERHEAD, _HEADER_OVERHEAD = 128, 10  # bytes of a batch and of a header, at most
_encode = msgspec.json.Encoder().encode


class OutputRecord(NamedTuple):
    """A record to be written."""

    sink: str  # "predictions", "outcomes", "dead_letters" or "alerts"
    key: bytes | None
    value: bytes
    headers: Headers
    timestamp: int | None  # milliseconds; None if the record that caused it has none
    reason: str | None = None  # of a dead letter


class _DeadLetter(NamedTuple):
    """A dead letter; `raw` is the value of its cause, or the event if that label timed out."""

    row: int
    rank: int  # orders the dead letters of a row
    reason: str
    detail: str
    raw: bytes
    cause: Record
    timed_out: bool = False


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
        encoders: Mapping[str, Callable[[Any], bytes]] | None = None,
    ) -> None:
        self._max_bytes, self._encoders = max_bytes - _BATCH_OVERHEAD, encoders or {}
        self._publish_from = publish_from

    def serialize(
        self, outputs: Outputs | None, decoded: DecodedBatch, records: Sequence[Record]
    ) -> list[OutputRecord]:
        """Serialize the outputs of a batch; they are None if it had no events.

        The records of each sink have the order of their causes. A dead letter replaces an output
        that is too large.
        """
        found: list[OutputRecord] = []
        if outputs is not None:
            causes = [records[row] for row in decoded.rows]
            found += self._rows("predictions", outputs.predictions, outputs.predicted, causes)
            if outputs.outcomes is not None:
                found += self._rows("outcomes", outputs.outcomes, outputs.settled, causes)
            found += self._alarms(outputs, causes)
        return found + self.dead_letters(outputs, decoded, records)

    def predictions(
        self, outputs: Outputs, decoded: DecodedBatch, records: Sequence[Record]
    ) -> list[OutputRecord]:
        """Serialize only the predictions; see `serialize`."""
        causes = [records[row] for row in decoded.rows]
        return [*self._rows("predictions", outputs.predictions, outputs.predicted, causes)]

    def dead_letters(
        self, outputs: Outputs | None, decoded: DecodedBatch, records: Sequence[Record]
    ) -> list[OutputRecord]:
        """Serialize only the dead letters; see `serialize`."""
        found = [
            _DeadLetter(row, 0, reason, detail, records[row].value or b"", records[row])
            for row, reason, detail in decoded.dead
        ]
        for row, letter in () if outputs is None else outputs.dead_letters:
            cause = decoded.rows[row]
            found.append(_of_processor(cause, records[cause], letter))
        found.sort(key=itemgetter(0, 1))
        return [self._dead_letter(letter) for letter in found]

    def _alarms(self, outputs: Outputs, causes: Sequence[Record]) -> Iterator[OutputRecord]:
        for row, alarm in outputs.alarms:
            if self._publish_from is None or alarm.time >= self._publish_from:
                cause = causes[row]
                alert = AlarmRecord.of(alarm, cause.topic, cause.partition, cause.offset)
                yield self._output(ALERTS, _encode(alert), cause)

    def _rows(
        self, sink: str, outputs: Rows[Any], rows: NDArray[np.int64], causes: Sequence[Record]
    ) -> Iterator[OutputRecord]:
        if self._publish_from is not None:
            kept = outputs.columns["time"] >= self._publish_from
            outputs, rows = outputs.take(kept), rows[kept]
        assumed = outputs.columns.get("assumed", np.zeros(len(rows), bool)).tolist()
        values = map(self._encoders.get(sink, _encode), outputs)
        for row, value, own in zip(rows.tolist(), values, assumed, strict=True):
            yield self._output(sink, value, causes[row], assumed=own)

    def _output(
        self, sink: str, value: bytes, cause: Record, *, assumed: bool = False
    ) -> OutputRecord:
        """Return the record of an output, or a dead letter if it is too large.

        The outcome of an assumed label has no key: the record that causes it is of another id.
        """
        key, headers, timestamp = cause.key, cause.headers, cause.timestamp
        if assumed:
            key, headers = None, ()
        if headers:
            headers = [one for one in headers if not _describes_value(one[0])]
        size = len(value) + (_overhead(key, headers) if headers else len(key or b""))
        if size <= self._max_bytes:
            return OutputRecord(sink, key, value, headers, timestamp if timestamp >= 0 else None)
        detail = (
            f"the record for {sink} has {size} bytes with its key and headers, and at most "
            f"{self._max_bytes} are allowed; pass fewer fields through to it"
        )
        too_large = _DeadLetter(0, 0, "output-too-large", detail, value, cause)
        return self._dead_letter(too_large, cut=True)

    def _dead_letter(self, letter: _DeadLetter, *, cut: bool = False) -> OutputRecord:
        """Return the record of a dead letter, without what does not fit."""
        cause = letter.cause
        key, kept = (None, ()) if letter.timed_out else (cause.key, cause.headers)
        if letter.reason == INTERNAL_ERROR:  # they may be why
            kept = ()
        own = _dead_letter_headers(letter)
        value, headers = _encode(_dead_record(letter, cut=cut)), (*kept, *own)
        if len(value) + _overhead(key, headers) > self._max_bytes:
            value, headers = _encode(_dead_record(letter, cut=True)), (*own,)
        if len(value) + _overhead(key, headers) > self._max_bytes:
            key = None
        timestamp = cause.timestamp if cause.timestamp >= 0 else None
        return OutputRecord("dead_letters", key, value, headers, timestamp, letter.reason)


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


def _of_processor(row: int, cause: Record, letter: DeadLetter) -> _DeadLetter:
    if letter.row is not None:
        return _DeadLetter(row, 2, letter.reason, letter.detail, cause.value or b"", cause)
    raw = _encode(letter.event)  # the record of a label that timed out is no longer known
    return _DeadLetter(row, 1, letter.reason, letter.detail, raw, cause, timed_out=True)


def _dead_record(letter: _DeadLetter, *, cut: bool) -> DeadLetterRecord:
    raw, origin = letter.raw, _origin(letter)
    where = "{topic}[{partition}]@{offset}".format(**origin) if origin else TIMED_OUT
    size = len(raw) if cut and len(raw) > _PREVIEW else None
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
