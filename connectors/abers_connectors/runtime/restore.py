"""Restore of a task to its committed offsets.

The committed state is read first: the offsets, then the end of the changelog, open transactions
included. Only then is the state restored, from the newest usable snapshot and the changelog after
it. If state and offsets disagree, nothing is processed.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import BrokerError, SettingsError, StateError
from abers.serialization import is_keyed
from abers_connectors.runtime.changelog import Assembler, last_changelog_record
from abers_connectors.runtime.partition_count import require_partitions
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.task import StreamTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.changelog import ChangelogRecord
    from abers_connectors.runtime.checkpoint import Checkpoint
    from abers_connectors.runtime.transport import OffsetRange, Reader, Record, TopicPartition

__all__ = ["CheckedSnapshot", "RestoredTask", "Restorer"]

_TICK = 0.01  # seconds


class _Topics(NamedTuple):
    """The inputs as they are now."""

    ids: tuple[str, ...]
    partitions: int


class RestoredTask(NamedTuple):
    """A task at its committed offsets."""

    task: StreamTask
    uncommitted: bool  # its offsets still have to be committed: it is new, or skipped a gap


class CheckedSnapshot(NamedTuple):
    """A snapshot after a check: the task that it holds, or why it cannot be used."""

    name: str
    task: StreamTask | None
    error: StateError | None


class Restorer:
    """Restores tasks from snapshots, if there is a store of them, and the changelog.

    `create` creates the task of a partition that has no state. `skip_gap` moves a task past a gap
    of its inputs, and returns whether it did. `warn` is called with a sentence about anything
    unusual.
    """

    def __init__(  # noqa: PLR0913 - the parts of a restore
        self,
        application: Application,
        reader: Reader,
        snapshots: SnapshotStore | None,
        create: Callable[[int], StreamTask],
        skip_gap: Callable[[StreamTask], bool],
        *,
        warn: Callable[[str], None],
    ) -> None:
        self._application, self._reader = application, reader
        self._snapshots, self._create, self._skip_gap = snapshots, create, skip_gap
        self._warn = warn

    def restore(
        self, partition: int, kept: StreamTask | None, tick: Callable[[], None] = lambda: None
    ) -> RestoredTask:
        """Restore the task of a partition, from the task in memory (`kept`) if there is one.

        That task is committed, but perhaps not up to date. `tick` is called now and then, and may
        raise to stop. Raises a StateError if offsets, snapshots and changelog disagree or records
        are lost, and a BrokerError if snapshots that are needed cannot be read now.
        """
        unread: list[str] = []

        def failed(sentence: str) -> None:
            unread.append(sentence)
            self._warn(sentence)

        topics = self._topics()
        try:
            restored = self._restored(partition, kept, topics, tick, failed)
        except _OperatorError:
            raise
        except StateError as error:
            if not unread:
                raise
            msg = (  # the missing part may be there once the store can be read again
                f"{unread[0]}; without it: {error}. Ending, to be restarted; check that state.path "
                "can be read"
            )
            raise BrokerError(msg) from error
        restored.task.identify(*topics)
        return restored

    def require_current(self, checkpoint: Checkpoint) -> None:
        """Raise a StateError if a state is not at the committed offsets of the inputs."""
        inputs, topics = self._application.input_partitions(checkpoint.partition), self._topics()
        self._require_topics(checkpoint, topics.ids)
        self._require_partitions(checkpoint.partitions, topics)
        self._require_offsets(checkpoint, [self._reader.committed(one) for one in inputs])

    def _topics(self) -> _Topics:
        inputs = self._application.inputs
        return _Topics(self._reader.topic_ids(inputs), self._reader.partition_count(inputs[0]))

    def _restored(
        self,
        partition: int,
        kept: StreamTask | None,
        topics: _Topics,
        tick: Callable[[], None],
        failed: Callable[[str], None],
    ) -> RestoredTask:
        """Restore a task and apply the changelog; create the task if nothing was committed."""
        inputs = self._application.input_partitions(partition)
        committed = [self._reader.committed(one) for one in inputs]
        log = self._application.changelog_partition(partition)
        offsets = self._reader.offset_range(log)
        task = kept or self._newest(partition, offsets, tick, failed)
        if task is None:
            if offsets.end == 0 and set(committed) == {None}:
                return self._created(partition, topics)
            if offsets.start > 0 or offsets.end == 0:
                raise _lost(self._application, log, offsets, committed)
            task = StreamTask.empty(self._application, partition)
        self._require_topics(task.checkpoint, topics.ids)
        self._apply_changelog(task, offsets.end, tick)
        if task.checkpoint.batch == 0:  # transactions were begun, and none was committed
            if set(committed) == {None}:
                return self._created(partition, topics)
            raise _lost(self._application, log, offsets, committed)
        self._require_partitions(task.checkpoint.partitions, topics)
        self._require_offsets(task.checkpoint, committed)
        return RestoredTask(task, uncommitted=self._skip_gap(task))

    def _created(self, partition: int, topics: _Topics) -> RestoredTask:
        """Create a task, unless the state of another partition is of fewer or more partitions."""
        for number in range(topics.partitions):
            if known := self._known_partitions(number):
                self._require_partitions(known, topics)
                break
        return RestoredTask(self._create(partition), uncommitted=True)

    def _known_partitions(self, number: int) -> int:
        """Return how many partitions the state of a partition says there are; 0 if it has none."""
        log = self._application.changelog_partition(number)
        offsets = self._reader.offset_range(log)
        if offsets.end == 0:
            return 0
        if last := last_changelog_record(self._reader, log, offsets):
            return last.partitions
        tasks = (one.task for one in self.checked_snapshots(number, offsets))
        return next((one.checkpoint.partitions for one in tasks if one is not None), 0)

    def _require_partitions(self, known: int, topics: _Topics) -> None:
        """Raise a StateError if partitions were added since the state began."""
        if known:
            counts = dict.fromkeys(self._application.inputs, topics.partitions)
            require_partitions(self._application, counts, known)

    def checked_snapshots(
        self,
        partition: int,
        offsets: OffsetRange,
        tick: Callable[[], None] = lambda: None,
        failed: Callable[[str], None] = lambda _: None,
    ) -> Iterator[CheckedSnapshot]:
        """Check the snapshots of a partition, newest first; each is loaded when it is wanted.

        `offsets` are those of its changelog; `tick` and `failed` are as in `SnapshotStore.newest`.
        """
        snapshots = self._snapshots
        for name, blob in snapshots.newest(partition, tick, failed) if snapshots else ():
            try:
                offset = SnapshotStore.offset(name)
                load = partial(StreamTask.from_snapshot, self._application, blob, partition, offset)
                task = _in_background(load, tick)
            except StateError as error:
                yield CheckedSnapshot(name, None, self._unfit(name, blob, error))
                continue
            if offsets.start <= offset <= offsets.end:
                yield CheckedSnapshot(name, task, None)
                continue
            log = self._application.changelog_partition(partition)
            msg = (
                f"snapshot {name} continues at {log.at(offset)}, and the changelog has "
                f"@{offsets.start} to @{offsets.end}: the records between are lost; put back a "
                f"newer snapshot, or {_rebuild(self._application)}"
            )
            yield CheckedSnapshot(name, None, _GapError(msg))

    def _newest(
        self,
        partition: int,
        offsets: OffsetRange,
        tick: Callable[[], None],
        failed: Callable[[str], None],
    ) -> StreamTask | None:
        """Load the newest usable snapshot."""
        gap: StateError | None = None
        for one in self.checked_snapshots(partition, offsets, tick, failed):
            if one.task is not None:
                return one.task
            if isinstance(one.error, _OperatorError):
                raise one.error
            if isinstance(one.error, _GapError):
                gap = gap or one.error
            else:
                self._warn(f"snapshot {one.name} is skipped: {one.error}")
        if gap is not None and offsets.start > 0:
            raise gap
        return None

    def _unfit(self, name: str, blob: bytes, error: StateError) -> StateError:
        """Separate what an operator can fix, settings and a missing key, from damage."""
        if is_keyed(blob) and self._application.key is None:
            return _OperatorError(f"snapshot {name}: {error}")
        if isinstance(error, SettingsError):
            return _OperatorError(f"snapshot {name}: {error}, or {_rebuild(self._application)}")
        return error

    def _apply_changelog(self, task: StreamTask, end: int, tick: Callable[[], None]) -> None:
        """Apply the changelog after a task's checkpoint."""
        checkpoint = task.checkpoint
        log = self._application.changelog_partition(checkpoint.partition)
        assembler = Assembler(checkpoint.batch)
        for records in self._reader.read(log, checkpoint.changelog_offset, end):
            tick()
            changes = [*_completed(assembler, log, records)]
            task.apply_many([change for _, change in changes])
            if changes:
                task.changelog_written(changes[-1][0] + 1)

    def _require_topics(self, checkpoint: Checkpoint, topics: tuple[str, ...]) -> None:
        """Raise a StateError if an input is not the topic that the state has read."""
        before = checkpoint.topic_ids
        # A state may know none, or those of more or fewer inputs.
        for name, old, new in zip(self._application.inputs, before, topics, strict=False):
            if old and new and old != new:
                msg = (
                    f"topic {name} is not the topic that the state has read: it was deleted and "
                    f"made anew, or is another topic (its id was {old}, and is {new}), so offsets "
                    "mean other records. Start a new application (kafka.application_id) on it"
                )
                raise _OperatorError(msg)

    def _require_offsets(self, checkpoint: Checkpoint, committed: Sequence[int | None]) -> None:
        """Raise a StateError if the state is not at the committed offsets.

        If they are gone (brokers delete the offsets of a group that has had no members
        for some days), the changelog decides.
        """
        inputs = self._application.input_partitions(checkpoint.partition)
        offsets = checkpoint.next_offsets[: len(committed)]
        if set(committed) == {None}:
            names = ", ".join(one.at(offset) for one, offset in zip(inputs, offsets, strict=True))
            self._warn(
                f"the group has no committed offsets any more; continuing at {names}, where "
                "the changelog ends"
            )
            return
        if tuple(committed) != offsets:
            differences = "; ".join(
                f"{one}: the state has applied all before @{state}, the group has committed "
                f"@{offset}"
                for one, state, offset in zip(inputs, offsets, committed, strict=True)
                if state != offset
            )
            msg = (
                f"state and offsets disagree: {differences}. The offsets of the group were moved, "
                "or it is another changelog; set them back, or "
                f"{_rebuild(self._application)}"
            )
            raise StateError(msg)


def _completed(
    assembler: Assembler, log: TopicPartition, records: Iterable[Record]
) -> Iterator[tuple[int, ChangelogRecord]]:
    """Yield the changelog records that records of the topic complete, with the offset of each."""
    for record in records:
        try:
            change = assembler.add(record.value or b"")
        except StateError as error:
            msg = f"{log.at(record.offset)}: {error}"
            raise StateError(msg) from None
        if change is not None:
            yield record.offset, change


def _in_background(load: Callable[[], StreamTask], tick: Callable[[], None]) -> StreamTask:
    """Load a task in a thread, so that the caller goes on meanwhile."""
    with ThreadPoolExecutor(1, thread_name_prefix="restore") as thread:
        task = thread.submit(load)
        while not wait([task], _TICK).done:
            tick()
    return task.result()


def _lost(
    application: Application,
    log: TopicPartition,
    offsets: OffsetRange,
    committed: Sequence[int | None],
) -> StateError:
    found = ", ".join("none" if one is None else f"@{one}" for one in committed)
    msg = (
        f"no snapshot can be used, and {log} has @{offsets.start} to @{offsets.end}, not all since "
        f"@0; committed are {found}. Put back a snapshot, or {_rebuild(application)}, or "
        "start with an empty state by `abers state reset CONFIG --accept-data-loss`"
    )
    return StateError(msg)


def _rebuild(application: Application) -> str:
    """Return what to do where a state is lost: routed records are in no input in their order."""
    if application.sources:
        return "start another application (kafka.application_id), which learns from the inputs"
    return "rebuild the state by `abers state rebuild CONFIG --from-inputs`"


class _GapError(StateError):
    """The changelog does not reach a snapshot."""


class _OperatorError(StateError):
    """A snapshot is of other settings, or of a key that is missing; it may be intact."""
