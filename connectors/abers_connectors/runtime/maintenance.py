"""The background work of a service: snapshots, lag, and checks of leaders, join and losses.

`JoinCheck` checks that labels meet their observations. An early label meets its observation soon,
so the number of waiting labels stays constant. If it grows with the labels that arrive, labels and
observations lie in different partitions, and no error would ever show it.

Nothing here may stop the loop or make it fail. A snapshot that cannot be saved only makes the next
restore slower.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from abers.stream import accounts
from abers.stream.background_snapshot import BackgroundSnapshotter
from abers_connectors.process import memory_limit, memory_sentence
from abers_connectors.replay.summary import LOSSES
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abers_connectors.process import Supervisor
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.snapshots import SnapshotStore
    from abers_connectors.runtime.status import Status
    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import Consumer, Producer

__all__ = ["JoinCheck", "LossCheck", "Maintenance"]

_MIN_LABELS = 1_000
_MAX_UNMATCHED = 0.2


class _LabelCounts(NamedTuple):
    """Sums over all tasks: labels, labels without an observation, and the event time."""

    partitions: frozenset[int]
    labels: int
    unmatched: int
    clock: int


class JoinCheck:
    """Compares the labels of all tasks between two calls.

    Examples
    --------
    >>> from abers.stream import Label, Processor
    >>> from abers_connectors.runtime.application import Checkpoint
    >>> from abers_connectors.runtime.task import StreamTask
    >>> task = StreamTask(Processor(), Checkpoint("app", 0, 0, 0, (0, 0)))
    >>> join_check = JoinCheck()
    >>> join_check.check([task], 0.0)
    >>> _ = task.processor.process_many([Label(f"a{n}", n, value=1) for n in range(1000)])
    >>> join_check.check([task], 0.0)[:42]
    '1,000 of the last 1,000 labels have met no'
    """

    def __init__(self) -> None:
        self._before: _LabelCounts | None = None
        self._warned = False

    def check(self, tasks: Iterable[StreamTask], delay: float) -> str | None:
        """Return a warning, once, if over a fifth of at least 1,000 labels met no observation.

        The tasks are all of the process. `delay` is the median delay of labels, in seconds of event
        time; each comparison covers at least that time.
        """
        now, before = _counts(tasks), self._before
        if before is None or before.partitions != now.partitions or now.labels < before.labels:
            self._before = now
            return None
        labels, unmatched = now.labels - before.labels, now.unmatched - before.unmatched
        if labels < _MIN_LABELS or now.clock - before.clock < delay * 1000:
            return None
        self._before = now
        if self._warned or unmatched <= _MAX_UNMATCHED * labels:
            return None
        self._warned = True
        return (
            f"{unmatched:,} of the last {labels:,} labels have met no observation. Unless those "
            "are of observations from before the start, labels lie in other partitions than their "
            "observations: by another key, or by another partitioner (librdkafka's default is "
            "CRC32, Java's is murmur2); `abers check --connect` compares them"
        )


def _counts(tasks: Iterable[StreamTask]) -> _LabelCounts:
    labels = unmatched = clock = 0
    partitions = set()
    for task in tasks:
        counters = task.processor.counters
        labels += counters["labels_in"]
        unmatched += counters["unknown_labels"] + task.processor.waiting[1]
        clock = max(clock, task.processor.clock or 0)
        partitions.add(task.checkpoint.partition)
    return _LabelCounts(frozenset(partitions), labels, unmatched, clock)


class LossCheck:
    """Compares the accounts of all tasks with those of earlier calls.

    Each kind of loss is checked anew when enough has come since its last check, so a sentence goes
    when its cause does.

    Examples
    --------
    >>> from abers.stream import Observation, Processor
    >>> from abers_connectors.runtime.application import Checkpoint
    >>> from abers_connectors.runtime.task import StreamTask
    >>> task = StreamTask(Processor(), Checkpoint("app", 0, 0, 0, (0, 0)))
    >>> losses = LossCheck()
    >>> losses.check([task])
    []
    >>> twice = [Observation(f"a{n // 2}", n, score=0.5) for n in range(1000)]
    >>> _ = task.processor.process_many(twice)
    >>> losses.check([task])[0][:42]
    '500 of 1,000 observations had an id that w'
    """

    def __init__(self) -> None:
        self._partitions: frozenset[int] | None = None
        self._before: dict[str, dict[str, int]] = {}  # by kind
        self._found: dict[str, str] = {}  # by kind
        self._logged: set[str] = set()

    @property
    def sentences(self) -> Sequence[str]:
        """The sentences that are true now."""
        return [*self._found.values()]

    def check(self, tasks: Sequence[StreamTask]) -> list[str]:
        """Check the events since earlier calls; return the first sentence of each kind of loss.

        The tasks are all of the process.
        """
        now = accounts.total(task.accounts for task in tasks)
        partitions = frozenset(task.checkpoint.partition for task in tasks)
        if partitions != self._partitions:
            self._partitions, self._before = partitions, {one.name: now for one in LOSSES}
            return []
        new = []
        for one in LOSSES:
            before = self._before[one.name]
            since = {name: number - before.get(name, 0) for name, number in now.items()}
            if not one.tells(since):
                continue
            self._before[one.name] = now
            settings = tasks[0].processor.settings
            delays = [delay for task in tasks for delay in task.processor.late_delays]
            sentence = one.text(since, settings, delays, "toml")
            self._found.pop(one.name, None)
            if sentence is None:
                continue
            self._found[one.name] = sentence
            if one.name not in self._logged:
                self._logged.add(one.name)
                new.append(sentence)
        return new


_INTERVAL = 1.0  # seconds between two updates of the status

_log = logging.getLogger(__name__)


def crowd_sentence(tasks: Sequence[StreamTask]) -> str | None:
    """Return a warning if partitions refuse each new model; None if all have room.

    A flood of names fills them for good, and the dead letters of a new model are too few for an
    alert. A partition that retires silent models has room.

    Examples
    --------
    >>> from abers.stream import Observation, Processor, Settings
    >>> from abers_connectors.runtime.application import Checkpoint
    >>> from abers_connectors.runtime.task import StreamTask
    >>> processor = Processor(Settings(max_models=1))
    >>> task = StreamTask(processor, Checkpoint("app", 0, 0, 0, (0, 0)))
    >>> crowd_sentence([task]) is None
    True
    >>> _ = processor.process(Observation("a", 1, score=0.5))
    >>> crowd_sentence([task])[:52]
    'limits.max_models = 1 is reached in 1 of 1 partition'
    """
    full = [
        task
        for task in tasks
        if task.processor.settings.retire_after is None
        and len(task.processor.keys) >= task.processor.settings.max_models
    ]
    if not full:
        return None
    most = full[0].processor.settings.max_models
    return (
        f"limits.max_models = {most} is reached in {len(full):,} of {len(tasks):,} partitions of "
        "this process: events of a new model are bad records there; raise it, or set "
        "limits.retire_after if most of the models are junk"
    )


class Maintenance:
    """Saves snapshots in the background, and updates the status.

    A snapshot of a task is saved after `every` records, of this process or others, if there
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
        found = [*self._losses.sentences, memory, crowd_sentence(tasks)]
        self._status.update_losses([one for one in found if one is not None])
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
