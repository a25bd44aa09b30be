"""Recovery of the routing of labels that carry only their ids: snapshots, and the records after.

The inputs are the log. So a routing is that of its newest snapshot before the committed offsets,
which has taken the records from there to these offsets, without writing them. Without a snapshot it
takes all records that the inputs still have.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from abers.exceptions import StateError
from abers.stream.background_snapshot import BackgroundSnapshotter
from abers_connectors.runtime.commit_note import CommitNote
from abers_connectors.runtime.label_routes import LabelRouting, RoutingPosition
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Sequence

    from abers.arrays import Integers
    from abers.serialization import Piece
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.label_keys import LabelKey, LabelKeys
    from abers_connectors.runtime.label_routes import RoutingLimits
    from abers_connectors.runtime.snapshots import SnapshotStore
    from abers_connectors.runtime.transport import CommittedOffset, Reader, Record

__all__ = ["LabelPartition", "LabelRecovery", "LabelSnapshots", "label_columns"]

_log = logging.getLogger(__name__)


@dataclass
class LabelPartition:
    """The routing of a partition, and where it is."""

    number: int
    routing: LabelRouting
    position: RoutingPosition
    since_snapshot: int = 0  # records


class LabelRecovery:
    """Restores the routing of partitions.

    `keys` reads what the routing needs of records. Without `snapshots` all records of the inputs
    are read. `tick` is called while a snapshot is read.
    """

    def __init__(  # noqa: PLR0913 - each is independent
        self,
        application: Application,
        reader: Reader,
        snapshots: SnapshotStore | None,
        *,
        limits: RoutingLimits,
        keys: LabelKeys,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._application, self._reader, self._limits = application, reader, limits
        self._snapshots, self._keys, self._tick = snapshots, keys, tick

    def restored(
        self, number: int, committed: Sequence[CommittedOffset]
    ) -> Generator[None, None, LabelPartition]:
        """Return the routing at committed offsets of observations and labels.

        It yields again and again until then.
        """
        observations, labels = committed
        end = RoutingPosition(observations.offset, labels.offset)
        routing, start = self._newest(number, end)
        for which, topic in enumerate(self._application.sources):
            log = TopicPartition(topic, number)
            first = max(start[which], self._reader.offset_range(log).start)
            if first < end[which]:
                for records in self._reader.read(log, first, end[which]):
                    self._replay(routing, records, which)
                    yield
        routing.resume(CommitNote.decoded(labels.note).waiting)
        return LabelPartition(number, routing, end)

    def _newest(self, number: int, end: RoutingPosition) -> tuple[LabelRouting, RoutingPosition]:
        """Return the routing of the newest snapshot that is not after a position, or a new one."""
        owner, key = snapshot_owner(self._application, number), self._application.key
        stored = () if self._snapshots is None else self._snapshots.newest(number, self._tick)
        for name, blob in stored:
            try:
                routing, start = LabelRouting.restore(self._limits, blob, key, owner)
            except StateError as error:
                _log.warning("%s is skipped: %s", name, error)
                continue
            if start.observations <= end.observations and start.labels <= end.labels:
                return routing, start
        return LabelRouting(self._limits, key), RoutingPosition(0, 0)

    def _replay(self, routing: LabelRouting, records: Sequence[Record], which: int) -> None:
        inputs = [which] * len(records)
        self._keys.prepare(records, inputs, self._tick)
        keys = self._keys.read(records, inputs)
        known = [key is not None for key in keys]
        if taken := [*compress(records, known)]:
            found = [key for key in keys if key is not None]
            ids, models, times = label_columns(found)
            routing.replay(taken, inputs[: len(taken)], ids, models, times)


class LabelSnapshots:
    """Saves snapshots in the background, of each partition after so many records."""

    def __init__(self, application: Application, snapshots: SnapshotStore, every: int) -> None:
        self._application, self._every = application, every
        self._saver = BackgroundSnapshotter(snapshots.save)

    def save(self, partitions: Collection[LabelPartition]) -> None:
        """Start a snapshot of the partition that needs it most, unless one is running."""
        for result in self._saver.finished():
            if result.error is not None:
                _log.warning("snapshot of the ids not saved: %s", result.error)
        due = [one for one in partitions if one.since_snapshot >= self._every]
        if not due or self._saver.busy():
            return
        one = max(due, key=lambda part: part.since_snapshot)
        one.since_snapshot = 0
        make = partial(_pieces, one, snapshot_owner(self._application, one.number))
        self._saver.start(one.number, sum(one.position), make)

    def close(self, timeout: float = 0.0) -> None:
        """Wait so many seconds for a snapshot that is not done, and abandon it then."""
        self._saver.close(timeout)


def snapshot_owner(application: Application, number: int) -> str:
    """Return what a snapshot is sealed for."""
    return str(TopicPartition(application.router_group, number))


def label_columns(
    keys: Sequence[LabelKey],
) -> tuple[Sequence[str], Sequence[str | None], Integers]:
    """Return ids, models and times, as `LabelRouting` takes them."""
    ids, times, models = zip(*keys, strict=True)
    return ids, models, np.array(times, np.int64)


def _pieces(partition: LabelPartition, owner: str) -> list[Piece]:
    return [partition.routing.snapshot(partition.position, owner)]
