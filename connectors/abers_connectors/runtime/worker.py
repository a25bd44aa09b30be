"""The loop of `abers run`: poll, process a batch, commit it in one transaction.

The state in memory is valid only while commits succeed and the partitions stay assigned. After an
aborted transaction the worker discards all tasks, and restores them from what is committed. It does
the same after an unexpected error on a batch (see `batches.PoisonSearch`). After a rebalance it
restores the tasks that are assigned then, one after the other; the restored tasks go on while the
others are restored. It never retries a batch in memory.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from abers.exceptions import DeadLettersError, StateError
from abers_connectors.runtime.batches import BatchBuffer, GroupWatch, PoisonSearch, SuspectedError
from abers_connectors.runtime.serializer import DEAD_LETTERS
from abers_connectors.runtime.status import TASKS
from abers_connectors.runtime.task import encode
from abers_connectors.runtime.transport import TopicPartition, TransactionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.batches import BatchLimits, MergedRecords
    from abers_connectors.runtime.deserializer import Deserializer
    from abers_connectors.runtime.restore import RestoredTask
    from abers_connectors.runtime.serializer import Serializer
    from abers_connectors.runtime.status import Status
    from abers_connectors.runtime.take_over import TakeOver
    from abers_connectors.runtime.task import BatchResult, ChangelogRecord, StreamTask
    from abers_connectors.runtime.transport import (
        Consumer,
        GroupMembership,
        Producer,
        Reader,
        Record,
    )

__all__ = ["Worker"]

_log = logging.getLogger(__name__)

_NO_EPOCH = -1  # differs from all epochs, so that the next turn restores the tasks

_MOST_UNDECODED = 1_000  # records; if all were undecodable, the mapping is wrong, not a record
_POLLED_BATCHES = 4  # batches of records that one poll may return
_NAMED = 3  # tasks with records that a message names, so that it fits into a pipe at once


class Worker:
    """One process of an application.

    `restore` restores the task of a partition, from the task in memory if there is one, and calls
    its last argument from time to time. `topics` maps sinks to topics; the output of other sinks is
    dropped. The worker fails if it is outside the consumer group for more than `stall_timeout`
    seconds. `require_topics` is called when the assignment has changed, and raises if the topics
    have other partitions than at the start. `on_commit` is called for each task of a committed
    batch, and `housekeeping` after each turn of the loop, except a turn that rebalances.
    `take_over` guides the tasks that follow another application. `alongside` is called before each
    poll, and returns how many seconds the poll may take.
    """

    def __init__(  # noqa: PLR0913 - the parts of a service
        self,
        application: Application,
        *,
        consumer: Consumer,
        producer: Producer,
        reader: Reader,
        restore: Callable[[int, StreamTask | None, Callable[[], None]], RestoredTask],
        deserializer: Deserializer,
        serializer: Serializer,
        topics: Mapping[str, str],
        limits: BatchLimits,
        stop_on_dead_letter: bool,
        stall_timeout: float,
        status: Status,
        require_topics: Callable[[], object] = lambda: None,
        on_commit: Callable[[StreamTask, BatchResult], object] = lambda *_: None,
        housekeeping: Callable[[Sequence[StreamTask]], None] = lambda _: None,
        take_over: TakeOver | None = None,
        alongside: Callable[[], float] = lambda: math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.status, self._seat = status, status.seats[TASKS]
        self._application, self._restore = application, restore
        self._consumer, self._producer, self._reader = consumer, producer, reader
        self._deserializer, self._serializer, self._topics = deserializer, serializer, topics
        self._stop_on_dead_letter, self._require_topics = stop_on_dead_letter, require_topics
        self._on_commit, self._housekeeping = on_commit, housekeeping
        self._take_over, self._alongside, self._clock = take_over, alongside, clock
        self._group = GroupWatch(application.id, stall_timeout, clock)
        self._buffer = BatchBuffer(consumer, limits, clock)
        self._poison = PoisonSearch(limits.records)
        self._max_records = _POLLED_BATCHES * limits.records
        self._output_partitions = {
            topic: reader.partition_count(topic) for topic in {*topics.values()}
        }
        self._tasks: dict[int, StreamTask] = {}  # by partition
        self._epoch = _NO_EPOCH  # of the membership for which the tasks were restored
        self._stopping = False
        self._dead = Counter[str]()  # dead letters by reason, committed since the start

    def stop(self) -> None:
        """Finish the current batch, and end `run`; safe to call in a signal handler."""
        self._stopping = True

    def run(self) -> None:
        """Process batches until `stop` is called.

        Raises a StateError if offsets and state disagree or records are lost, a BrokerError if the
        broker or the membership is lost, and a DeadLettersError if no record was ever decoded.
        """
        with suppress(_StoppedError):
            while not self._stopping:
                self.turn()

    def turn(self) -> None:
        """Poll once, and process and commit a batch if one is due."""
        longest = self._alongside()
        timeout = self._buffer.poll_timeout(joined=self._group.joined)
        polled = self._consumer.poll(min(timeout, longest), self._max_records)
        self.status.progressed()
        membership = self._consumer.membership()
        self._group.require(membership)
        if membership.epoch != self._epoch:
            self._reassign(membership)
            return
        self._seat.joined = membership.group_metadata is not None
        self._take(polled, membership)

    def _take(
        self, polled: Mapping[TopicPartition, Sequence[Record]], membership: GroupMembership
    ) -> None:
        """Take records that were polled, and process and commit a batch if one is due."""
        self._seat.last_heartbeat = membership.last_heartbeat
        self._buffer.add(polled)
        if membership.group_metadata is not None:
            try:
                self._follow(membership.group_metadata)
                if self._buffer.due():
                    taken = self._buffer.take()
                    batch = [(number, self._application.seen(part)) for number, part in taken]
                    self._process(batch, membership.group_metadata)
                    self._check_dead_letters()
            except (TransactionError, SuspectedError) as error:
                self._discard(error)
        self._housekeeping([*self._tasks.values()])

    def _follow(self, group_metadata: object) -> None:
        """Let tasks follow another application, or publish in its place."""
        if self._take_over is not None:
            publish = partial(self._publish_from_here, group_metadata)
            self._take_over.follow(self._tasks, self._buffer, publish)

    def _publish_from_here(self, group_metadata: object, task: StreamTask) -> None:
        """Commit where a task begins to publish, and go on from there."""
        self._commit_position(task, group_metadata)
        self._start_fetching(task.checkpoint.partition, task)

    # The assignment

    def _go_on(self) -> None:
        """Go on with the restored tasks during a restore, and keep the membership.

        Raises if the membership changed, the tasks were discarded, or the worker is stopped.
        """
        self.status.progressed()
        if self._stopping:
            raise _StoppedError
        self._alongside()
        polled = self._consumer.poll(0.0, self._max_records)
        membership = self._consumer.membership()
        if membership.epoch == self._epoch:
            self._take(polled, membership)
        if membership.epoch != self._epoch:
            raise _RebalancedError

    def _reassign(self, membership: GroupMembership) -> None:
        """Restore the tasks that are assigned now: first those that were assigned before."""
        self._require_topics()
        previous, self._tasks, self._epoch = self._tasks, {}, membership.epoch
        self._buffer.clear()
        self._seat.joined = False  # until all tasks are restored
        self.status.assign(membership.assigned)
        for input_partition in membership.assigned:
            self._consumer.pause(input_partition)
        try:
            partitions = self._task_partitions(membership.assigned)
            for partition in sorted(partitions, key=lambda one: one not in previous):
                task, uncommitted = self._restore(partition, previous.get(partition), self._go_on)
                if uncommitted:
                    self._commit_position(task, membership.group_metadata)
                self._start_fetching(partition, task)
                self.status.restored(task)
        except _RebalancedError:
            self._epoch = _NO_EPOCH
        except TransactionError as error:
            self._discard(error)

    def _discard(self, error: TransactionError | SuspectedError) -> None:
        """Discard all tasks; the next turn restores them."""
        self._seat.joined = False  # until they are restored
        self.status.transaction_aborted(str(error))
        _log.warning("%s; restoring", error)
        self._tasks, self._epoch = {}, _NO_EPOCH

    def _task_partitions(self, assigned: frozenset[TopicPartition]) -> list[int]:
        """Return the partitions of the tasks; raise a StateError if one lacks an input."""
        partitions = sorted({one.partition for one in assigned})
        for partition in partitions:
            if not assigned.issuperset(self._application.input_partitions(partition)):
                msg = (
                    f"partition {partition} of only one input is assigned: another program reads "
                    f"one of the inputs in the group {self._application.id}; give it, or this "
                    "application (kafka.application_id), a group of its own"
                )
                raise StateError(msg)
        return partitions

    def _start_fetching(self, partition: int, task: StreamTask) -> None:
        """Fetch from the offsets of a task, and process its records."""
        offsets = self._offsets([task])
        ends = {one: self._reader.last_stable_offset(one) for one in offsets}
        self._tasks[partition] = task
        self._buffer.add_task(partition, ends, capped=bool(task.checkpoint.follows))
        self._buffer.limit(partition, self._poison.most(partition))
        for input_partition, offset in offsets.items():
            self._consumer.seek(input_partition, offset)
            self._consumer.resume(input_partition)

    def _commit_position(self, task: StreamTask, group_metadata: object | None) -> None:
        """Commit the offsets of a task, as at its start, together with an empty changelog record.

        From then on, the offsets of the group and the changelog agree.
        """
        if group_metadata is None:  # the membership is not stable
            raise _RebalancedError
        self._producer.begin()
        offset = self._send_changelog(task, task.empty_record())
        self._producer.commit(self._offsets([task]), group_metadata)
        task.changelog_written(offset() + 1)

    # Batches

    def _process(self, batch: Sequence[tuple[int, MergedRecords]], group_metadata: object) -> None:
        """Process a batch, the records of each task, and commit it in one transaction.

        Raises a TransactionError or a SuspectedError if the transaction was aborted.
        """
        began = self._clock()
        for partition, part in batch:  # the brokers abort one that waits for a schema registry
            self._prepare(partition, part)
        extents = [_extent(part.records) for _, part in batch[:_NAMED]]
        more = " and others" if len(batch) > _NAMED else ""
        self.status.progressed(f"processing {', '.join(extents)}{more}")
        self._producer.begin()
        tasks = [self._tasks[partition] for partition, _ in batch]
        try:
            written = [
                self._write(task, part) for task, (_, part) in zip(tasks, batch, strict=True)
            ]
        except SuspectedError:
            self._producer.abort()
            raise
        self._producer.commit(self._offsets(tasks), group_metadata)
        for partition, part in batch:
            self._poison.passed(partition, part)
            self._buffer.limit(partition, self._poison.most(partition))
        for task, (result, offset) in zip(tasks, written, strict=True):
            task.changelog_written(offset() + 1)
            self._dead.update(result.output_records[DEAD_LETTERS].reasons)
            self.status.batch_committed(task, result)
            self._on_commit(task, result)
        self.status.transaction_committed(self._clock() - began)

    def _prepare(self, partition: int, merged: MergedRecords) -> None:
        """Look up the schemas of a batch."""
        with self._poison.suspecting(partition, merged):
            if self._poison.rejected(partition, merged) is None:
                self._deserializer.prepare(merged.records, merged.inputs, self.status.progressed)

    def _write(
        self, task: StreamTask, merged: MergedRecords
    ) -> tuple[BatchResult, Callable[[], int]]:
        """Process and send; return the result, and the offset as from `_send_changelog`."""
        with self._poison.suspecting(task.checkpoint.partition, merged):
            why = self._poison.rejected(task.checkpoint.partition, merged)
            if why is None:
                result = task.process(merged, self._deserializer, self._serializer)
            else:
                result = task.reject(merged, why, self._serializer)
            return result, self._send(task, result)

    def _send(self, task: StreamTask, result: BatchResult) -> Callable[[], int]:
        """Send the results of a batch; return the offset as from `_send_changelog`."""
        for sink, records in result.output_records.items():
            topic = self._topics.get(sink)
            if topic is not None:
                count = self._output_partitions[topic]  # may be below the number of tasks
                to = TopicPartition(topic, task.checkpoint.partition % count)
                records.send(self._producer, to)
        return self._send_changelog(task, result.changelog_record)

    def _send_changelog(self, task: StreamTask, record: ChangelogRecord) -> Callable[[], int]:
        """Send a changelog record; the result returns its last part's offset after the commit."""
        to = self._application.changelog_partition(task.checkpoint.partition)
        *before, last = encode(record)
        for value in before:
            self._producer.send(to, None, value)
        return self._producer.send_tracked(to, last)

    def _offsets(self, tasks: Iterable[StreamTask]) -> dict[TopicPartition, int]:
        """Return the next offsets of the inputs of some tasks."""
        return {
            input_partition: offset
            for task in tasks
            for input_partition, offset in zip(
                self._application.input_partitions(task.checkpoint.partition),
                task.checkpoint.next_offsets,
                strict=False,  # of a single input, the second offset means nothing
            )
        }

    def _check_dead_letters(self) -> None:
        if self._stop_on_dead_letter and self._dead:
            msg = "a record is a dead letter, and output.on_bad_record says stop; it is committed"
            raise DeadLettersError(msg)
        counts = [task.checkpoint.counts for task in self._tasks.values()]
        failed = sum(sum(one.undecodable) for one in counts)
        if failed >= _MOST_UNDECODED and not any(one.decoded for one in counts):
            reasons = ", ".join(f"{number:,} {why}" for why, number in self._dead.most_common())
            msg = (
                f"no record was ever decoded, and {failed:,} failed ({reasons}); read the "
                "dead letters, and fix the input or its mapping"
            )
            raise DeadLettersError(msg)


def _extent(records: Sequence[Record]) -> str:
    """Name the first and the last of some records."""
    first, last = (
        TopicPartition(one.topic, one.partition).at(one.offset) for one in (records[0], records[-1])
    )
    return first if first == last else f"{first} to {last}"


class _StoppedError(Exception):
    """The worker was stopped during a restore."""


class _RebalancedError(Exception):
    """The assignment changed during a restore."""
