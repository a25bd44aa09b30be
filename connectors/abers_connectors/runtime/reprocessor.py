"""Reprocessing of topics: of the inputs, or of the changelog.

As in the service, each partition has a processor of its own, and records on which abers fails are
rejected. The inputs are processed anew, in the order of their timestamps. The changelog is applied
as it was written, so its outputs are the same byte for byte.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import islice
from secrets import token_bytes
from typing import TYPE_CHECKING, NamedTuple, Protocol

from abers.exceptions import StateError
from abers.stream import Processor
from abers_connectors.runtime.application import NO_OFFSET, RecordCounts
from abers_connectors.runtime.batches import NO_FAULT_OF_A_RECORD, rejection
from abers_connectors.runtime.deserializer import DecodedBatch, Deserializer
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.task import Assembler, StreamTask
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from abers.stream import Outputs
    from abers_connectors.config.model import Config
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.transport import OffsetRange, Record

__all__ = [
    "ChangelogReplayer",
    "History",
    "HistoryRecord",
    "InputReprocessor",
    "ReprocessedBatch",
    "Reprocessor",
    "TaskOutputs",
]


class HistoryRecord(NamedTuple):
    """A record, with the numbers of its partition and of its input."""

    partition: int
    which: int
    record: Record


class History(Protocol):
    """Topics of equally many partitions, read from the outside."""

    @property
    def partition_count(self) -> int:
        """Number of partitions of each topic."""

    def ranges(self) -> dict[TopicPartition, OffsetRange]:
        """Return the offsets of all partitions, in the order of their numbers."""

    def read(self, ranges: Mapping[TopicPartition, OffsetRange]) -> Iterator[HistoryRecord]:
        """Read ranges of offsets, merged by time."""


class TaskOutputs(NamedTuple):
    """Outputs of a task for some records; the records are unknown if they are in a changelog."""

    partition: int
    outputs: Outputs | None
    decoded: DecodedBatch | None = None
    records: Sequence[Record] = ()


class ReprocessedBatch(NamedTuple):
    """The results of a batch."""

    records: int  # number of records
    parts: Sequence[TaskOutputs]
    rows: Sequence[Sequence[int]]  # for each part, the row of the record of each prediction


class Reprocessor(ABC):
    """Processes the records of ranges of offsets once more, with a processor for each partition."""

    def __init__(
        self,
        history: History,
        ranges: Mapping[TopicPartition, OffsetRange],
        processors: Iterable[Processor],
    ) -> None:
        self._history, self._ranges, self.processors = history, ranges, [*processors]
        self._positions = {one: part.start for one, part in ranges.items()}

    @abstractmethod
    def batches(self) -> Iterator[ReprocessedBatch]:
        """Process everything, in batches."""

    @abstractmethod
    def next_offsets(self, partition: int) -> tuple[int, int]:
        """Return the offsets of both inputs after the last record."""

    @abstractmethod
    def counts(self, partition: int) -> RecordCounts:
        """Return the numbers of the records of a partition's state."""

    def fraction(self) -> float | None:
        """Return the fraction of the offsets that is done; None if there is nothing to do."""
        whole = sum(one.end - one.start for one in self._ranges.values())
        done = sum(self._positions[one] - part.start for one, part in self._ranges.items())
        return done / whole if whole else None

    def _finish(self) -> None:
        """Record that no records follow: transactions leave offsets without a record."""
        self._positions = {one: part.end for one, part in self._ranges.items()}


class InputReprocessor(Reprocessor):
    """Processes the inputs anew; `due` yields slices of timestamps when they are due.

    If abers fails on a batch, all is processed anew up to there. From then on the state before each
    batch is kept: a batch on which abers fails is halved, and a record that fails alone twice is a
    dead letter.
    """

    def __init__(
        self,
        config: Config,
        history: History,
        ranges: Mapping[TopicPartition, OffsetRange],
        due: Callable[[Sequence[int]], Iterable[slice]] = lambda _: [slice(None)],
    ) -> None:
        self._settings, count = config.settings(), history.partition_count
        super().__init__(history, ranges, self._empty(count))
        self._counts = [RecordCounts()] * count
        self._deserializer, self._due = Deserializer(config, partitions=count), due
        self._topics = [*dict.fromkeys(one.topic for one in ranges)]
        self._max_records = 2000 if config.kafka is None else config.kafka.max_records
        self._sizes: list[int] = []  # records of the batches so far
        self._keeps_states, self._key = False, token_bytes(32)

    def batches(self) -> Iterator[ReprocessedBatch]:
        """Process the records; those that are due at the same time are one batch."""
        try:
            yield from self._remaining(keeps_states=False)
        except _SpoiltError:
            self.processors[:] = self._empty(len(self.processors))
            self._counts = [RecordCounts()] * len(self.processors)
            yield from self._remaining(keeps_states=True)
        self._finish()

    def _empty(self, count: int) -> Iterator[Processor]:
        return (Processor(self._settings, outcomes=False) for _ in range(count))

    def _remaining(self, *, keeps_states: bool) -> Iterator[ReprocessedBatch]:
        """Process the batches after those that were yielded before."""
        reads = self._history.read(self._ranges)
        for size in self._sizes:
            self._batch([*islice(reads, size)])
        self._keeps_states = keeps_states
        while batch := list(islice(reads, self._max_records)):
            for due in self._due([one.record.timestamp for one in batch]):
                found = self._batch(batch[due])
                self._sizes.append(found.records)
                yield found

    def next_offsets(self, partition: int) -> tuple[int, int]:
        """Return the ends of the ranges."""
        ends = [part.end for one, part in self._ranges.items() if one.partition == partition]
        return ends[0], ends[1] if len(ends) > 1 else NO_OFFSET

    def counts(self, partition: int) -> RecordCounts:
        """Return the numbers of the records that were processed."""
        return self._counts[partition]

    def _batch(self, reads: Sequence[HistoryRecord]) -> ReprocessedBatch:
        """Process records by partition, and advance the read positions."""
        by_partition: dict[int, list[int]] = {}
        for row, one in enumerate(reads):
            by_partition.setdefault(one.partition, []).append(row)
        parts, order = [], []
        for partition, rows in by_partition.items():
            for part, predicted in self._process(partition, rows, reads):
                parts.append(part)
                order.append(predicted)
        for one in reads:
            where = TopicPartition(self._topics[one.which], one.partition)
            self._positions[where] = one.record.offset + 1
        return ReprocessedBatch(len(reads), parts, order)

    def _process(
        self,
        partition: int,
        rows: Sequence[int],
        reads: Sequence[HistoryRecord],
        *,
        again: bool = False,
    ) -> list[tuple[TaskOutputs, list[int]]]:
        """Process rows of a partition; with each part, return the rows of its predictions."""
        records = [reads[row].record for row in rows]
        inputs = bytes(reads[row].which for row in rows)
        decoded = self._deserializer.decode(records, inputs)
        outputs = None
        if len(decoded.events):
            before = self._processor_snapshot(partition)
            try:
                outputs = self.processors[partition].process_batch(decoded.events)
            except NO_FAULT_OF_A_RECORD:
                raise
            except Exception as error:
                if before is None:
                    raise _SpoiltError from error
                self.processors[partition] = Processor.restore(
                    before, self._settings, key=self._key, outcomes=False
                )
                if len(rows) > 1:
                    halves = rows[: len(rows) // 2], rows[len(rows) // 2 :]
                    return [one for half in halves for one in self._process(partition, half, reads)]
                if not again:
                    return self._process(partition, rows, reads, again=True)
                decoded = DecodedBatch.rejected(rejection(records[0], error))
        self._counts[partition] = self._counts[partition].plus(inputs, decoded.no_events())
        predicted = [] if outputs is None else outputs.predicted.tolist()
        part = TaskOutputs(partition, outputs, decoded, records)
        return [(part, [rows[decoded.rows[row]] for row in predicted])]

    def _processor_snapshot(self, partition: int) -> bytes | None:
        """Return the state before a batch, if it is kept."""
        return self.processors[partition].snapshot(key=self._key) if self._keeps_states else None


class _SpoiltError(Exception):
    """A batch failed in an unexpected way, so the state cannot be used."""


class ChangelogReplayer(Reprocessor):
    """Applies the changelog as it was written.

    The snapshots of the service are needed if the changelog lost its beginning, or if the ranges
    start later; batches between a snapshot and its range have no outputs.
    """

    def __init__(
        self,
        application: Application,
        history: History,
        ranges: Mapping[TopicPartition, OffsetRange],
        snapshots: SnapshotStore | None,
    ) -> None:
        self._application = application._replace(outcomes=False)
        self._starts = {one: part.start for one, part in ranges.items()}
        self._topic = next(iter(ranges)).topic
        self._whole = history.ranges()
        self._tasks = [self._task_before(one, part, snapshots) for one, part in ranges.items()]
        applied = {
            one: part._replace(start=task.checkpoint.changelog_offset)
            for (one, part), task in zip(ranges.items(), self._tasks, strict=True)
        }
        super().__init__(history, applied, [task.processor for task in self._tasks])

    def next_offsets(self, partition: int) -> tuple[int, int]:
        """Return where the inputs continue after the last batch."""
        return self._tasks[partition].checkpoint.next_offsets

    def counts(self, partition: int) -> RecordCounts:
        """Return the numbers of the records that were applied, the snapshot's included."""
        return self._tasks[partition].checkpoint.counts

    def batches(self) -> Iterator[ReprocessedBatch]:
        """Apply the batches."""
        assemblers = [Assembler() for _ in self._tasks]
        for partition, _, record in self._history.read(self._ranges):
            where = TopicPartition(self._topic, partition)
            try:
                change = assemblers[partition].add(record.value or b"")
                outputs = None if change is None else self._tasks[partition].apply(change)
            except StateError as error:
                msg = f"{where.at(record.offset)}: {error}"
                raise StateError(msg) from None
            self._positions[where] = record.offset + 1
            if change is None:
                continue
            if record.offset < self._starts[where]:
                yield ReprocessedBatch(0, [], [])
            elif outputs is None:
                yield ReprocessedBatch(len(change.inputs), [], [])
            else:
                parts, rows = [TaskOutputs(partition, outputs)], [range(len(outputs.predictions))]
                yield ReprocessedBatch(len(change.inputs), parts, rows)
        self._finish()

    def _task_before(
        self, one: TopicPartition, part: OffsetRange, snapshots: SnapshotStore | None
    ) -> StreamTask:
        """Return the task from which a range can be applied."""
        start, partition = self._whole[one].start, one.partition
        why = "there is no snapshot"
        for name, blob in () if snapshots is None else snapshots.newest(partition):
            offset = SnapshotStore.offset(name)
            if not start <= offset <= part.start:
                why = f"snapshot {name} continues at @{offset}"
                continue
            try:
                return StreamTask.from_snapshot(self._application, blob, partition, offset)
            except StateError as error:
                why = f"snapshot {name} cannot be used ({error})"
        if start == 0:
            return StreamTask.empty(self._application, partition)
        msg = (
            f"{one} begins at @{start}, and no state is known between there and @{part.start}, "
            f"where the range begins: {why}; give --since a later time, or name the folder or URL "
            "of the snapshots in state.path"
        )
        raise StateError(msg)
