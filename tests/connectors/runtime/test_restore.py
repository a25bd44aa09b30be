from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from msgspec import structs
from tests.connectors.runtime.restorers import APPLICATION, BATCH, Log, restorer, still

from abers.exceptions import StateError
from abers_connectors.runtime.application import Checkpoint
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.task import StreamTask
from abers_connectors.runtime.transport import OffsetRange

if TYPE_CHECKING:
    from pathlib import Path

    from abers_connectors.runtime.transport import TopicPartition

PATIENCE = 60.0  # seconds


def kept(*topic_ids: str) -> StreamTask:
    """Return the task of the batch, with the ids of the topics that it has read."""
    checkpoint = Checkpoint("app", 0, 1, 1, (5, -1), topic_ids)
    return StreamTask(APPLICATION.new_processor(), checkpoint)


@pytest.mark.parametrize("ids", [(), ("",), ("id of observations",), ("id of observations", "b")])
def test_a_restore_of_known_topics(ids: tuple[str, ...], tmp_path: Path) -> None:
    """Ids that are unknown, equal, or of an input that is no longer there, stop no restore."""
    restoring = restorer(Log(0, 1, BATCH), SnapshotStore(str(tmp_path), "app"), print)
    task, _ = restoring.restore(0, kept(*ids), still)
    assert task.checkpoint.topic_ids == ("id of observations",)


def test_a_restore_of_another_topic(tmp_path: Path) -> None:
    """A state that has read another topic is refused, and both ids are named."""
    restoring = restorer(Log(0, 1, BATCH), SnapshotStore(str(tmp_path), "app"), print)
    with pytest.raises(
        StateError, match=r"the state has read.* was another id.*id of observations"
    ):
        restoring.restore(0, kept("another id"), still)


class Grown(Log):
    """The topics of an application of one partition, after another one was added."""

    def partition_count(self, topic: str) -> int:
        """Return the new number."""
        del topic
        return 2

    def committed(self, partition: TopicPartition) -> int | None:  # type: ignore[override]
        """Return no offset of the new partition."""
        return None if partition.partition else super().committed(partition)

    def offset_range(self, partition: TopicPartition) -> OffsetRange:
        """Return an empty changelog of the new partition."""
        return OffsetRange(0, 0) if partition.partition else super().offset_range(partition)


@pytest.mark.parametrize("partition", [0, 1], ids=["with a state", "added"])
@pytest.mark.parametrize("known_by", ["changelog", "snapshot"])
def test_no_restore_after_partitions_were_added(
    partition: int, known_by: str, tmp_path: Path
) -> None:
    """The state says how many partitions there were, and no other partition begins anew."""
    snapshots, written = SnapshotStore(str(tmp_path), "app"), BATCH
    if known_by == "changelog":
        written = structs.replace(BATCH, partitions=1)
    else:
        checkpoint = Checkpoint("app", 0, 1, 1, (5, -1), partitions=1)
        blob = APPLICATION.snapshot(APPLICATION.new_processor(), checkpoint)
        snapshots.save(0, 1, blob)
    start = 0 if known_by == "changelog" else 1
    restoring = restorer(Grown(start, 1, written), snapshots, print)
    with pytest.raises(
        StateError, match="the state of app is of 1 partitions, and observations has 2"
    ):
        restoring.restore(partition, None, still)


def test_a_slow_download_ticks() -> None:
    """A restore ticks for each piece of a large snapshot."""
    snapshots, ticks = SnapshotStore(f"memory://{uuid4().hex}", "app"), list[int]()
    snapshots.save(0, 1, bytes(4 << 20))
    task, _ = restorer(Log(0, 1, BATCH), snapshots, lambda _: None).restore(
        0, None, lambda: ticks.append(1)
    )
    assert task.checkpoint.batch == 1
    assert len(ticks) >= 4 + 1  # one for each MiB, and one for the changelog


class Loading:
    """A load of a snapshot that waits for the second of two events."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace the load."""
        self.began, self.ticked = threading.Event(), threading.Event()
        monkeypatch.setattr(StreamTask, "from_snapshot", self._load)
        self.snapshots = SnapshotStore(f"memory://{uuid4().hex}", "app")
        self.snapshots.save(0, 1, b"a snapshot")

    def _load(self, *_: object) -> StreamTask:
        self.began.set()
        assert self.ticked.wait(PATIENCE)
        return kept()

    def tick(self) -> bool:
        """Let the load end if it has begun, and return whether it had."""
        if self.began.is_set():
            self.ticked.set()
        return self.began.is_set()


def test_the_load_of_a_snapshot_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a snapshot is loaded, the caller goes on."""
    loading = Loading(monkeypatch)
    restoring = restorer(Log(0, 1, BATCH), loading.snapshots, print)

    def go_on() -> None:
        loading.tick()

    task, _ = restoring.restore(0, None, go_on)
    assert task.checkpoint.next_offsets == (5, -1)


def test_a_caller_that_stops_while_a_snapshot_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the caller ends the restore."""
    loading = Loading(monkeypatch)

    def stop() -> None:
        if loading.tick():
            raise InterruptedError

    with pytest.raises(InterruptedError):
        restorer(Log(0, 1, BATCH), loading.snapshots, print).restore(0, None, stop)
