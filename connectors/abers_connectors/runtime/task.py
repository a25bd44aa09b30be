"""The stream task of one partition: its processor, its checkpoint and its changelog.

The changelog of a task has the effect of each transaction, as records of a topic. A transaction
processes one batch of each task in it, and adds one `ChangelogRecord` for the batch. If that is too
large for a record of the topic, it is split into parts: several records in the same transaction,
each with the number of its part. Batch numbers have no gaps.

Each record of the topic has a seal: the version of the format, and a checksum. A reader gets back
exactly what was written, or a StateError.

State, input offsets and batch number move together, with each batch that is processed or applied
from the changelog. They are valid only while every processed batch is committed.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

import abers
from abers.exceptions import ParameterError, StateError
from abers.serialization import REMEDY, seal, unseal
from abers.stream import JournalEntry  # noqa: TC001 - msgspec reads the annotations
from abers_connectors.runtime.application import NO_OFFSET, Checkpoint, snapshot_scope
from abers_connectors.runtime.deserializer import DecodedBatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.stream import Outputs, Processor
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.batches import MergedRecords
    from abers_connectors.runtime.deserializer import Deserializer
    from abers_connectors.runtime.serializer import OutputRecords, Serializer
    from abers_connectors.runtime.transport import OffsetRange, Reader, TopicPartition

__all__ = [
    "LIMIT",
    "MAGIC",
    "Assembler",
    "BatchResult",
    "ChangelogRecord",
    "StreamTask",
    "encode",
    "last_changelog_record",
]

MAGIC = b"abersCL\x01"  # the last byte is the version of the format
LIMIT = 512 * 1024  # bytes of a record; brokers and clients allow twice as many by default

_NAME = "a record of a changelog"  # in messages
_MAX = (1 << 63) - 1  # of an offset, and of a batch number
_PART_HEADER = struct.Struct("<QII")  # as in `_Part`
_OVERHEAD = len(seal(MAGIC, b"")) + _PART_HEADER.size  # bytes of a record without its piece
_TAIL = 64  # records in which to look for the last batch, and then more


class ChangelogRecord(msgspec.Struct, array_like=True, frozen=True):
    """The effect of one transaction on one task.

    Examples
    --------
    >>> tombstone = ChangelogRecord("1.0", 0, (1, -1), bytes(1), bytes(8), [(0, "tombstone")], None)
    >>> (value,) = encode(tombstone)
    >>> Assembler().add(value) == tombstone
    True
    """

    engine: str  # version of abers that wrote it
    number: int  # of the batch, from 0, without gaps
    next_offsets: tuple[int, int]  # of observations and labels; -1 for labels with only one input
    # The input records of the batch, one row each, in the order of processing:
    inputs: bytes  # one byte a row: 0 for a record of observations, 1 for one of labels
    offsets: bytes  # a little-endian 64-bit integer a row
    dead: list[tuple[int, str]]  # row, and reason or "tombstone", where a record is no event
    entry: JournalEntry | None  # of all other rows, which are events; None without events
    partitions: int = 0  # number of each input's; 0 if it is unknown
    follows: str = ""  # id of the application that publishes instead; "" for none


class _Part(NamedTuple):
    """A record of the topic: a piece of an encoded changelog record."""

    number: int  # of the batch
    position: int  # of the part, from 0
    total: int  # number of parts of the batch
    piece: memoryview


def encode(changelog_record: ChangelogRecord, limit: int = LIMIT) -> list[bytes]:
    """Encode a changelog record as values of at most `limit` bytes each.

    Send them in this order in one transaction. Raises a ParameterError if the limit is too small.
    """
    size = limit - _OVERHEAD
    if size < 1:
        msg = f"limit={limit} is too small; it must be more than {_OVERHEAD} bytes"
        raise ParameterError(msg)
    payload = msgspec.msgpack.encode(changelog_record)
    pieces = [payload[start : start + size] for start in range(0, len(payload), size)]
    return [
        seal(MAGIC, _PART_HEADER.pack(changelog_record.number, position, len(pieces)) + piece)
        for position, piece in enumerate(pieces)
    ]


class Assembler:
    """Decodes the records of a changelog in order.

    The first batch must have the given `number`; None accepts any. After a StateError, the
    assembler cannot be used any more.
    """

    def __init__(self, number: int | None = None) -> None:
        self._number = number  # of the next part's batch
        self._pieces: list[memoryview] = []  # of that batch so far
        self._total = 0  # number of its parts

    def add(self, value: bytes) -> ChangelogRecord | None:
        """Add the value of the next record of the topic.

        Returns the changelog record that it completes, or None if more parts follow. Raises a
        StateError if the value is damaged, of an unknown format, or not the next.
        """
        part = _parse_part(value)
        self._require_next(part)
        self._number = part.number
        self._pieces.append(part.piece)
        if len(self._pieces) < part.total:
            self._total = part.total
            return None
        payload = b"".join(self._pieces)
        self._pieces, self._number = [], part.number + 1
        return _decode(payload, part.number)

    def _require_next(self, part: _Part) -> None:
        number, position = self._number, len(self._pieces)
        same_total = position == 0 or part.total == self._total
        if (number is None or part.number == number) and part.position == position and same_total:
            return
        expected = f"part {position + 1} of batch {'any' if number is None else number}"
        msg = (
            f"the changelog has a gap: part {part.position + 1} of {part.total} of batch "
            f"{part.number} came instead of {expected}; restore the topic, or start from a later "
            "snapshot"
        )
        raise StateError(msg)


def _parse_part(value: bytes) -> _Part:
    payload = unseal(MAGIC, bytes(value), _NAME)
    if len(payload) < _PART_HEADER.size:
        msg = f"{_NAME} is too short; {REMEDY}"
        raise StateError(msg)
    number, position, total = _PART_HEADER.unpack_from(payload)
    if position >= total:
        msg = f"{_NAME} is part {position + 1} of {total}; {REMEDY}"
        raise StateError(msg)
    return _Part(number, position, total, payload[_PART_HEADER.size :])


def _decode(payload: bytes, number: int) -> ChangelogRecord:
    try:
        record = msgspec.msgpack.decode(payload, type=ChangelogRecord)
        _require_consistent(record, number)
    except (msgspec.MsgspecError, ValueError) as error:
        msg = f"batch {number} of the changelog is damaged ({error}); {REMEDY}"
        raise StateError(msg) from None
    return record


def _require_consistent(record: ChangelogRecord, number: int) -> None:
    """Raise a ValueError with the name of a column that does not fit the others.

    Nothing here checks the content of the entry; the processor does when it applies it.
    """
    inputs = np.frombuffer(record.inputs, np.uint8)
    rows = [row for row, _ in record.dead]
    events = 0 if record.entry is None else len(record.entry.labels)
    checks = {
        "number": record.number == number <= _MAX,
        "next_offsets": all(NO_OFFSET <= one <= _MAX for one in record.next_offsets),
        "inputs": bool((inputs <= 1).all()),
        "offsets": len(record.offsets) == 8 * len(inputs),
        # The rows increase, from 0 at least to below the number of inputs.
        "dead": all(a < b for a, b in zip([-1, *rows], [*rows, len(inputs)], strict=True)),
        "events": events == len(inputs) - len(rows),
        "partitions": record.partitions >= 0,
    }
    for what, passed in checks.items():
        if not passed:
            raise ValueError(what)


def last_changelog_record(
    reader: Reader, log: TopicPartition, offsets: OffsetRange
) -> ChangelogRecord | None:
    """Return the last intact record of a changelog partition, or None."""
    count = _TAIL
    while True:
        start = max(offsets.start, offsets.end - count)
        last = _last_between(reader, log, start, offsets.end)
        if last is not None or start == offsets.start:
            return last
        count *= _TAIL


def _last_between(
    reader: Reader, log: TopicPartition, start: int, end: int
) -> ChangelogRecord | None:
    last, assembler = None, Assembler()
    for records in reader.read(log, start, end):
        for record in records:
            try:
                last = assembler.add(record.value or b"") or last
            except StateError:  # damaged, or the rest of a batch that began before
                assembler = Assembler()
    return last


class BatchResult(NamedTuple):
    """The results of a batch, which are written in one transaction."""

    output_records: Mapping[str, OutputRecords]  # by sink: each of a service
    changelog_record: ChangelogRecord
    decoded: DecodedBatch  # the input records
    outputs: Outputs | None  # of the processor; None if no record was an event


class StreamTask:
    """The state of a partition: its processor and its checkpoint; each batch moves both."""

    def __init__(self, processor: Processor, checkpoint: Checkpoint) -> None:
        self.processor, self.checkpoint = processor, checkpoint
        self.records_since_snapshot = 0
        """Records that were applied since the task was created or its last snapshot began."""
        self.records_to_replay = 0
        """Records that were applied since the newest snapshot that this process knows."""

    @property
    def accounts(self) -> dict[str, int]:
        """How all records, events and predictions ended; see `abers.stream.accounts`."""
        return self.processor.accounts | self.checkpoint.counts.numbers()

    @classmethod
    def empty(
        cls,
        application: Application,
        partition: int,
        next_offsets: tuple[int, int] = (NO_OFFSET, NO_OFFSET),
    ) -> StreamTask:
        """Return the task of a partition without state."""
        checkpoint = Checkpoint(application.state_id, partition, 0, 0, next_offsets)
        return cls(application.new_processor(), checkpoint)

    @classmethod
    def from_snapshot(
        cls, application: Application, blob: bytes, partition: int, changelog_offset: int
    ) -> StreamTask:
        """Load a snapshot; raises a StateError if it cannot be used."""
        identity = (application.state_id, partition, changelog_offset)
        processor = application.restore_processor(blob, snapshot_scope(*identity))
        return cls(processor, Checkpoint.from_position(processor.position).require(*identity))

    def process(
        self, merged: MergedRecords, deserializer: Deserializer, serializer: Serializer
    ) -> BatchResult:
        """Process the next records of the inputs."""
        decoded = deserializer.decode(merged.records, merged.inputs)
        return self._processed(merged, decoded, serializer)

    def reject(self, merged: MergedRecords, why: str, serializer: Serializer) -> BatchResult:
        """Process the next record, on which `process` has failed, as a dead letter."""
        return self._processed(merged, DecodedBatch.rejected(why), serializer)

    def _processed(
        self, merged: MergedRecords, decoded: DecodedBatch, serializer: Serializer
    ) -> BatchResult:
        outputs = entry = None
        if len(decoded.events):
            outputs, entry = self.processor.process_logged(decoded.events)
        changelog_record = ChangelogRecord(
            abers.__version__,
            self.checkpoint.batch,
            self._offsets_after(merged),
            bytes(merged.inputs),
            np.array(_read_at(merged), "<i8").tobytes(),
            decoded.no_events(),
            entry,
            self.checkpoint.partitions,
            self.checkpoint.follows,
        )
        self._advance(changelog_record)
        if self.checkpoint.follows:
            output_records = serializer.nothing()
        else:
            output_records = serializer.serialize(outputs, decoded, merged.records)
        return BatchResult(output_records, changelog_record, decoded, outputs)

    def empty_record(self) -> ChangelogRecord:
        """Return an empty batch, which records where the task starts or continues after a gap."""
        checkpoint = self.checkpoint
        record = ChangelogRecord(
            abers.__version__,
            checkpoint.batch,
            checkpoint.next_offsets,
            b"",
            b"",
            [],
            None,
            checkpoint.partitions,
            checkpoint.follows,
        )
        self._advance(record)
        return record

    def seek(self, next_offsets: tuple[int, int]) -> None:
        """Continue at other offsets of the inputs; write `empty_record` to commit them."""
        self.checkpoint = msgspec.structs.replace(self.checkpoint, next_offsets=next_offsets)

    def follow(self, application_id: str) -> None:
        """Publish nothing as long as that application publishes; "" for publishing again."""
        self.checkpoint = msgspec.structs.replace(self.checkpoint, follows=application_id)

    def identify(self, topic_ids: tuple[str, ...], partitions: int) -> None:
        """Record the topics that the offsets are of, and the number of their partitions."""
        self.checkpoint = msgspec.structs.replace(
            self.checkpoint, topic_ids=topic_ids, partitions=partitions
        )

    def apply(self, record: ChangelogRecord) -> Outputs | None:
        """Apply the next record of the changelog; raises a StateError if it does not fit."""
        outputs = None if record.entry is None else self.processor.apply(record.entry)
        self._advance(record)
        return outputs

    def apply_many(self, records: Sequence[ChangelogRecord]) -> None:
        """Apply the next records of the changelog; raises a StateError if one does not fit."""
        self.processor.apply_many(one.entry for one in records if one.entry is not None)
        for one in records:
            self._advance(one)

    def changelog_written(self, next_offset: int) -> None:
        """Record where the changelog continues after the last, committed batch."""
        self.checkpoint = msgspec.structs.replace(self.checkpoint, changelog_offset=next_offset)

    def _offsets_after(self, merged: MergedRecords) -> tuple[int, int]:
        if merged.read_at is not None:
            return merged.read_at[-1] + 1, NO_OFFSET
        offsets = list(self.checkpoint.next_offsets)
        for which in {*merged.inputs}:
            last = len(merged.inputs) - 1 - merged.inputs[::-1].index(which)
            offsets[which] = merged.records[last].offset + 1
        return offsets[0], offsets[1]

    def _advance(self, record: ChangelogRecord) -> None:
        self.records_since_snapshot += len(record.inputs)
        self.records_to_replay += len(record.inputs)
        self.checkpoint = msgspec.structs.replace(
            self.checkpoint,
            batch=record.number + 1,
            next_offsets=record.next_offsets,
            partitions=record.partitions or self.checkpoint.partitions,
            follows=record.follows,
            counts=self.checkpoint.counts.plus(record.inputs, record.dead),
        )


def _read_at(merged: MergedRecords) -> Sequence[int]:
    """Return the offsets of records in the topics that the task reads."""
    return [one.offset for one in merged.records] if merged.read_at is None else merged.read_at
