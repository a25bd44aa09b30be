"""The first state of a task: empty, or from the snapshots of a replay.

Where a task starts is decided once. It is the first batch of its changelog, and from then on the
changelog decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from abers.exceptions import BrokerError, ConfigError, StateError
from abers_connectors.runtime.checkpoint import NO_OFFSET, Checkpoint, initial_state_scope
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.task import StreamTask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.transport import Reader, TopicPartition

__all__ = ["InitialState", "starting_offset"]


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
    """Return where an application begins that never ran, by `kafka.starting_offset`."""
    if start == "earliest":
        return reader.offset_range(partition).start
    if start != "latest":
        found = reader.offset_for_time(partition, start)
        if found is not None:
            return found
    return reader.last_stable_offset(partition)
