"""The state of a stopped task, as bytes by model that are moved and not loaded.

If the changelog ends where the newest snapshot was made, the bytes of the snapshot are the state.
Otherwise the task is restored, as a service restores it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from abers.exceptions import StateError
from abers.stream.snapshot import Snapshot, read, require_settings
from abers.version import __version__
from abers_connectors.runtime.checkpoint import Checkpoint, snapshot_scope
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.transport import OffsetRange

if TYPE_CHECKING:
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.restore import Restorer
    from abers_connectors.runtime.transport import Reader

__all__ = ["SavedTask", "SavedTasks"]


class SavedTask(NamedTuple):
    """The checkpoint of a task, and its state."""

    checkpoint: Checkpoint
    state: Snapshot


class SavedTasks:
    """Reads the states of the tasks of an application that has stopped."""

    def __init__(
        self,
        application: Application,
        reader: Reader,
        snapshots: SnapshotStore,
        restorer: Restorer,
    ) -> None:
        self._application, self._reader = application, reader
        self._snapshots, self._restorer = snapshots, restorer

    def read(self, partition: int) -> SavedTask:
        """Return the state of a partition at its committed offsets.

        Raises what `Restorer.restore` raises.
        """
        if (found := self._stored(partition)) is not None:
            self._restorer.require_current(found.checkpoint)
            return found
        return self._restored(partition)

    def _stored(self, partition: int) -> SavedTask | None:
        """Return the newest snapshot, if nothing follows it and nothing has to be loaded."""
        for name, blob in self._snapshots.newest(partition):
            try:
                found = self._decoded(blob, partition, SnapshotStore.offset(name))
                require_settings(found.state.settings, self._application.settings)
            except StateError:  # which the restore explains
                return None
            latest = found.state.version == __version__
            return found if latest and self._is_last(found.checkpoint) else None
        return None

    def _is_last(self, checkpoint: Checkpoint) -> bool:
        """Return whether the changelog has no record behind a checkpoint."""
        log = self._application.changelog_partition(checkpoint.partition)
        start, end = self._reader.offset_range(log)
        if not start <= checkpoint.changelog_offset <= end:
            return False
        follow = OffsetRange(checkpoint.changelog_offset, end)
        return not any(map(len, self._reader.read(log, *follow)))

    def _restored(self, partition: int) -> SavedTask:
        task = self._restorer.restore(partition, None).task
        blob = b"".join(self._application.snapshot(task.processor, task.checkpoint))
        return self._decoded(blob, partition, task.checkpoint.changelog_offset)

    def _decoded(self, blob: bytes, partition: int, changelog_offset: int) -> SavedTask:
        identity = (self._application.state_id, partition, changelog_offset)
        state = read(blob, self._application.key, snapshot_scope(*identity))
        checkpoint = Checkpoint.from_position(state.position).require(*identity)
        # Limits may have changed since; the states of all tasks have those of today.
        current = msgspec.structs.replace(state, settings=self._application.settings)
        return SavedTask(checkpoint, current)
