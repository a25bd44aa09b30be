"""When snapshots are made, and when a missing leader makes the service unready."""

from __future__ import annotations

import json
import logging
from itertools import count
from typing import TYPE_CHECKING, cast

import pytest
from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served
from tests.connectors.runtime.test_status import observed

from abers.stream import Settings
from abers_connectors.process import Supervisor
from abers_connectors.runtime.application import Application, Checkpoint, snapshot_scope
from abers_connectors.runtime.maintenance import Maintenance
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.status import Status
from abers_connectors.runtime.task import ChangelogRecord, StreamTask
from abers_connectors.runtime.transport import FetchPosition, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from abers_connectors.runtime.transport import Consumer, Producer

APPLICATION = Application(
    "app", ["observations", "labels"], "changelog", Settings(), outcomes=False, key=None
)
EVERY = 100


def batch(number: int, records: int) -> ChangelogRecord:
    """Return a batch of records of which none is an event."""
    return ChangelogRecord("0", number, (10 * (number + 1), 0), bytes(records), b"", [], None)


def restored(snapshots: SnapshotStore, batches: list[ChangelogRecord]) -> StreamTask:
    """Restore a task from the newest snapshot and the batches after it."""
    task = StreamTask(APPLICATION.new_processor(), Checkpoint("app", 0, 0, 0, (0, 0)))
    for name, blob in snapshots.newest(0):
        processor = APPLICATION.restore_processor(
            blob, snapshot_scope("app", 0, snapshots.offset(name))
        )
        task = StreamTask(processor, Checkpoint.from_position(processor.position))
        break
    for one in batches[task.checkpoint.batch :]:
        task.apply(one)
        task.changelog_written(one.number + 1)
    return task


def saving(snapshots: SnapshotStore, status: Status) -> Maintenance:
    """Return the maintenance of a service that saves snapshots."""
    return Maintenance(
        APPLICATION,
        snapshots,
        every=EVERY,
        consumer=cast("Consumer", None),  # unused while the clock stands still
        producer=cast("Producer", None),
        outputs={},
        status=status,
        supervisor=Supervisor({}),
        clock=lambda: 0.0,
    )


@pytest.mark.parametrize("restarts", [(), (1, 3, 5, 7), range(10)])
def test_a_restart_does_not_reset_the_count(restarts: tuple[int, ...], tmp_path: Path) -> None:
    """Snapshots are `state.snapshot_every` records apart, whichever processes applied them."""
    snapshots = SnapshotStore(str(tmp_path), "app", keep=99)
    batches: list[ChangelogRecord] = []
    task = restored(snapshots, batches)
    for number in range(10):
        if number in restarts:
            task = restored(snapshots, batches)
        maintenance = saving(snapshots, Status(60.0))
        batches.append(batch(number, 40))
        task.apply(batches[-1])
        task.changelog_written(number + 1)
        maintenance([task])
        # The snapshot is saved in the background.
        while task.records_since_snapshot == 0 and number + 1 not in {
            one.offset for one in snapshots.stored()
        }:
            pass
    assert [one.offset for one in snapshots.stored()] == [9, 6, 3]


def test_records_to_replay(tmp_path: Path) -> None:
    """A saved snapshot leaves the records to replay that came since it began."""
    snapshots, status = SnapshotStore(str(tmp_path), "app"), Status(60.0)
    task, maintenance = restored(snapshots, []), saving(snapshots, status)
    task.apply(batch(0, EVERY))
    maintenance([task])
    assert task.records_to_replay == EVERY  # the snapshot is not saved yet, as far as is known
    task.apply(batch(1, 40))
    maintenance._snapshotter.close()  # type: ignore[union-attr]
    maintenance([task])
    assert task.records_to_replay == 40
    assert status.snapshot_every == EVERY


SENTENCE = "changelog[3]: no leader, so nothing can be committed; check the brokers"


class Cluster:
    """A producer and consumer of a cluster some of whose partitions have no leader."""

    def __init__(self) -> None:
        self.checked = list[TopicPartition]()
        self.without_leader = set[TopicPartition]()

    def leaderless(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions without a leader."""
        self.checked = [*partitions]
        return [one for one in partitions if one in self.without_leader]

    def fetch_position(self, partition: TopicPartition) -> FetchPosition:
        """Return an unknown position."""
        del partition
        return FetchPosition(None, None)


def maintenance_of(cluster: Cluster, status: Status, clock: Callable[[], float]) -> Maintenance:
    """Return the maintenance of a service without snapshots, with an output of two partitions."""
    return Maintenance(
        APPLICATION,
        None,
        every=EVERY,
        consumer=cast("Consumer", cluster),
        producer=cast("Producer", cluster),
        outputs={"out": 2},
        status=status,
        supervisor=Supervisor({}),
        clock=clock,
    )


def test_not_ready_while_a_leader_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    """A service whose changelog has no leader is not ready, with a hint, until it has one."""
    cluster, status, now = Cluster(), Status(60.0), [0.0]
    status.seats["tasks"].joined, status.seats["tasks"].last_heartbeat = True, 0.0
    maintenance, tasks = maintenance_of(cluster, status, lambda: now[0]), [Served(3)]

    def checked() -> tuple[bool, list[str]]:
        now[0] += 1.0
        maintenance(tasks)
        return status.view().ready, status.view().hints

    with caplog.at_level(logging.INFO):
        assert checked() == (True, [])
        needed = [("changelog", 3), ("labels", 3), ("observations", 3), ("out", 1)]
        assert cluster.checked == needed
        cluster.without_leader = {TopicPartition("changelog", 3), TopicPartition("changelog", 4)}
        assert checked() == checked() == (False, [SENTENCE])
        cluster.without_leader = {TopicPartition("changelog", 4)}
        assert checked() == (True, [])
    assert caplog.messages == [SENTENCE, "all partitions have a leader again"]


def test_losses_are_hints_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """What is lost has a hint with the remedy as long as it is true, and one line in the log."""
    status, seconds = Status(60.0), count(start=10, step=10)
    maintenance = maintenance_of(Cluster(), status, lambda: next(seconds))
    task = Served(0)
    with caplog.at_level(logging.WARNING):
        maintenance([task])
        for begin in (0, 2_000):
            twice = [observed(f"a{(begin + n) // 2}", 1_000 + begin + n) for n in range(2_000)]
            task.take(*twice)
            maintenance([task])
            (hint,) = status.view().hints
            assert hint.startswith("1,000 of 2,000 observations had an id that was there before")
        task.take(*(observed(f"b{n}", 9_000 + n) for n in range(1_000)))
        maintenance([task])
    assert status.view().hints == []
    assert len(caplog.records) == 1


def test_no_room_for_another_model() -> None:
    """A partition that refuses new models has a hint until it has room; one that retires has none.

    The dead letters of a flood of names end with it, and those of a new model would be too few for
    an alert.
    """
    status, seconds = Status(60.0), count(start=10, step=10)
    maintenance = maintenance_of(Cluster(), status, lambda: next(seconds))
    full = Served(0, flags={"limits.max_models": 2})
    roomy = Served(1, flags={"limits.max_models": 2})
    retiring = Served(2, flags={"limits.max_models": 2, "limits.retire_after": "1d"})
    for task in (full, roomy, retiring):
        names = ["a"] if task is roomy else ["a", "b", "c"]
        task.take(*(_of_model(name) for name in names))
    maintenance([full, roomy, retiring])
    (hint,) = status.view().hints
    assert hint == (
        "limits.max_models = 2 is reached in 1 of 3 partitions of this process: events of a new "
        "model are bad records there; raise it, or set limits.retire_after if most of the models "
        "are junk"
    )
    maintenance([roomy, retiring])
    assert status.view().hints == []


def _of_model(name: str) -> Read:
    """Return an observation of a model."""
    return Read(json.dumps({"id": "x", "time": 1, "model": name, "score": 0.5}).encode())


def test_leaders_are_checked_once_a_second() -> None:
    """The leaders are checked once a second, however often the loop turns."""
    cluster, now = Cluster(), [0.0]
    maintenance = maintenance_of(cluster, Status(60.0), lambda: now[0])
    maintenance([Served(0)])
    assert cluster.checked == []
    now[0] = 1.0
    maintenance([Served(0)])
    assert cluster.checked != []
