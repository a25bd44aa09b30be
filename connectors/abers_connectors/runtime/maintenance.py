"""The background work of a service: snapshots, lag, and checks of leaders, join and losses.

Nothing here may stop the loop or make it fail. A snapshot that cannot be saved only makes the next
restore slower.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from abers.stream.background_snapshot import BackgroundSnapshotter
from abers_connectors.runtime.join_check import JoinCheck
from abers_connectors.runtime.loss_check import LossCheck
from abers_connectors.runtime.memory_limit import memory_limit, memory_sentence
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.snapshots import SnapshotStore
    from abers_connectors.runtime.status import Status
    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import Consumer, Producer
    from abers_connectors.systemd import Supervisor

__all__ = ["Maintenance"]

_INTERVAL = 1.0  # seconds between two updates of the status

_log = logging.getLogger(__name__)


class Maintenance:
    """Saves snapshots in the background, and updates the status.

    A snapshot of a task is saved after `every` records, whichever processes applied them, if there
    is a store of snapshots; then `trim` is called in the background with its partition. `outputs`
    has the number of partitions of each output topic. The supervisor is notified once, when the
    service is ready. While a partition that the service reads or writes has no leader, nothing can
    be committed, so the service is not ready.
    """

    def __init__(  # noqa: PLR0913 - the parts of a service
        self,
        application: Application,
        snapshots: SnapshotStore | None,
        *,
        every: int,
        consumer: Consumer,
        producer: Producer,
        outputs: Mapping[str, int],
        status: Status,
        supervisor: Supervisor,
        trim: Callable[[int], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application, self._every = application, every
        self._consumer, self._producer, self._outputs = consumer, producer, outputs
        self._status, self._clock = status, clock
        self._snapshotter = (
            None if snapshots is None else BackgroundSnapshotter(snapshots.save, trim)
        )
        self._saving: StreamTask | None = None  # the task of the snapshot that is running
        status.snapshot_every = None if snapshots is None else every
        self._join_check, self._losses = JoinCheck(), LossCheck()
        self._updated = clock()
        self._supervisor: Supervisor | None = supervisor

    def __call__(self, tasks: Sequence[StreamTask]) -> None:
        """Do what is due: start a snapshot, report finished snapshots, update the status.

        The worker calls this after each batch.
        """
        if self._snapshotter is not None:
            self._report_snapshots(self._snapshotter)
            self._start_snapshot(self._snapshotter, tasks)
        if self._clock() - self._updated >= _INTERVAL:
            self._updated = self._clock()
            self._update_status(tasks)
            self._check_leaders(tasks)
        if self._supervisor is not None and self._status.view().ready:
            self._supervisor.ready()
            self._supervisor = None

    def close(self) -> None:
        """Abandon a snapshot that is not done."""
        if self._snapshotter is not None:
            self._snapshotter.close(0.0)

    def _start_snapshot(
        self, snapshotter: BackgroundSnapshotter, tasks: Sequence[StreamTask]
    ) -> None:
        """Start a snapshot of the task that needs it most, unless one is running."""
        due = [task for task in tasks if task.records_since_snapshot >= self._every]
        if not due or self._saving is not None or snapshotter.busy():
            return
        task = max(due, key=lambda one: one.records_since_snapshot)
        task.records_since_snapshot = 0
        make = partial(self._application.snapshot, task.processor, task.checkpoint)
        self._saving = task
        snapshotter.start(task.checkpoint.partition, task.checkpoint.changelog_offset, make)

    def _report_snapshots(self, snapshotter: BackgroundSnapshotter) -> None:
        for one in snapshotter.finished():
            self._status.snapshot_finished(saved=one.error is None)
            where = {
                "topic": self._application.changelog,
                "partition": one.partition,
                "offset": one.offset,
            }
            task, self._saving = self._saving, None
            if one.error is None:
                if task is not None:  # no other snapshot of it has begun
                    task.records_to_replay = task.records_since_snapshot
                _log.info("snapshot of %d bytes in %.1f s", one.size, one.seconds, extra=where)
            else:
                _log.warning("snapshot not saved: %s", one.error, extra=where)

    def _update_status(self, tasks: Sequence[StreamTask]) -> None:
        partitions = [
            partition
            for task in tasks
            for partition in self._application.input_partitions(task.checkpoint.partition)
        ]
        lags = {one: self._consumer.fetch_position(one).lag for one in partitions}
        self._status.update_lags({one: lag for one, lag in lags.items() if lag is not None})
        self._status.update_evidence(tasks)
        for sentence in self._losses.check(tasks):
            _log.warning(sentence)
        states = sum(self._status.view().sizes.values())
        memory = memory_sentence(states, memory_limit())
        self._status.update_losses([*self._losses.sentences, *([memory] if memory else [])])
        if warning := self._join_check.check(tasks, self._status.median_label_delay()):
            self._status.hint(warning)
            _log.warning(warning)

    def _check_leaders(self, tasks: Sequence[StreamTask]) -> None:
        """Make the service ready or not, by the leaders of all that it reads and writes."""
        used = set()
        for task in tasks:
            number = task.checkpoint.partition
            used |= {
                *self._application.input_partitions(number),
                self._application.changelog_partition(number),
                *(TopicPartition(topic, number % n) for topic, n in self._outputs.items()),
            }
        before, reason = self._status.not_ready_reason, None
        if leaderless := ", ".join(map(str, self._producer.leaderless(sorted(used)))):
            reason = f"{leaderless}: no leader, so nothing can be committed; check the brokers"
        self._status.not_ready_reason = reason
        if reason is not None and reason != before:
            _log.warning(reason)
        elif reason is None and before is not None:
            _log.info("all partitions have a leader again")
