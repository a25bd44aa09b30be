"""From outputs to the records that are written.

Governing rule: what comes of a record keeps its key, its headers and its
timestamp, so that it can be joined with it; and whatever comes fits its topic,
for what a topic refuses would come again after every restart.
"""

from __future__ import annotations

import base64
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from abers_connectors.alarms import AlarmRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from abers.stream import DeadLetter, Outputs, Rows
    from abers_connectors.kafka.decoding import Decoded
    from abers_connectors.kafka.transport import Record

__all__ = ["ALERTS", "DeadRecord", "Outgoing", "Wording"]

Headers: TypeAlias = "Sequence[tuple[str, bytes]]"

ALERTS = "alerts"
"""The sink of alarms."""

_SHOWN = 1000  # bytes of what is too large
_BATCH, _HEADER = 128, 10  # bytes beside those of a record, and of each of its headers, at most
_encode = msgspec.json.Encoder().encode


class DeadRecord(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=1):
    """A dead letter as it is written: a record that changed nothing, or an output too large.

    Parameters
    ----------
    reason, detail
        Why, as a short name and as a sentence that says how to mend it.
    topic, partition, offset
        Of the record. A label that waited in vain for its observation is told without.
    raw, base64
        Its bytes as a text if they are UTF-8, otherwise in base 64.
    size
        How many bytes there were, if only the first of them are told.
    """

    reason: str
    detail: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    raw: str | None = None
    base64: str | None = None
    size: int | None = None


class Outgoing(NamedTuple):
    """A record to be written.

    Parameters
    ----------
    sink
        "predictions", "outcomes", "dead_letters" or "alerts".
    key, value, headers
        Of the record.
    timestamp
        In milliseconds; None if what caused it has none.
    reason
        Of a dead letter.
    """

    sink: str
    key: bytes | None
    value: bytes
    headers: Headers
    timestamp: int | None
    reason: str | None = None


class _Letter(NamedTuple):
    """A dead letter; the record that caused it holds `raw`, unless it `waited` in vain."""

    row: int
    rank: int
    reason: str
    detail: str
    raw: bytes
    cause: Record
    waited: bool = False


class Wording:
    """Words outputs.

    Parameters
    ----------
    max_bytes
        How large a record may be that is written, its key and headers included.
    publish_from
        Predictions and outcomes of events before this time are left out; None keeps all.
    """

    def __init__(self, *, max_bytes: int, publish_from: int | None = None) -> None:
        self._most = max_bytes - _BATCH
        self._publish_from = publish_from

    def outgoing(
        self, outputs: Outputs | None, decoded: Decoded, records: Sequence[Record]
    ) -> list[Outgoing]:
        """Word what came of a batch.

        Parameters
        ----------
        outputs
            Of the events; None if there were none.
        decoded
            What the records are.
        records
            They.

        Returns
        -------
        list of Outgoing
            Each sink's in the order of the records that caused them; an output that is too large
            stands where it would have been.
        """
        found: list[Outgoing] = []
        if outputs is not None:
            found += self.predictions(outputs, decoded, records)
            if outputs.outcomes is not None:
                causes = [records[row] for row in decoded.rows]
                found += self._worded("outcomes", outputs.outcomes, outputs.settled, causes)
            found += self._alarms(outputs, decoded, records)
        return found + self.letters(outputs, decoded, records)

    def predictions(
        self, outputs: Outputs, decoded: Decoded, records: Sequence[Record]
    ) -> list[Outgoing]:
        """Word the predictions alone; as `outgoing`."""
        causes = [records[row] for row in decoded.rows]
        return [*self._worded("predictions", outputs.predictions, outputs.predicted, causes)]

    def letters(
        self, outputs: Outputs | None, decoded: Decoded, records: Sequence[Record]
    ) -> list[Outgoing]:
        """Word the dead letters alone; as `outgoing`."""
        found = [
            _Letter(row, 0, reason, detail, records[row].value or b"", records[row])
            for row, reason, detail in decoded.dead
        ]
        for row, letter in () if outputs is None else outputs.letters:
            cause = decoded.rows[row]
            found.append(_of_processor(cause, records[cause], letter))
        found.sort(key=itemgetter(0, 1))
        return [self._buried(letter) for letter in found]

    def _alarms(
        self, outputs: Outputs, decoded: Decoded, records: Sequence[Record]
    ) -> Iterator[Outgoing]:
        for row, alarm in outputs.alarms:
            if self._publish_from is None or alarm.time >= self._publish_from:
                cause = records[decoded.rows[row]]
                told = AlarmRecord.of(alarm, cause.topic, cause.partition, cause.offset)
                yield self._fitting(ALERTS, _encode(told), cause)

    def _worded(
        self, sink: str, said: Rows[Any], rows: NDArray[np.int64], causes: Sequence[Record]
    ) -> Iterator[Outgoing]:
        if self._publish_from is not None:
            kept = said.columns["time"] >= self._publish_from
            said, rows = said.take(kept), rows[kept]
        for row, value in zip(rows.tolist(), map(_encode, said), strict=True):
            yield self._fitting(sink, value, causes[row])

    def _fitting(self, sink: str, value: bytes, record: Record) -> Outgoing:
        """Word what a record brought about, or a dead letter if that is too large."""
        key, headers, timestamp = record.key, record.headers, record.timestamp
        size = len(value) + (_beside(key, headers) if headers else len(key or b""))
        if size <= self._most:
            return Outgoing(sink, key, value, headers, timestamp if timestamp >= 0 else None)
        return self._too_large(sink, value, record, size)

    def _too_large(self, sink: str, value: bytes, record: Record, size: int) -> Outgoing:
        detail = (
            f"what goes to {sink} has {size} bytes with its key and headers, and {self._most} "
            "are allowed; pass less through to it"
        )
        return self._buried(_Letter(0, 0, "output-too-large", detail, value, record), cut=True)

    def _buried(self, letter: _Letter, *, cut: bool = False) -> Outgoing:
        """Word a dead letter, without what does not fit."""
        record = letter.cause
        key, kept = (None, ()) if letter.waited else (record.key, record.headers)
        own = _headers(letter)
        value, headers = _encode(_dead(letter, cut=cut)), [*kept, *own]
        if len(value) + _beside(key, headers) > self._most:
            value, headers = _encode(_dead(letter, cut=True)), own
        if len(value) + _beside(key, headers) > self._most:
            key = None
        return Outgoing("dead_letters", key, value, headers, _timestamp(record), letter.reason)


def _timestamp(record: Record) -> int | None:
    return record.timestamp if record.timestamp >= 0 else None


def _beside(key: bytes | None, headers: Headers) -> int:
    """Count the bytes of a record beside its value, or a few more."""
    size = len(key) if key else 0
    for name, value in headers:
        size += 4 * len(name) + len(value or b"") + _HEADER
    return size


def _of_processor(row: int, cause: Record, letter: DeadLetter) -> _Letter:
    if letter.row is not None:
        return _Letter(row, 2, letter.reason, letter.detail, cause.value or b"", cause)
    raw = _encode(letter.event)  # the record of a label that waited is no longer at hand
    return _Letter(row, 1, letter.reason, letter.detail, raw, cause, waited=True)


def _dead(letter: _Letter, *, cut: bool) -> DeadRecord:
    raw, place = letter.raw, _place(letter)
    size = len(raw) if cut and len(raw) > _SHOWN else None
    told = raw if size is None else raw[:_SHOWN]
    try:
        raw.decode()
    except UnicodeDecodeError:
        packed = base64.b64encode(told).decode()
        return DeadRecord(letter.reason, letter.detail, **place, base64=packed, size=size)
    text = told.decode(errors="ignore")  # what is cut may end within a character
    return DeadRecord(letter.reason, letter.detail, **place, raw=text, size=size)


def _headers(letter: _Letter) -> list[tuple[str, bytes]]:
    """Tell what a dead letter is to those who do not look into it."""
    found = {"reason": letter.reason, "detail": letter.detail, **_place(letter)}
    return [(f"abers.{name}", str(value).encode()) for name, value in found.items()]


def _place(letter: _Letter) -> dict[str, Any]:
    cause = letter.cause
    if letter.waited:
        return {}
    return {"topic": cause.topic, "partition": cause.partition, "offset": cause.offset}
