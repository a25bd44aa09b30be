"""The stream task of one partition: its processor and its checkpoint.

State, input offsets and batch number move together, with each batch that is processed or applied
from the changelog. They are valid only while every processed batch is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

import abers
from abers_connectors.runtime.changelog import ChangelogRecord
from abers_connectors.runtime.checkpoint import NO_OFFSET, Checkpoint, snapshot_scope
from abers_connectors.runtime.deserializer import DecodedBatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.stream import Outputs, Processor
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.deserializer import Deserializer
    from abers_connectors.runtime.serializer import OutputRecords, Serializer
    from abers_connectors.runtime.timestamp_merge import MergedRecords

__all__ = ["BatchResult", "StreamTask"]


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
        """Take the next record, on which `process` has failed, as a dead letter."""
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
