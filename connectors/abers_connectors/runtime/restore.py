"""Restore of a task to its committed offsets, or to its first state.

A task starts empty, or from the snapshots of a replay. Where it starts is decided once. The first
batch of its changelog records that, and from then on the changelog decides.

The committed state is read first: the offsets, then the end of the changelog, open transactions
included. Only then is the state restored, from the newest usable snapshot and the changelog after
it. If state and offsets disagree, nothing is processed.

`PartitionStatus` says what a restore of a partition would start from. Reading the status changes
nothing, and damage is part of it rather than an error.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from abers.exceptions import BrokerError, ConfigError, SettingsError, StateError
from abers.serialization import is_keyed
from abers_connectors.runtime.application import NO_OFFSET, Checkpoint, initial_state_scope
from abers_connectors.runtime.partition_count import require_partitions
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.task import Assembler, StreamTask, last_changelog_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.snapshots import StoredSnapshot
    from abers_connectors.runtime.task import ChangelogRecord
    from abers_connectors.runtime.transport import OffsetRange, Reader, Record, TopicPartition

__all__ = ["InitialState", "PartitionStatus", "RestoredTask", "Restorer", "starting_offset"]


class InitialState:
    """Creates tasks that have no state yet.

    They start at the earliest or latest offsets or at a time in milliseconds, or continue from
    `initial`: snapshots that a replay saved, perhaps with another application id.
    """

    def __init__(
        self,
        application: Application,
        reader: Reader,
        start: Literal["earliest", "latest"] | int,
        initial: SnapshotStore | None = None,
    ) -> None:
        self._application, self._reader = application, reader
        self._start, self._initial = start, initial

    def create(self, partition: int) -> StreamTask:
        """Create the task of a partition at its starting offsets.

        Raises a StateError if the initial state lacks this partition, and a BrokerError if it
        cannot be read.
        """
        if self._initial is not None:
            count = self._reader.partition_count(self._application.inputs[0])
            return self._from_initial(partition, count, self._initial)
        inputs = self._application.input_partitions(partition)
        offsets = [starting_offset(self._reader, self._start, one) for one in inputs]
        first, second = [*offsets, NO_OFFSET][:2]
        return StreamTask.empty(self._application, partition, (first, second))

    def check(self, snapshots: SnapshotStore | None, partitions: int) -> None:
        """Raise what `save` would raise, and save nothing; topics need not exist yet."""
        for _ in self._first_tasks(snapshots, partitions):
            pass

    def save(self, snapshots: SnapshotStore | None, partitions: int) -> None:
        """Save the initial state, if there is one, as the first snapshot of each task.

        Raises a ConfigError without a store of snapshots, a StateError if there is state already or
        the initial state lacks a partition, and an OSError if it cannot be saved.
        """
        for store, task in self._first_tasks(snapshots, partitions):
            blob = self._application.snapshot(task.processor, task.checkpoint)
            store.save(task.checkpoint.partition, task.checkpoint.changelog_offset, blob)

    def _first_tasks(
        self, snapshots: SnapshotStore | None, partitions: int
    ) -> Iterator[tuple[SnapshotStore, StreamTask]]:
        """Yield the task of each partition in the initial state, with the store to save it in."""
        if self._initial is None:
            return
        if snapshots is None:
            why = "the initial state is saved there, and the changelog continues from it"
            raise ConfigError([f"state.path: name the folder or URL of the snapshots; {why}"])
        count = self._reader.partition_count(self._application.changelog)
        logs = map(self._application.changelog_partition, range(min(count, partitions)))
        for log in logs:
            if self._reader.offset_range(log).end:
                msg = (
                    f"{log} has state of {self._application.id} already, and an initial state is "
                    "for an application that has none; leave out --initial-state, or take another "
                    "kafka.application_id"
                )
                raise StateError(msg)
        for partition in range(partitions):
            yield snapshots, self._from_initial(partition, partitions, self._initial)

    def _from_initial(self, partition: int, count: int, initial: SnapshotStore) -> StreamTask:
        """Return the task of one of `count` partitions from the initial state."""
        app, unread = self._application, list[str]()
        for name, blob in initial.newest(partition, failed=unread.append):
            if SnapshotStore.offset(name):
                msg = (
                    f"{name} is a snapshot of a service; an initial state is what `abers replay "
                    "--save-state` saved"
                )
                raise StateError(msg)
            processor = app.restore_processor(blob, initial_state_scope(initial.app, partition))
            found = Checkpoint.from_position(processor.position)
            found = found.require(initial.app, partition, 0)
            if found.partitions not in {0, count}:
                msg = (
                    f"the initial state is of {found.partitions} partitions, and {app.inputs[0]} "
                    f"has {count}; replay topics with as many"
                )
                raise StateError(msg)
            checkpoint = msgspec.structs.replace(found, application_id=app.state_id, batch=0)
            return StreamTask(processor, checkpoint)
        if unread:
            msg = f"the initial state: {unread[0]}; check that it can be read, and start again"
            raise BrokerError(msg)
        msg = (
            f"the initial state has no snapshot of partition {partition}; replay all partitions "
            "into it"
        )
        raise StateError(msg)


def starting_offset(
    reader: Reader, start: Literal["earliest", "latest"] | int, partition: TopicPartition
) -> int:
    """Return the offset at which a new application begins, by `kafka.starting_offset`."""
    if start == "earliest":
        return reader.offset_range(partition).start
    if start != "latest":
        found = reader.offset_for_time(partition, start)
        if found is not None:
            return found
    return reader.last_stable_offset(partition)


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
    """A snapshot after a check: its task, or why it cannot be used."""

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
        """Return the number of partitions in the state of a partition; 0 without state."""
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
        f"@0; the group has committed {found}. Put back a snapshot, or {_rebuild(application)}, or "
        "start with an empty state by `abers state reset CONFIG --accept-data-loss`"
    )
    return StateError(msg)


def _rebuild(application: Application) -> str:
    """Return what to do after a loss of state: no input has routed records in their order."""
    if application.sources:
        return "start another application (kafka.application_id), which learns from the inputs"
    return "rebuild the state by `abers state rebuild CONFIG --from-inputs`"


class _GapError(StateError):
    """The changelog does not reach a snapshot."""


class _OperatorError(StateError):
    """An operator must act: other settings, a missing key, another topic. The state may be fine."""


class SnapshotStatus(msgspec.Struct, frozen=True):
    """A snapshot, and why it cannot be used; None if it can."""

    name: str
    offset: int
    size: int
    unfit: str | None


class PartitionStatus(msgspec.Struct, frozen=True):
    """Offsets, changelog and snapshots of a partition, and what a restore would start from."""

    partition: int
    committed: dict[str, int | None]
    changelog: str
    start: int
    end: int
    snapshots: list[SnapshotStatus]
    unread: list[str]
    restore: str

    @classmethod
    def of(  # noqa: PLR0913, PLR0917 - all that belongs to a partition
        cls,
        partition: int,
        committed: dict[str, int | None],
        changelog: tuple[str, OffsetRange],
        stored: Iterable[StoredSnapshot],
        checked: Iterable[CheckedSnapshot],
        unread: list[str],
    ) -> PartitionStatus:
        """Put the status together.

        `committed` are the offsets of the input partitions, and `changelog` is the name of that
        partition with its offsets. `stored` are all snapshots, `checked` those of this partition.
        `unread` has a sentence for everything that could not be read; iterating `checked` may add
        to it.
        """
        log, offsets = changelog
        unfit = {one.name: None if one.error is None else str(one.error) for one in checked}
        snapshots = [
            SnapshotStatus(one.name, one.offset, one.size, unfit.get(one.name, "it cannot be read"))
            for one in stored
            if one.partition == partition
        ]
        good = next((one for one in snapshots if one.unfit is None), None)
        if good is not None:
            restore = f"snapshot {good.name} and the changelog from @{good.offset} on"
        elif offsets.end == 0 and {*committed.values()} == {None}:
            restore = (
                "nothing: there is no state yet, and it begins where kafka.starting_offset says"
            )
        elif offsets.start == 0 < offsets.end:
            restore = "the changelog from its beginning"
        elif unread:
            restore = "nothing while the snapshots cannot be read: the changelog lost its beginning"
        else:
            restore = "nothing: no snapshot can be used, and the changelog lost its beginning"
        return cls(partition, committed, log, *offsets, snapshots, unread, restore)
