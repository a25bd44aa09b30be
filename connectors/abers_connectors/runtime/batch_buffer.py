"""Batches of the records that a consumer reads.

A batch opens with the first record that can be applied. It closes when it is full or has been
open for long enough. It holds each task's records in the order in which they are applied.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from abers_connectors.runtime.timestamp_merge import MergedRecords, TimestampMerge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers_connectors.runtime.transport import Consumer, Record, TopicPartition

__all__ = ["BatchBuffer", "BatchLimits"]

_POLL = 0.1  # seconds of a poll while nothing is queued
_NOTHING = -1  # a cap before the first offset
_TASKS = 4  # that share the records of a batch: the fewer of a task, the more each costs
_QUEUED_BATCHES = 4  # batches that may queue of one of two inputs before it is paused


class BatchLimits(NamedTuple):
    """When a batch closes, and how long one input waits for the other; times in seconds."""

    records: int  # of a full batch of up to seven tasks; of more in proportion to their number
    bytes: int  # of a full batch
    commit_interval: float  # from the first record of a batch to its end
    max_task_idle: float  # wait for an input that has records, when none arrives


@dataclass
class _InputState:
    """One input partition of a task."""

    partition: TopicPartition
    backlog: int
    cap: float = math.inf  # offset before which the records are applied
    beyond: list[Record] = field(default_factory=list)  # from there on
    paused: bool = False


class _TaskBuffer:
    """The queued records of a task, and its records in the open batch."""

    def __init__(self, inputs: Sequence[_InputState], most: int) -> None:
        self.inputs = inputs
        self.most = most  # records of a batch
        self.merge = TimestampMerge(len(inputs))
        self.open = MergedRecords([], [])
        self.missing_since: float | None = None

    def add(self, which: int, records: Sequence[Record]) -> None:
        """Queue records of an input, and what the cap allows now."""
        one = self.inputs[which]
        one.beyond += records
        count = bisect_left(one.beyond, one.cap, key=attrgetter("offset"))
        self.merge.add(which, one.beyond[:count])
        del one.beyond[:count]

    @property
    def empty(self) -> bool:
        """Whether all records before the caps were taken."""
        queued = (self.merge.queued(which)[0] for which in range(len(self.inputs)))
        return not self.open.records and not any(queued)


class BatchBuffer:
    """The records of all tasks that were read and not yet processed.

    The consumer pauses inputs that are far ahead of the other. The clock is monotonic.
    """

    def __init__(
        self, consumer: Consumer, limits: BatchLimits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._consumer, self._limits, self._clock = consumer, limits, clock
        self._tasks: dict[int, _TaskBuffer] = {}
        self._by_partition: dict[tuple[str, int], tuple[_TaskBuffer, int]] = {}
        self._since: float | None = None  # when the open batch got its first record
        self.until = math.inf
        """No record of several inputs that is later is put into a batch."""

    def clear(self) -> None:
        """Drop all tasks and their records."""
        self._since = None
        self._tasks, self._by_partition = {}, {}

    def add_task(
        self, number: int, backlogs: Mapping[TopicPartition, int], *, capped: bool = False
    ) -> None:
        """Take the records of a task from now on.

        `backlogs` are its inputs, observations first, each with its end. Up to there the inputs are
        merged strictly by time, however long that takes. If it is `capped`, nothing is taken before
        the first call of `cap`.
        """
        cap = _NOTHING if capped else math.inf
        inputs = [_InputState(partition, end, cap) for partition, end in backlogs.items()]
        task = _TaskBuffer(inputs, self._limits.records)
        self._tasks[number] = task
        for which, one in enumerate(task.inputs):
            self._by_partition[one.partition] = (task, which)

    def limit(self, number: int, records: int) -> None:
        """Put at most so many records of a task into a batch; it may have more already."""
        self._tasks[number].most = records

    def cap(self, number: int, caps: Sequence[int]) -> None:
        """Apply the records of a task before an offset of each input, merged strictly by time."""
        task = self._tasks[number]
        for which, cap in enumerate(caps):
            task.inputs[which].cap = cap
            task.add(which, ())
        self._fill(task)
        self._pause_or_resume(task)

    def drained(self, number: int) -> bool:
        """Return whether all records before the caps of a task were taken, and these are set."""
        task = self._tasks[number]
        return task.empty and all(one.cap > _NOTHING and self._reached(one) for one in task.inputs)

    def add(self, records: Mapping[TopicPartition, Sequence[Record]]) -> None:
        """Add records; those of other tasks are dropped."""
        for partition, part in records.items():
            found = self._by_partition.get(partition)
            if found is not None:
                task, which = found
                task.add(which, part)
        self._fill_all()

    def head(self, number: int) -> int | None:
        """Return the timestamp of the next record that is in no batch; None if it is unknown."""
        task = self._tasks.get(number)
        return None if task is None else task.merge.head(self._ended(task))

    def queued(self) -> int:
        """Return the number of records that are in no batch that was taken."""
        merges = [task.merge for task in self._tasks.values()]
        queued = [one.queued(which)[0] for one in merges for which in range(one.inputs)]
        return sum(queued) + self._open_size()[0]

    def poll_timeout(self, *, joined: bool = True) -> float:
        """Return the seconds that the next poll may take; without a group nothing is committed."""
        if not joined:
            return _POLL
        if self.due():
            return 0.0
        if self._since is not None:
            return max(0.0, self._since + self._limits.commit_interval - self._clock())
        waiting = any(task.merge.missing() is not None for task in self._tasks.values())
        return min(self._limits.max_task_idle, _POLL) if waiting else _POLL

    def due(self) -> bool:
        """Return whether the open batch should be processed."""
        if self._since is None:
            return False
        records, size = self._open_size()
        full = records >= self._most() or size >= self._limits.bytes
        return full or self._clock() - self._since >= self._limits.commit_interval

    def take(self) -> list[tuple[int, MergedRecords]]:
        """Close the open batch, and return its records by task."""
        self._since = None
        batch = [(number, task.open) for number, task in self._tasks.items() if task.open.records]
        for number, _ in batch:
            self._tasks[number].open = MergedRecords([], [])
            self._tasks[number] = self._tasks.pop(number)  # to the end of the queue
        self._fill_all()  # queued records may already fill the next batch
        return batch

    def _fill_all(self) -> None:
        for task in self._tasks.values():
            self._fill(task)
            self._pause_or_resume(task)

    def _open_size(self) -> tuple[int, int]:
        """Return the number of records and bytes in the open batch."""
        parts = [task.open for task in self._tasks.values()]
        return sum(len(one.records) for one in parts), sum(one.size for one in parts)

    def _most(self) -> int:
        """Return the records of a full batch, which grow with the tasks."""
        return self._limits.records * max(1, len(self._tasks) // _TASKS)

    def _fill(self, task: _TaskBuffer) -> None:
        """Move the records that can be applied now to the open batch."""
        records, size = self._open_size()
        max_records, max_bytes = self._most() - records, self._limits.bytes - size
        max_records = min(max_records, task.most - len(task.open.records))
        if max_records <= 0 or max_bytes <= 0:
            return
        merged = task.merge.take(max_records, max_bytes, self._ended(task), self.until)
        if merged.records:
            task.open += merged
            self._since = self._clock() if self._since is None else self._since

    def _ended(self, task: _TaskBuffer) -> list[bool]:
        """Return for each input whether to skip it where it has no record."""
        if task.merge.missing() is None:
            task.missing_since = None
        elif task.missing_since is None:
            task.missing_since = self._clock()
        waited = 0.0 if task.missing_since is None else self._clock() - task.missing_since
        return [self._skipped(one, waited) for one in task.inputs]

    def _reached(self, one: _InputState) -> bool:
        """Return whether an input has no further record before its cap."""
        position = self._consumer.fetch_position(one.partition).position
        return position is not None and position >= one.cap

    def _skipped(self, one: _InputState, waited: float) -> bool:
        if one.cap < math.inf:
            return self._reached(one)
        fetched = self._consumer.fetch_position(one.partition)
        if fetched.lag is not None and fetched.lag <= 0:
            return True
        live = fetched.position is not None and fetched.position >= one.backlog
        return live and waited >= self._limits.max_task_idle

    def _pause_or_resume(self, task: _TaskBuffer) -> None:
        """Pause an input that is far ahead of the other, and resume it later."""
        limits = self._limits
        share = _QUEUED_BATCHES / max(1.0, len(task.inputs) / 2)  # of an input, of both or of many
        for which, one in enumerate(task.inputs):
            count, size = task.merge.queued(which)
            full = count > share * limits.records or size > share * limits.bytes
            full = full or bool(one.beyond)
            if full and not one.paused:
                self._consumer.pause(one.partition)
            elif one.paused and not full:
                self._consumer.resume(one.partition)
            one.paused = full
