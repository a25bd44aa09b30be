"""The states of tasks in another number of partitions: split by model, and joined anew.

`SavedTasks` reads the state of a stopped task, as bytes by model that are moved and not loaded. If
the changelog ends where the newest snapshot was made, the bytes of the snapshot are the state.
Otherwise the task is restored, as a service restores it.

A partition owns a range of slots, before and after. So an old state goes to the few new partitions
that its range meets, and a new one is complete when the last old one that it meets was read.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from abers.exceptions import StateError
from abers.stream.repartition import event_counts, join, require_few, split
from abers.stream.snapshot import Snapshot, read, require_settings
from abers.version import __version__
from abers_connectors.runtime.application import Checkpoint, RecordCounts, snapshot_scope
from abers_connectors.runtime.slots import owners_of, partition_of, slots_of
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.transport import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.restore import Restorer
    from abers_connectors.runtime.transport import Reader

__all__ = ["RescaledTask", "SavedTask", "SavedTasks", "rescaled"]


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
        require_settings(state.settings, self._application.settings)
        checkpoint = Checkpoint.from_position(state.position).require(*identity)
        # Limits may have changed since; the states of all tasks have those of today.
        current = msgspec.structs.replace(state, settings=self._application.settings)
        return SavedTask(checkpoint, current)


class RescaledTask(NamedTuple):
    """The state of a new partition, or a part of it, and the records that it counts."""

    partition: int
    state: Snapshot
    counts: RecordCounts


def rescaled(
    saved: Iterable[SavedTask], before: int | None, after: int, inputs: int
) -> Iterator[RescaledTask]:
    """Yield the states of `after` partitions, ascending, each as soon as it is complete.

    Parameters
    ----------
    saved
        The old states, by partition, ascending; each is read when it is wanted.
    before
        Number of old partitions, which own ranges of slots; None if models may be in any.
    after
        Number of new partitions.
    inputs
        Number of topics of observations and labels, 1 or 2.

    Raises
    ------
    StateError
        If a model is in several old states, or in one that does not own its slot, or states do not
        fit together.
    SettingsError
        If a new partition would have more models than `limits.max_models`.
    """
    parts: dict[int, list[RescaledTask]] = defaultdict(list)
    following = 0
    for one in saved:
        met = range(after)
        if before is not None:
            met = owners_of(slots_of(one.checkpoint.partition, before), after)
        for part in _divided(one, met, after, inputs):
            parts[part.partition].append(part)
        if before is not None:
            yield from (_joined(parts.pop(number), after) for number in range(following, met[-1]))
            following = met[-1]
    yield from (_joined(parts.pop(number), after) for number in range(following, after))


def _divided(one: SavedTask, met: range, after: int, inputs: int) -> Iterator[RescaledTask]:
    """Yield the parts of an old state that new partitions get."""

    def owner(model: str) -> int:
        number = partition_of(model, after)
        if number not in met:
            raise _misplaced(model, one.checkpoint.partition)
        return number - met[0]

    states = split(one.state, len(met), owner)
    counts = _counts(one.checkpoint.counts, [event_counts(state) for state in states], inputs)
    return map(RescaledTask, met, states, counts)


def _counts(
    whole: RecordCounts, events: Sequence[tuple[int, int]], inputs: int
) -> list[RecordCounts]:
    """Return the records of each part; `events` has its observations and labels.

    Records that are no events count in the first part, as do all that have ended.
    """
    others = [one if inputs > 1 else (sum(one), 0) for one in events[1:]]
    moved = [sum(column) for column in zip((0, 0), *others, strict=True)]
    records = (whole.records[0] - moved[0], whole.records[1] - moved[1])
    return [msgspec.structs.replace(whole, records=records), *map(RecordCounts, others)]


def _joined(parts: Sequence[RescaledTask], after: int) -> RescaledTask:
    """Return a new partition from its parts."""
    number = parts[0].partition
    try:
        state = join([one.state for one in parts]) if len(parts) > 1 else parts[0].state
    except StateError as error:
        msg = (
            f"partition {number} of {after}: {error}; choose more partitions, or start another "
            "application (kafka.application_id) with kafka.route_by, which learns from the inputs"
        )
        raise StateError(msg) from error
    require_few(state, "toml")
    return RescaledTask(number, state, reduce(RecordCounts.together, [one.counts for one in parts]))


def _misplaced(model: str, partition: int) -> StateError:
    msg = (
        f"model {model} is in the state of partition {partition}, which does not own its slot: "
        "another program has written to the routed topic. Forget it by `abers state reset "
        f"CONFIG --partition {partition} --model MODEL --accept-data-loss`, then repeat"
    )
    return StateError(msg)
