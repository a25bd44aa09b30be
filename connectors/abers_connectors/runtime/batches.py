"""Records that a consumer reads: merged by time, in batches, and halved to find what fails.

`PoisonSearch` finds records on which abers itself fails, so that none of them stops a partition. A
batch that raises is aborted, and every task is restored. The next batch of that task has half as
many records, down to one. A record that raises by itself twice, each time in a restored state, is
rejected. So a bad record among n costs about log2(n) + 2 restores. After a success the batches keep
their size until all that failed together is done, and then they double.

A record that raises only together with others passes in smaller batches. An exception that no
record causes, such as that of a disk, the memory or a broker, starts no search.

`TimestampMerge` merges the records of several inputs by their timestamps. The earliest of the next
records is applied first, and of two records of the same time that of the later input: a label
before an observation. So nothing is applied before the next record of each input is known. An input
without a next record is skipped only when it is known to have ended, or when waiting for it took
long enough.

`BatchBuffer` collects the records in batches. A batch opens with the first record that can be
applied. It closes when it is full or has been open for long enough. It has each task's records in
the order in which they are applied.
"""

from __future__ import annotations

import logging
import math
import time
from bisect import bisect_left
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.exceptions import BrokerError, ConfigError, StateError
from abers.validation import shown
from abers_connectors.runtime.transport import TopicPartition, sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers_connectors.runtime.transport import Consumer, GroupMembership, Record

__all__ = [
    "INTERNAL_ERROR",
    "LABELS",
    "NO_FAULT_OF_A_RECORD",
    "OBSERVATIONS",
    "BatchBuffer",
    "BatchLimits",
    "GroupWatch",
    "MergedRecords",
    "PoisonSearch",
    "SuspectedError",
    "TimestampMerge",
    "rejection",
]


class GroupWatch:
    """Watches that the process is not outside a group for more than `stall_timeout` seconds."""

    def __init__(self, group: str, stall_timeout: float, clock: Callable[[], float]) -> None:
        self._group, self._stall_timeout, self._clock = group, stall_timeout, clock
        self._since: float | None = None  # when the process left the group

    @property
    def joined(self) -> bool:
        """Whether the process was in the group at the last call of `require`."""
        return self._since is None

    def require(self, membership: GroupMembership) -> None:
        """Raise a BrokerError if the process has been outside the group for too long.

        This client may hang, and that of a restarted process may work.
        """
        if membership.group_metadata is not None:
            self._since = None
            return
        self._since = self._since or self._clock()
        if self._clock() - self._since > self._stall_timeout:
            msg = (
                f"could not join the group of {self._group} within "
                f"{self._stall_timeout:g} s (kafka.stall_timeout); ending, to be restarted"
            )
            raise BrokerError(msg)


INTERNAL_ERROR = "internal-error"
"""The reason of a dead letter on which abers failed."""

NO_FAULT_OF_A_RECORD = (OSError, MemoryError, ImportError, BrokerError, ConfigError, StateError)
"""Errors that no record causes; they end the process."""

_log = logging.getLogger(__name__)


class SuspectedError(Exception):
    """A batch raised, and may have a record to reject: abort it, and restore the tasks."""


@dataclass
class _Search:
    """The search in a partition."""

    most: int  # records of the next batch
    left: int = 0  # records not yet done of those that failed together
    raised: set[str] = field(default_factory=set)  # records that raised once by themselves
    rejected: dict[str, str] = field(default_factory=dict)  # why, by record
    unexplained: str = ""  # what was raised, as long as no record is found


class PoisonSearch:
    """The searches in all partitions; a full batch has `most` records."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._searches: dict[int, _Search] = {}  # by partition

    def most(self, partition: int) -> int:
        """Return how many records the next batch of a task may have."""
        found = self._searches.get(partition)
        return self._most if found is None else found.most

    def rejected(self, partition: int, batch: MergedRecords) -> str | None:
        """Return why the only record of a batch is rejected; None if it should be processed."""
        found = self._searches.get(partition)
        if found is None or len(batch.records) > 1:
            return None
        return found.rejected.get(_name(batch.records[0]))

    @contextmanager
    def suspecting(self, partition: int, batch: MergedRecords) -> Iterator[None]:
        """Raise a SuspectedError if the block fails on a batch, and one record may be why."""
        try:
            yield
        except NO_FAULT_OF_A_RECORD:
            raise
        except Exception as error:
            if self.rejected(partition, batch) is not None:
                raise  # it is not the content of the record
            self._failed(partition, batch, error)
            count, first = len(batch.records), _name(batch.records[0])
            records = "a batch of one record" if count == 1 else f"a batch of {count:,} records"
            msg = f"{records} from {first} failed: {_place(error)}"
            raise SuspectedError(msg) from error

    def _failed(self, partition: int, batch: MergedRecords, error: Exception) -> None:
        count, first = len(batch.records), batch.records[0]
        found = self._searches.setdefault(partition, _Search(count))
        found.left, found.most = count, max(1, count // 2)
        found.unexplained = _place(error)
        if count > 1:
            return
        name = _name(first)
        if name not in found.raised:
            found.raised.add(name)
            return
        found.unexplained, found.rejected[name] = "", rejection(first, error)

    def passed(self, partition: int, batch: MergedRecords) -> None:
        """Record that a batch is committed."""
        found = self._searches.get(partition)
        if found is None:
            return
        for record in batch.records:
            found.raised.discard(_name(record))
            found.rejected.pop(_name(record), None)
        found.left -= len(batch.records)
        if found.left > 0:
            return
        if found.unexplained:
            _log.warning(
                "partition %d goes on: no single record repeats the error of its batch: %s",
                partition,
                found.unexplained,
            )
            found.unexplained = ""
        found.most *= 2
        if found.most >= self._most:
            del self._searches[partition]


def rejection(record: Record, error: Exception) -> str:
    """Log an error that a record alone raised twice; return the sentence of its dead letter."""
    _log.error(
        "abers failed twice on this record alone; it is a dead letter (%s); report the error",
        INTERNAL_ERROR,
        exc_info=error,
        extra={"topic": record.topic, "partition": record.partition, "offset": record.offset},
    )
    return (
        f"abers failed on it ({_place(error)}): {shown(error)}; the log has the traceback; "
        "report it, and write the record again once that is fixed"
    )


def _name(record: Record) -> str:
    return TopicPartition(record.topic, record.partition).at(record.offset)


def _place(error: Exception) -> str:
    """Return the type of an error and where it was raised, without its text about a record."""
    last = extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}"


OBSERVATIONS, LABELS = 0, 1
"""Numbers of the inputs. An input with both counts as observations."""


class MergedRecords(NamedTuple):
    """Records in the order in which they are applied."""

    records: list[Record]
    inputs: list[int]  # input of each record
    size: int = 0  # as by `transport.sizes_of`
    read_at: Sequence[int] | None = None  # offsets in the routed topic, of records from there

    def __add__(self, more: MergedRecords) -> MergedRecords:  # type: ignore[override]
        """Append other records."""
        return MergedRecords(
            self.records + more.records, self.inputs + more.inputs, self.size + more.size
        )


class TimestampMerge:
    """Records of several inputs that were read and not yet applied.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> def record(name, timestamp):
    ...     return SimpleNamespace(
    ...         name=name, timestamp=timestamp, key=None, value=b"", headers=[]
    ...     )
    >>> merge = TimestampMerge(2)
    >>> merge.add(OBSERVATIONS, [record("a", 5), record("b", 9)])
    >>> merge.add(LABELS, [record("label of a", 5)])
    >>> [one.name for one in merge.take(10, 1000, [False, False]).records]
    ['label of a']
    >>> [one.name for one in merge.take(10, 1000, [False, True]).records]
    ['a', 'b']
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self._queues: list[list[Record]] = [[] for _ in range(inputs)]
        self._sizes: list[list[int]] = [[] for _ in range(inputs)]
        self._times: list[list[int]] = [[] for _ in range(inputs)]
        self._total = [0] * inputs  # of the sizes

    def add(self, which: int, records: Sequence[Record]) -> None:
        """Add records of an input."""
        self._queues[which] += records
        sizes = sizes_of(records)
        self._sizes[which] += sizes
        self._total[which] += sum(sizes)
        self._times[which] += [one.timestamp for one in records]

    def queued(self, which: int) -> tuple[int, int]:
        """Return the number of queued records of an input, and their size."""
        return len(self._queues[which]), self._total[which]

    def missing(self) -> int | None:
        """Return an input that the records of others wait for, or None."""
        filled = [*map(bool, self._queues)]
        return filled.index(False) if any(filled) and not all(filled) else None

    def head(self, ended: Sequence[bool]) -> int | None:
        """Return the timestamp of the next record; None while it is unknown."""
        known = all(one or times for one, times in zip(ended, self._times, strict=True))
        return min((times[0] for times in self._times if times), default=None) if known else None

    def take(
        self,
        max_records: int,
        max_bytes: int,
        ended: Sequence[bool],
        until: float = math.inf,
    ) -> MergedRecords:
        """Remove and return the next records; `ended` are the inputs to skip without a record.

        With several inputs, no record is later than `until`. The first record is returned even if
        its size is more than `max_bytes`.
        """
        order = self._order(max_records, ended, until)
        sizes = [*map(iter, self._sizes)]
        total = [*accumulate(next(sizes[which]) for which in order)]
        del order[bisect_left(total, max_bytes) + 1 :]
        queues = [*map(iter, self._queues)]
        records = [next(queues[which]) for which in order]
        for which in {*order}:
            count = order.count(which)
            self._total[which] -= sum(self._sizes[which][:count])
            for column in (self._queues, self._sizes, self._times):
                del column[which][:count]
        return MergedRecords(records, order, total[len(order) - 1] if order else 0)

    def _order(self, max_records: int, ended: Sequence[bool], until: float) -> list[int]:
        """Return the inputs of the next records, in order."""
        if len(self._queues) == 1:
            return [OBSERVATIONS] * min(max_records, len(self._queues[0]))
        if self.missing() is None and not self._queues[0]:
            return []
        # The first of the queues goes in order of the latest time so far: what is earlier than a
        # record before it follows that at once. Later inputs come first where times are equal.
        inputs = [*reversed(range(len(self._queues)))]
        most = max(1, 2 * max_records // len(inputs))  # of an input, however unequal they are
        times = [
            np.maximum.accumulate(np.array(self._times[one][:most], np.int64)) for one in inputs
        ]
        ends = np.cumsum([*map(len, times)])
        latest = np.concatenate(times)
        rows = np.argsort(latest, kind="stable")
        places = np.empty(len(rows), np.int64)
        places[rows] = np.arange(len(rows))
        certain = max_records  # records before which nothing can come that is not known
        for one, part, end in zip(inputs, times, ends.tolist(), strict=True):
            if not ended[one] or len(part) < len(self._times[one]):
                certain = min(certain, int(places[end - 1]) + 1 if len(part) else 0)
        if until < math.inf:
            certain = min(certain, int(np.count_nonzero(latest <= until)))
        found: list[int] = np.repeat(inputs, [*map(len, times)])[rows[:certain]].tolist()
        return found


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
        """With several inputs, no later record goes into a batch."""

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
        """Put at most `records` records of a task into a batch; it may have more already."""
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
