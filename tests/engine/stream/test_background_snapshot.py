"""Snapshots in the background, `abers.stream.background_snapshot` (real processes)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from tests.engine.stream.cases import Scorer, stream

from abers.stream import Processor, Settings
from abers.stream.background_snapshot import BackgroundSnapshotter, SnapshotResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from abers.serialization import Piece

pytestmark = pytest.mark.once  # a copy saves with the same core as any snapshot
PATIENCE = 60.0
KEY = b"a secret of tests"
SETTINGS = Settings(window=300, max_pending=200)
EVENTS = stream(1_000, every=50)


class Folder:
    """A folder with a file for each snapshot."""

    def __init__(self, path: Path) -> None:
        """Set the folder."""
        self.path = path

    def save(self, partition: int, offset: int, pieces: Iterable[bytes]) -> None:
        """Write a file, all of it or nothing."""
        part = self.path / "part"
        with part.open("wb") as file:
            try:
                file.writelines(pieces)
            except BaseException:
                part.unlink()
                raise
        part.rename(self.path / f"{partition}-{offset}")

    def read(self, partition: int, offset: int) -> bytes:
        """Read a file."""
        return (self.path / f"{partition}-{offset}").read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return a folder for snapshots."""
    return Folder(tmp_path)


def only(saver: BackgroundSnapshotter) -> SnapshotResult:
    """Wait for the only running snapshot, and return its result."""
    saver.close(PATIENCE)
    (saved,) = saver.finished()
    return saved


def processor() -> Processor:
    """Return a processor with state."""
    made = Processor(SETTINGS)
    made.process_many(EVENTS[:800])
    return made


def test_the_state_of_the_start_is_saved(folder: Folder) -> None:
    """The state at the start is saved, though the processor continues at once."""
    one, saver = processor(), BackgroundSnapshotter(folder.save)
    expected = one.snapshot({"number": 7})
    gate_in, gate_out = os.pipe()

    def make() -> Iterable[Piece]:
        os.read(gate_in, 1)  # until the parent has gone on
        return one.snapshot_pieces({"number": 7})

    assert saver.start(3, 41, make)
    assert saver.busy()
    assert saver.finished() == []
    one.process_many(EVENTS[800:])
    os.write(gate_out, b"!")
    saved = only(saver)
    assert saved == SnapshotResult(3, 41, len(expected), saved.seconds, None)
    assert saved.seconds >= 0.0
    assert not saver.busy()
    assert folder.read(3, 41) == expected != one.snapshot({"number": 7})
    restored = Processor.restore(folder.read(3, 41), SETTINGS)
    restored.process_many(EVENTS[800:])
    assert restored.state_bytes() == one.state_bytes()
    os.close(gate_in)
    os.close(gate_out)


def test_learners(folder: Folder) -> None:
    """The state of learners is saved too, sealed with its key."""
    one, saver = Processor(SETTINGS, learner=Scorer()), BackgroundSnapshotter(folder.save)
    one.process_many(EVENTS[:100])
    saver.start(0, 1, partial(one.snapshot_pieces, None, KEY))
    assert only(saver).error is None
    restored = Processor.restore(folder.read(0, 1), SETTINGS, key=KEY, learner=Scorer())
    assert restored.process_many(EVENTS[100:]) == one.process_many(EVENTS[100:])


def test_large_snapshots(folder: Folder) -> None:
    """A snapshot many times as large as a pipe is saved completely."""
    blob, saver = os.urandom(1 << 20) * 20, BackgroundSnapshotter(folder.save)
    saver.start(0, 1, lambda: [blob])
    assert only(saver).size == len(blob)
    assert folder.read(0, 1) == blob


def test_one_snapshot_at_a_time(folder: Folder) -> None:
    """While a snapshot is made, none of any task is started: each takes memory."""
    gate_in, gate_out = os.pipe()
    saver = BackgroundSnapshotter(folder.save)

    def make() -> list[bytes]:
        os.read(gate_in, 1)
        return [b"first"]

    assert saver.start(0, 5, make)
    assert not saver.start(0, 6, lambda: [b"x"])
    assert not saver.start(1, 5, lambda: [b"x"])
    assert saver.finished() == []
    os.write(gate_out, b"!")
    assert only(saver)[:3] == (0, 5, 5)
    assert saver.start(1, 5, lambda: [b"second"])
    assert only(saver)[:3] == (1, 5, 6)
    assert [folder.read(task, 5) for task in (0, 1)] == [b"first", b"second"]
    os.close(gate_in)
    os.close(gate_out)


# What goes wrong


def fail() -> NoReturn:
    """Raise what making a snapshot may raise."""
    msg = "position cannot be saved"
    raise ValueError(msg)


def test_a_snapshot_that_cannot_be_made(folder: Folder) -> None:
    """The result has the error of the copy, and the next snapshot is made."""
    saver = BackgroundSnapshotter(folder.save)
    assert saver.start(0, 1, fail)
    assert only(saver).error == "ValueError: position cannot be saved"
    assert saver.start(0, 2, lambda: [b"x"])
    assert only(saver).error is None


def test_no_folder(folder: Folder) -> None:
    """A missing folder is the error of the result, and nothing is raised."""
    saver = BackgroundSnapshotter(Folder(folder.path / "none").save)
    saver.start(0, 1, lambda: [b"x"])
    assert "No such file or directory" in (only(saver).error or "")


def test_full_disk() -> None:
    """A full disk is the error of the result."""

    def save(partition: int, offset: int, pieces: Iterable[bytes]) -> None:
        del partition, offset
        with open("/dev/full", "wb") as file:  # noqa: PTH123 - a device
            file.writelines(pieces)

    saver = BackgroundSnapshotter(save)
    saver.start(0, 1, lambda: [bytes(1_000_000)])
    assert "No space left" in (only(saver).error or "")


def test_read_only_folder() -> None:
    """A folder in which not even root may write is the error of the result."""
    saver = BackgroundSnapshotter(Folder(Path("/proc/self")).save)
    saver.start(0, 1, lambda: [b"x"])
    assert "/proc/" in (only(saver).error or "")


def test_a_copy_that_is_killed(folder: Folder) -> None:
    """A killed copy (for its memory, say) is the error of the result, and nothing is saved."""
    saver = BackgroundSnapshotter(folder.save)

    def make() -> NoReturn:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    saver.start(0, 1, make)
    assert "SIGKILL ended the copy" in (only(saver).error or "")
    assert list(folder.path.iterdir()) == []


def test_a_copy_that_hangs(folder: Folder) -> None:
    """A copy that hangs is killed after the stall timeout."""
    saver = BackgroundSnapshotter(folder.save, stall_timeout=0.1)

    def make() -> Iterator[bytes]:
        yield bytes(3 << 20)
        while True:
            signal.pause()

    saver.start(0, 1, make)
    assert "sent nothing for 0.1 s" in (only(saver).error or "")
    assert list(folder.path.iterdir()) == []


def test_a_copy_that_never_ends(folder: Folder) -> None:
    """A snapshot that never ends is abandoned after the timeout, however many bytes arrive."""
    saver = BackgroundSnapshotter(folder.save, timeout=0.1)

    def make() -> Iterator[bytes]:
        while True:
            yield bytes(1 << 20)

    saver.start(0, 1, make)
    assert "was not done after 0.1 s" in (only(saver).error or "")
    assert list(folder.path.iterdir()) == []


def test_a_silent_copy_that_never_ends(folder: Folder) -> None:
    """A snapshot is abandoned after the timeout, though the copy may be silent for longer."""
    saver = BackgroundSnapshotter(folder.save, timeout=0.1)

    def make() -> Iterator[bytes]:
        yield bytes(3 << 20)
        while True:
            signal.pause()

    saver.start(0, 1, make)
    assert "was not done after 0.1 s" in (only(saver).error or "")
    assert list(folder.path.iterdir()) == []


def test_a_copy_that_fails_in_the_middle(folder: Folder) -> None:
    """Nothing is saved of a copy that fails after its first pieces."""
    saver = BackgroundSnapshotter(folder.save)

    def make() -> Iterator[bytes]:
        yield bytes(3 << 20)
        fail()

    saver.start(0, 1, make)
    assert only(saver).error == "ValueError: position cannot be saved"
    assert list(folder.path.iterdir()) == []


def test_then_is_called_after_a_saved_snapshot(folder: Folder) -> None:
    """The callback gets the partition of a saved snapshot, and is not called after a failure."""
    followed: list[int] = []
    saver = BackgroundSnapshotter(folder.save, followed.append)
    saver.start(7, 1, lambda: [b"x"])
    assert only(saver).error is None
    saver.start(8, 1, fail)
    assert only(saver).error is not None
    assert followed == [7]


@contextmanager
def at_most_open(more: int) -> Iterator[None]:
    """Limit the number of files that this process may still open."""
    import resource  # noqa: PLC0415 - of this test alone

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.dup(0)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_no_copy_can_be_made(folder: Folder) -> None:
    """A process that cannot open another file continues without a snapshot."""
    saver = BackgroundSnapshotter(folder.save)
    with at_most_open(1):
        assert saver.start(0, 1, lambda: [b"x"])
    (saved,) = saver.finished()
    assert "Too many open files" in (saved.error or "")
    assert not saver.busy()


# The copy has no side effects


def test_nothing_is_left(folder: Folder) -> None:
    """Neither a process nor a file descriptor is left."""
    saver = BackgroundSnapshotter(folder.save)
    before = owned()
    for make in (lambda: [b"x"], fail, lambda: [os.urandom(3_000_000)]):
        saver.start(0, 1, make)
        only(saver)
    assert owned() == before


def owned() -> tuple[int, str]:
    """Return the number of file descriptors of this process, and its children."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    return sum(1 for _ in Path("/proc/self/fd").iterdir()), children.read_text("ascii")


QUIET = """
import atexit, os, signal, sys, threading
from abers.stream.background_snapshot import BackgroundSnapshotter

atexit.register(lambda: os.write(1, b"exit handler in %d\\n" % (os.getpid() == me)))
me, go = os.getpid(), threading.Event()
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"handler in %d\\n" % (os.getpid() == me)))
threading.Thread(target=go.wait, daemon=True).start()
sys.stdout.write("once\\n")  # in the buffer at the fork

def make():
    os.kill(os.getpid(), signal.SIGTERM)

saver = BackgroundSnapshotter(lambda partition, offset, pieces: [*pieces])
saver.start(0, 1, make)
saver.close()
print(saver.finished()[0].error)
go.set()
"""


def test_handlers_and_buffers_are_the_parents() -> None:
    """The copy runs no signal handler and no exit handler, and writes no buffer of the parent.

    A fork next to threads does not warn either, where warnings are errors.
    """
    run = [sys.executable, "-W", "error", "-c", QUIET]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    once, error, handler = done.stdout.splitlines()
    assert once == "once"
    assert "SIGTERM ended the copy" in error
    assert handler == "exit handler in 1"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has an OOM score")
def test_the_copy_is_killed_first_without_memory(folder: Folder) -> None:
    """The copy gets the highest OOM score, and the service keeps its own."""
    score, saver = Path("/proc/self/oom_score_adj"), BackgroundSnapshotter(folder.save)
    before = score.read_bytes()
    saver.start(0, 1, lambda: [score.read_bytes()])
    assert only(saver).error is None
    assert folder.read(0, 1) == b"1000\n"
    assert score.read_bytes() == before


DYING = """
import os, signal, sys, time
from abers.stream.background_snapshot import BackgroundSnapshotter

def make():
    print("copied", flush=True)
    time.sleep(20)
    print("still there", flush=True)

BackgroundSnapshotter(lambda partition, offset, pieces: [*pieces]).start(0, 1, make)
signal.pause()
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="on other systems the copy ends when it is done"
)
def test_a_copy_dies_with_its_parent() -> None:
    """A killed service takes its copy along, with the connections that both have open."""
    run = [sys.executable, "-c", DYING]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "copied\n"
        parent.kill()
        parent.wait()
        # It ends when no process has the other end open, the copy included.
        assert parent.stdout.read() == ""


def test_any_thread_may_start_one(folder: Folder) -> None:
    """A copy can be made in another thread than the main one."""
    saver = BackgroundSnapshotter(folder.save)
    thread = threading.Thread(target=saver.start, args=(0, 1, lambda: [b"x"]))
    thread.start()
    thread.join()
    assert only(saver).partition == 0
