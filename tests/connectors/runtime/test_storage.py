"""Storages that fail with errors of their own, or hang.

Each storage is an fsspec file system that is registered here, so the tests show how the calls of
fsspec are used, and none waits longer than a call may take.
"""

from __future__ import annotations

import gc
import logging
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import uuid4

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractBufferedFile
from tests.connectors.runtime.restorers import APPLICATION, BATCH, Log, restorer, still

from abers.exceptions import BrokerError
from abers.stream.background_snapshot import BackgroundSnapshotter
from abers_connectors.kafka.topic_watch import ChangelogTrimmer
from abers_connectors.process import Supervisor
from abers_connectors.runtime.application import Checkpoint
from abers_connectors.runtime.maintenance import Maintenance
from abers_connectors.runtime.restore import PartitionStatus
from abers_connectors.runtime.snapshots import (
    SnapshotStore,
    Storage,
    StorageError,
    StorageTimeoutError,
)
from abers_connectors.runtime.status import Status
from abers_connectors.runtime.task import StreamTask
from abers_connectors.runtime.transport import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.runtime.transport import Consumer, Producer

CALLS = ["ls", "_open", "mv", "rm_file", "makedirs"]
TIMEOUT = 60.0


class ClientError(Exception):
    """An error like those of botocore, which are not OSErrors."""


class Failing(MemoryFileSystem):  # type: ignore[misc]
    """A storage whose calls can be made to fail, or to hang until the end of the test."""

    protocol = "failing"
    cachable = False
    failing: ClassVar[set[str]] = set()
    hangs: ClassVar[Event | None] = None

    def __init__(self, *args: Any, **more: Any) -> None:  # noqa: ANN401 - as fsspec has it
        """Connect."""
        super().__init__(*args, **more)
        self._fail("connect")

    def _fail(self, call: str) -> None:
        if call not in self.failing:
            return
        if self.hangs is not None:
            self.hangs.wait(TIMEOUT)
            return
        msg = f"An error occurred (403) when calling the {call} operation: Forbidden"
        raise ClientError(msg)

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
        """Return a method that may fail."""
        found = super().__getattribute__(name)
        if name not in CALLS:
            return found

        def failing_call(*args: Any, **more: Any) -> Any:  # noqa: ANN401
            self._fail(name)
            return found(*args, **more)

        return failing_call


@pytest.fixture
def failing() -> Iterator[set[str]]:
    """Return the set of calls that fail, which is empty."""
    fsspec.register_implementation("failing", Failing, clobber=True)
    Failing.failing = set()
    yield Failing.failing
    Failing.failing = set()


@pytest.fixture
def hanging(failing: set[str]) -> Iterator[set[str]]:
    """Return the set of calls that hang until the end of the test, which is empty."""
    Failing.hangs = Event()
    yield failing
    Failing.hangs.set()
    Failing.hangs = None


def url() -> str:
    """Return the URL of a new storage."""
    return f"failing://{uuid4().hex}"


@pytest.mark.parametrize("call", CALLS)
def test_an_error_of_the_storage_is_an_oserror(call: str, failing: set[str]) -> None:
    """Whatever call fails while saving or removing, it is an OSError with the original message."""
    snapshots = SnapshotStore(url(), "app", keep=1)
    snapshots.save(0, 1, b"old")
    failing.add(call)
    with pytest.raises(OSError, match=rf"ClientError: .*\(403\).* {call} operation: Forbidden"):
        snapshots.save(0, 2, b"new")  # the old one is one too many
    failing.clear()
    assert [blob for _, blob in snapshots.newest(0)][-1] == b"old"


class Upload(AbstractBufferedFile):  # type: ignore[misc]
    """A file that is sent in blocks, like those of buckets; closing it sends the rest."""

    sent: ClassVar[list[bool]] = []

    def _initiate_upload(self) -> None:
        """Do nothing."""

    def _upload_chunk(self, final: bool = False) -> None:  # noqa: FBT001, FBT002 - as fsspec has it
        self.sent.append(final)


class Bucket(MemoryFileSystem):  # type: ignore[misc]
    """A storage to which files are sent in blocks."""

    protocol = "bucket"
    cachable = False

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Upload:  # noqa: ANN401
        """Open a file for writing."""
        return Upload(self, path, mode, block_size=more["block_size"])


def test_an_abandoned_file_is_not_sent() -> None:
    """The rest of an abandoned snapshot is not sent, even when its file is garbage-collected."""
    fsspec.register_implementation("bucket", Bucket, clobber=True)
    snapshots = SnapshotStore(f"bucket://{uuid4().hex}", "app")
    Upload.sent.clear()

    def broken() -> Iterator[bytes]:
        yield bytes(9 << 20)
        raise LookupError

    with pytest.raises(LookupError):
        snapshots.save(0, 1, broken())
    gc.collect()
    assert Upload.sent == [False]


@pytest.mark.parametrize("call", ["ls", "_open"])
def test_unreadable_snapshots_are_skipped(call: str, failing: set[str]) -> None:
    """A storage that fails with an error of its own has no snapshots, with a warning."""
    snapshots, warnings = SnapshotStore(url(), "app"), list[str]()
    snapshots.save(0, 1, b"one")
    failing.add(call)
    assert [*snapshots.newest(0, failed=warnings.append)] == []
    (sentence,) = warnings
    assert "cannot be" in sentence
    assert "ClientError: An error occurred (403)" in sentence


def test_an_unreachable_storage_is_tried_again(failing: set[str]) -> None:
    """If connecting fails, that is no error; each later call tries again."""
    failing.add("connect")
    snapshots, warnings = SnapshotStore(url(), "app"), list[str]()
    assert [*snapshots.newest(0, failed=warnings.append)] == []
    assert "ClientError" in warnings[0]
    with pytest.raises(StorageError, match="ClientError"):
        snapshots.save(0, 1, b"x")
    failing.clear()
    snapshots.save(0, 1, b"x")
    assert [blob for _, blob in snapshots.newest(0)] == [b"x"]


@pytest.mark.parametrize("call", ["connect", "ls", "_open"])
def test_a_storage_that_hangs_during_a_read(call: str, hanging: set[str]) -> None:
    """A storage without an answer is skipped completely, and nothing ticks meanwhile."""
    place, warnings, ticks = url(), list[str](), list[int]()
    for offset in (1, 2):
        SnapshotStore(place, "app").save(0, offset, b"x")
    hanging.add(call)
    snapshots = SnapshotStore(place, "app", timeout=0.2)
    assert [*snapshots.newest(0, lambda: ticks.append(1), warnings.append)] == []
    (sentence,) = warnings
    assert sentence.endswith("there was no answer for 0.2 s")
    assert ticks == []


@pytest.mark.parametrize("call", ["_open", "mv"])
def test_a_save_that_hangs_is_abandoned(call: str, hanging: set[str]) -> None:
    """A save that hangs is abandoned, and counts as failed."""
    place = url()
    stores = [SnapshotStore(place, "app"), SnapshotStore(place, "app", timeout=0.02)]

    def save(partition: int, offset: int, pieces: Iterator[bytes]) -> None:
        stores[-1].save(partition, offset, pieces)

    saver = BackgroundSnapshotter(save)
    hanging.add(call)
    saver.start(0, 1, lambda: [b"x"])
    saver.close(TIMEOUT)
    (saved,) = saver.finished()
    assert saved.error == "StorageTimeoutError: there was no answer for 0.2 s"
    assert not saver.busy()
    hanging.clear()
    stores.pop()
    saver.start(0, 2, lambda: [b"y"])
    saver.close(TIMEOUT)
    assert saver.finished()[0].error is None
    assert next(stores[-1].newest(0))[1] == b"y"


def test_a_save_that_hangs_is_counted(hanging: set[str]) -> None:
    """The service counts an abandoned snapshot, which its alert needs."""
    status = Status(60.0)
    maintenance = Maintenance(
        APPLICATION,
        SnapshotStore(url(), "app", timeout=0.02),
        every=1,
        consumer=cast("Consumer", None),  # unused while the clock stands still
        producer=cast("Producer", None),
        outputs={},
        status=status,
        supervisor=Supervisor({}),
        clock=lambda: 0.0,
    )
    hanging.add("mv")
    task = StreamTask(APPLICATION.new_processor(), Checkpoint("app", 0, 1, 1, (5, -1)))
    task.records_since_snapshot = task.records_to_replay = 1
    maintenance([task])
    assert task.records_since_snapshot == 0
    maintenance._snapshotter.close(TIMEOUT)  # type: ignore[union-attr]
    maintenance([task])
    assert status.view().counts.snapshots == {"failed": 1}
    assert task.records_to_replay == 1


def test_calls_that_hang_do_not_pile_up(hanging: set[str]) -> None:
    """While many calls hang, further ones fail at once."""
    storage = Storage(url(), timeout=0.01)
    hanging.add("ls")
    for _ in range(8):
        with pytest.raises(StorageTimeoutError, match=r"no answer for 0\.01 s"):
            storage.entries("/x")
    with pytest.raises(StorageTimeoutError, match="8 earlier calls have not returned yet"):
        storage.entries("/x")
    hanging.clear()
    assert Failing.hangs is not None
    Failing.hangs.set()
    for one in storage._stuck:
        one.join(TIMEOUT)
    storage._timeout = TIMEOUT
    assert storage.entries("/x") == []


def test_a_changelog_is_not_trimmed(failing: set[str], caplog: pytest.LogCaptureFixture) -> None:
    """If the oldest snapshot cannot be read, the changelog is not trimmed, with a warning."""
    snapshots = SnapshotStore(url(), "app")
    failing.add("ls")
    with caplog.at_level(logging.WARNING):
        ChangelogTrimmer(APPLICATION, snapshots, {}).trim(0)
    assert "changelog not trimmed: snapshots of partition 0 cannot be" in caplog.text
    assert "ClientError" in caplog.text


def test_status_with_a_failing_storage() -> None:
    """The status of a partition says why the snapshots are missing, and the consequence."""
    found = PartitionStatus.of(
        0, {"observations[0]": 7}, ("log[0]", OffsetRange(3, 9)), [], [], ["cannot be listed"]
    )
    assert found.unread == ["cannot be listed"]
    assert found.restore.startswith("nothing while the snapshots cannot be read")


# Restoring


@pytest.mark.parametrize("call", ["ls", "_open"])
def test_a_restore_continues_with_the_changelog(call: str, failing: set[str]) -> None:
    """A complete changelog is enough if the storage fails with an error of its own."""
    snapshots, warnings = SnapshotStore(url(), "app"), list[str]()
    snapshots.save(0, 1, b"a snapshot")
    failing.add(call)
    task, fresh = restorer(Log(0, 1, BATCH), snapshots, warnings.append).restore(0, None, still)
    assert task.checkpoint == Checkpoint("app", 0, 1, 1, (5, -1), ("id of observations",), 1)
    assert not fresh
    assert len(warnings) == 1
    assert "ClientError" in warnings[0]


def test_a_restore_with_a_storage_that_hangs(hanging: set[str]) -> None:
    """A storage without an answer is skipped too, and the changelog is read."""
    place, warnings = url(), list[str]()
    SnapshotStore(place, "app").save(0, 1, b"a snapshot")
    snapshots = SnapshotStore(place, "app", timeout=0.1)
    hanging.add("ls")
    task, _ = restorer(Log(0, 1, BATCH), snapshots, warnings.append).restore(0, None, still)
    assert task.checkpoint.next_offsets == (5, -1)
    assert "no answer for 0.1 s" in warnings[0]


def test_a_needed_snapshot_that_cannot_be_read(failing: set[str]) -> None:
    """A state that only the failing storage has is a BrokerError (exit code 75), not lost."""
    snapshots = SnapshotStore(url(), "app")
    snapshots.save(0, 7, b"a snapshot")
    failing.add("ls")
    restoring = restorer(Log(3, 9, BATCH), snapshots, lambda _: None)
    with pytest.raises(
        BrokerError, match=r"cannot be listed: ClientError.*changelog\[0\] has @3 to"
    ):
        restoring.restore(0, None, still)
