"""Stores that fail in ways of their own, `abers_connectors.kafka.storing`.

Governing rule: each store is an fsspec file system that is registered here, so what is tested is
how the calls of fsspec are used, and no test waits for longer than a store is let be silent.
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
from tests.connectors.kafka.reads import Read

from abers.exceptions import BrokerError
from abers.stream import Settings
from abers_connectors.kafka.changelog import Applied, encode
from abers_connectors.kafka.home import Home
from abers_connectors.kafka.keeping import Keeping
from abers_connectors.kafka.restoring import Restorer
from abers_connectors.kafka.saving import Saver
from abers_connectors.kafka.shard import Place, Shard
from abers_connectors.kafka.snapshots import Snapshots
from abers_connectors.kafka.standing import standing
from abers_connectors.kafka.status import Status
from abers_connectors.kafka.storing import SilentError, Storage, StorageError
from abers_connectors.kafka.transport import Bounds, Partition
from abers_connectors.kafka.trimming import Trimming
from abers_connectors.notify import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from abers_connectors.kafka.transport import Consumer

HOME = Home("app", ["seen"], "changelog", Settings(), outcomes=False, key=None)
CALLS = ["ls", "_open", "mv", "rm_file", "makedirs"]
PATIENCE = 60.0


class ClientError(Exception):
    """An error as botocore has them: it is no OSError."""


class Ailing(MemoryFileSystem):  # type: ignore[misc]
    """A store in which calls can be made to fail, or to hang until they are let go."""

    protocol = "ailing"
    cachable = False
    ill: ClassVar[set[str]] = set()
    hangs: ClassVar[Event | None] = None

    def __init__(self, *args: Any, **more: Any) -> None:  # noqa: ANN401 - as fsspec has it
        """Connect."""
        super().__init__(*args, **more)
        self._suffer("connect")

    def _suffer(self, call: str) -> None:
        if call not in self.ill:
            return
        if self.hangs is not None:
            self.hangs.wait(PATIENCE)
            return
        msg = f"An error occurred (403) when calling the {call} operation: Forbidden"
        raise ClientError(msg)

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
        """Find a method that suffers first."""
        found = super().__getattribute__(name)
        if name not in CALLS:
            return found

        def suffering(*args: Any, **more: Any) -> Any:  # noqa: ANN401
            self._suffer(name)
            return found(*args, **more)

        return suffering


@pytest.fixture
def ill() -> Iterator[set[str]]:
    """Give the calls that fail: none yet."""
    fsspec.register_implementation("ailing", Ailing, clobber=True)
    Ailing.ill = set()
    yield Ailing.ill
    Ailing.ill = set()


@pytest.fixture
def hanging(ill: set[str]) -> Iterator[set[str]]:
    """Give the calls that hang: none yet; they are let go behind the test."""
    Ailing.hangs = Event()
    yield ill
    Ailing.hangs.set()
    Ailing.hangs = None


def url() -> str:
    """Name a place of its own."""
    return f"ailing://{uuid4().hex}"


@pytest.mark.parametrize("call", CALLS)
def test_an_error_of_the_store_is_an_oserror(call: str, ill: set[str]) -> None:
    """Whatever call fails, in saving or removing, it is an OSError with the words of the store."""
    snapshots = Snapshots(url(), "app", keep=1)
    snapshots.save(0, 1, b"old")
    ill.add(call)
    with pytest.raises(OSError, match=rf"ClientError: .*\(403\).* {call} operation: Forbidden"):
        snapshots.save(0, 2, b"new")  # the old one is one too many
    ill.clear()
    assert [blob for _, blob in snapshots.newest(0)][-1] == b"old"


class Upload(AbstractBufferedFile):  # type: ignore[misc]
    """A file that is sent in blocks, as those of buckets are: its end sends what is left."""

    sent: ClassVar[list[bool]] = []

    def _initiate_upload(self) -> None:
        """Begin."""

    def _upload_chunk(self, final: bool = False) -> None:  # noqa: FBT001, FBT002 - as fsspec has it
        self.sent.append(final)


class Bucket(MemoryFileSystem):  # type: ignore[misc]
    """A store to which files are sent in blocks."""

    protocol = "bucket"
    cachable = False

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Upload:  # noqa: ANN401
        """Open a file to be sent."""
        return Upload(self, path, mode, block_size=more["block_size"])


def test_what_was_given_up_is_not_sent_at_last() -> None:
    """Of a snapshot that breaks off no more is sent, also when its file is forgotten."""
    fsspec.register_implementation("bucket", Bucket, clobber=True)
    snapshots = Snapshots(f"bucket://{uuid4().hex}", "app")
    Upload.sent.clear()

    def broken() -> Iterator[bytes]:
        yield bytes(9 << 20)
        raise LookupError

    with pytest.raises(LookupError):
        snapshots.save(0, 1, broken())
    gc.collect()
    assert Upload.sent == [False]


@pytest.mark.parametrize("call", ["ls", "_open"])
def test_what_cannot_be_read_is_passed_over(call: str, ill: set[str]) -> None:
    """A store that fails with an error of its own has no snapshots, and says why."""
    snapshots, told = Snapshots(url(), "app"), list[str]()
    snapshots.save(0, 1, b"one")
    ill.add(call)
    assert [*snapshots.newest(0, failed=told.append)] == []
    (sentence,) = told
    assert "cannot be" in sentence
    assert "ClientError: An error occurred (403)" in sentence


def test_a_store_that_cannot_be_reached_is_asked_again(ill: set[str]) -> None:
    """Where connecting fails nothing is refused: it is tried again when the store is needed."""
    ill.add("connect")
    snapshots, told = Snapshots(url(), "app"), list[str]()
    assert [*snapshots.newest(0, failed=told.append)] == []
    assert "ClientError" in told[0]
    with pytest.raises(StorageError, match="ClientError"):
        snapshots.save(0, 1, b"x")
    ill.clear()
    snapshots.save(0, 1, b"x")
    assert [blob for _, blob in snapshots.newest(0)] == [b"x"]


@pytest.mark.parametrize("call", ["connect", "ls", "_open"])
def test_a_store_that_hangs_while_it_is_read(call: str, hanging: set[str]) -> None:
    """A store without an answer is passed over, all of it, and nothing moves meanwhile."""
    place, told, ticks = url(), list[str](), list[int]()
    for offset in (1, 2):
        Snapshots(place, "app").save(0, offset, b"x")
    hanging.add(call)
    snapshots = Snapshots(place, "app", patience=0.2)
    assert [*snapshots.newest(0, lambda: ticks.append(1), told.append)] == []
    (sentence,) = told
    assert sentence.endswith("there was no answer for 0.2 s")
    assert ticks == []


@pytest.mark.parametrize("call", ["_open", "mv"])
def test_a_save_that_hangs_is_given_up(call: str, hanging: set[str]) -> None:
    """A snapshot of which the store takes nothing is given up, and counts as one that failed."""
    snapshots = Snapshots(url(), "app", patience=0.02)
    saver = Saver(snapshots.save)
    hanging.add(call)
    saver.start(0, 1, lambda: [b"x"])
    saver.close(PATIENCE)
    (saved,) = saver.finished()
    assert saved.error == "SilentError: there was no answer for 0.2 s"
    assert not saver.busy()
    hanging.clear()
    saver.start(0, 2, lambda: [b"y"])
    saver.close(PATIENCE)
    assert saver.finished()[0].error is None
    assert next(snapshots.newest(0))[1] == b"y"


def test_a_save_that_hangs_is_counted(hanging: set[str]) -> None:
    """The service counts a snapshot that was given up, which is what its alert asks for."""
    status = Status(60.0)
    keeping = Keeping(
        HOME,
        Snapshots(url(), "app", patience=0.02),
        every=1,
        consumer=cast("Consumer", None),  # which is not asked while the time stands still
        status=status,
        supervisor=Supervisor({}),
        clock=lambda: 0.0,
    )
    hanging.add("mv")
    shard = Shard(HOME.processor(), Place("app", 0, 1, 1, (5, -1)))
    shard.unsaved = 1
    keeping([shard])
    assert shard.unsaved == 0
    keeping._saver.close(PATIENCE)  # type: ignore[union-attr]  # noqa: SLF001 - to wait for it
    keeping([shard])
    assert status.view().counts.snapshots == {"failed": 1}


def test_calls_that_hang_do_not_pile_up(hanging: set[str]) -> None:
    """Where many calls hang no more are made, until they come back."""
    storage = Storage(url(), patience=0.01)
    hanging.add("ls")
    for _ in range(8):
        with pytest.raises(SilentError, match=r"no answer for 0\.01 s"):
            storage.entries("/x")
    with pytest.raises(SilentError, match="8 earlier calls have had no answer yet"):
        storage.entries("/x")
    hanging.clear()
    assert Ailing.hangs is not None
    Ailing.hangs.set()
    for one in storage._stuck:  # noqa: SLF001 - to wait for them
        one.join(PATIENCE)
    assert storage.entries("/x") == []


def test_a_changelog_is_not_shortened(ill: set[str], caplog: pytest.LogCaptureFixture) -> None:
    """A store that fails where the oldest snapshot is looked for costs room, and is told."""
    snapshots = Snapshots(url(), "app")
    ill.add("ls")
    with caplog.at_level(logging.WARNING):
        Trimming(HOME, snapshots, {}).trim(0)
    assert "the changelog is not shortened: snapshots of partition 0 cannot be" in caplog.text
    assert "ClientError" in caplog.text


def test_listing_tells_of_a_store_that_fails() -> None:
    """Whoever lists a state reads why the snapshots are not there, and what that means."""
    found = standing(0, {"seen[0]": 7}, ("log[0]", Bounds(3, 9)), [], [], ["cannot be listed"])
    assert found.unread == ["cannot be listed"]
    assert found.restore.startswith("nothing, as long as the snapshots cannot be read")


# Restoring


class Log:
    """A changelog of one batch, and what was committed with it."""

    def __init__(self, start: int, end: int, applied: Applied) -> None:
        self._bounds, self._applied = Bounds(start, end), applied

    def committed(self, partition: Partition) -> int:
        """Give the offset behind the batch."""
        del partition
        return self._applied.following[0]

    def bounds(self, partition: Partition) -> Bounds:
        """Give the bounds of the changelog."""
        del partition
        return self._bounds

    def read(self, partition: Partition, start: int, end: int) -> Iterator[list[Read]]:
        """Give the batch, if it is asked for."""
        del partition
        for offset in range(start, end):
            (value,) = encode(self._applied)
            yield [Read(value, offset=offset)]


def still() -> None:
    """See that a restore goes on, and do nothing."""


def restorer(log: Log, snapshots: Snapshots, say: Callable[[str], None]) -> Restorer:
    """Make what restores from a changelog and snapshots."""

    def begin(number: int) -> Shard:
        raise AssertionError(number)

    return Restorer(HOME, log, snapshots, begin, lambda _: False, say=say)  # type: ignore[arg-type]


BATCH = Applied("0", 0, (5, -1), b"", b"", [], None)


@pytest.mark.parametrize("call", ["ls", "_open"])
def test_a_restore_goes_on_with_the_changelog(call: str, ill: set[str]) -> None:
    """Where the store fails with an error of its own, and the changelog has all, it is enough."""
    snapshots, said = Snapshots(url(), "app"), list[str]()
    snapshots.save(0, 1, b"a snapshot")
    ill.add(call)
    shard, fresh = restorer(Log(0, 1, BATCH), snapshots, said.append).restore(0, None, still)
    assert shard.place == Place("app", 0, 1, 1, (5, -1))
    assert not fresh
    assert len(said) == 1
    assert "ClientError" in said[0]


def test_a_store_that_hangs_keeps_nobody_from_restoring(hanging: set[str]) -> None:
    """A store without an answer is passed over too, and the changelog is read."""
    snapshots, said = Snapshots(url(), "app", patience=0.1), list[str]()
    snapshots.save(0, 1, b"a snapshot")
    hanging.add("ls")
    shard, _ = restorer(Log(0, 1, BATCH), snapshots, said.append).restore(0, None, still)
    assert shard.place.following == (5, -1)
    assert "no answer for 0.1 s" in said[0]


def test_where_the_changelog_is_not_enough_it_is_tried_again(ill: set[str]) -> None:
    """A state that only the store has is no lost state while the store fails: exit code 75."""
    snapshots = Snapshots(url(), "app")
    snapshots.save(0, 7, b"a snapshot")
    ill.add("ls")
    restoring = restorer(Log(3, 9, BATCH), snapshots, lambda _: None)
    with pytest.raises(
        BrokerError, match=r"cannot be listed: ClientError.*changelog\[0\] has @3 to"
    ):
        restoring.restore(0, None, still)


def test_a_slow_download_is_seen_to_move() -> None:
    """While a large snapshot comes in pieces the restore ticks for each, and may be given up."""
    snapshots, ticks = Snapshots(f"memory://{uuid4().hex}", "app"), list[int]()
    snapshots.save(0, 1, bytes(4 << 20))
    shard, _ = restorer(Log(0, 1, BATCH), snapshots, lambda _: None).restore(
        0, None, lambda: ticks.append(1)
    )
    assert shard.place.batch == 1
    assert len(ticks) >= 4 + 1  # one for each MiB, and one for the changelog
