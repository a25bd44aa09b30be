"""Snapshots in the background, `abers_connectors.kafka.saving`; each copy is a real process."""

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
from abers_connectors.files.places import Whole
from abers_connectors.kafka.saving import Saved, Saver

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from abers._sealed import Piece

PATIENCE = 60.0
KEY = b"a secret of tests"
SETTINGS = Settings(window=300, max_pending=200)
EVENTS = stream(1_000, every=50)


class Folder:
    """Where snapshots go: a file each."""

    def __init__(self, path: Path) -> None:
        """Keep files in a folder."""
        self.path = path

    def save(self, partition: int, offset: int, pieces: Iterable[bytes]) -> None:
        """Write a file, whole or not at all."""
        file = Whole(str(self.path / f"{partition}-{offset}"))
        try:
            for piece in pieces:
                file.write(piece)
            file.close()
        except BaseException:
            file.discard()
            raise

    def read(self, partition: int, offset: int) -> bytes:
        """Read a file."""
        return (self.path / f"{partition}-{offset}").read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Give a folder for snapshots."""
    return Folder(tmp_path)


def only(saver: Saver) -> Saved:
    """Wait for the only snapshot that runs; what became of it."""
    saver.close(PATIENCE)
    (saved,) = saver.finished()
    return saved


def processor() -> Processor:
    """Make a processor that holds something."""
    made = Processor(SETTINGS)
    made.process_many(EVENTS[:800])
    return made


def test_the_state_of_the_start_is_saved(folder: Folder) -> None:
    """What is saved is the state at the start, though the processor went on at once."""
    one, saver = processor(), Saver(folder.save)
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
    assert saved == Saved(3, 41, len(expected), saved.seconds, None)
    assert saved.seconds >= 0.0
    assert not saver.busy()
    assert folder.read(3, 41) == expected != one.snapshot({"number": 7})
    restored = Processor.restore(folder.read(3, 41), SETTINGS)
    restored.process_many(EVENTS[800:])
    assert restored.state_bytes() == one.state_bytes()
    os.close(gate_in)
    os.close(gate_out)


def test_learners(folder: Folder) -> None:
    """The state of learners goes along under its key."""
    one, saver = Processor(SETTINGS, learner=Scorer()), Saver(folder.save)
    one.process_many(EVENTS[:100])
    saver.start(0, 1, partial(one.snapshot_pieces, None, KEY))
    assert only(saver).error is None
    restored = Processor.restore(folder.read(0, 1), SETTINGS, key=KEY, learner=Scorer())
    assert restored.process_many(EVENTS[100:]) == one.process_many(EVENTS[100:])


def test_large_snapshots(folder: Folder) -> None:
    """Snapshots of many times what a pipe holds come whole."""
    blob, saver = os.urandom(1 << 20) * 20, Saver(folder.save)
    saver.start(0, 1, lambda: [blob])
    assert only(saver).size == len(blob)
    assert folder.read(0, 1) == blob


def test_one_shard_at_a_time(folder: Folder) -> None:
    """While one snapshot is made none is begun, of no shard: each takes memory."""
    gate_in, gate_out = os.pipe()
    saver = Saver(folder.save)

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
    assert [folder.read(shard, 5) for shard in (0, 1)] == [b"first", b"second"]
    os.close(gate_in)
    os.close(gate_out)


# What goes wrong


def fail() -> NoReturn:
    """Fail as a snapshot can."""
    msg = "position cannot be saved"
    raise ValueError(msg)


def test_a_snapshot_that_cannot_be_made(folder: Folder) -> None:
    """What the copy raises is told, and the next snapshot is tried."""
    saver = Saver(folder.save)
    assert saver.start(0, 1, fail)
    assert only(saver).error == "ValueError: position cannot be saved"
    assert saver.start(0, 2, lambda: [b"x"])
    assert only(saver).error is None


def test_no_folder(folder: Folder) -> None:
    """A folder that is not there, or cannot be written to, is told and nothing more."""
    saver = Saver(Folder(folder.path / "none").save)
    saver.start(0, 1, lambda: [b"x"])
    assert "there is no directory" in (only(saver).error or "")


def test_full_disk() -> None:
    """A full disk is told."""

    def save(partition: int, offset: int, pieces: Iterable[bytes]) -> None:
        del partition, offset
        with open("/dev/full", "wb") as file:  # noqa: PTH123 - a device
            file.writelines(pieces)

    saver = Saver(save)
    saver.start(0, 1, lambda: [bytes(1_000_000)])
    assert "No space left" in (only(saver).error or "")


def test_read_only_folder() -> None:
    """A folder in which not even root may write is told."""
    saver = Saver(Folder(Path("/proc/self")).save)
    saver.start(0, 1, lambda: [b"x"])
    assert "/proc/" in (only(saver).error or "")


def test_a_copy_that_is_killed(folder: Folder) -> None:
    """A copy that is killed, for its memory say, is told, and nothing of it is saved."""
    saver = Saver(folder.save)

    def make() -> NoReturn:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    saver.start(0, 1, make)
    assert "was ended by SIGKILL" in (only(saver).error or "")
    assert list(folder.path.iterdir()) == []


def test_a_copy_that_hangs(folder: Folder) -> None:
    """A copy that is stuck is killed after the limit."""
    saver = Saver(folder.save, silent=0.1)

    def make() -> Iterator[bytes]:
        yield bytes(3 << 20)
        while True:
            signal.pause()

    saver.start(0, 1, make)
    assert "made nothing for 0.1 s" in (only(saver).error or "")
    assert list(folder.path.iterdir()) == []


def test_a_copy_that_goes_on_and_on(folder: Folder) -> None:
    """A snapshot that never ends, however much of it comes, is given up."""
    saver = Saver(folder.save, longest=0.1)

    def make() -> Iterator[bytes]:
        while True:
            yield bytes(1 << 20)

    saver.start(0, 1, make)
    assert "was not done after 0.1 s" in (only(saver).error or "")
    assert list(folder.path.iterdir()) == []


def test_a_copy_that_fails_in_the_middle(folder: Folder) -> None:
    """Of a copy that fails when some of it has been handed over nothing is saved."""
    saver = Saver(folder.save)

    def make() -> Iterator[bytes]:
        yield bytes(3 << 20)
        fail()

    saver.start(0, 1, make)
    assert only(saver).error == "ValueError: position cannot be saved"
    assert list(folder.path.iterdir()) == []


def test_what_follows_comes_after_a_snapshot_that_is_saved(folder: Folder) -> None:
    """What is to be done behind a snapshot is done with its shard, and never behind a failure."""
    followed: list[int] = []
    saver = Saver(folder.save, followed.append)
    saver.start(7, 1, lambda: [b"x"])
    assert only(saver).error is None
    saver.start(8, 1, fail)
    assert only(saver).error is not None
    assert followed == [7]


@contextmanager
def at_most_open(more: int) -> Iterator[None]:
    """Let this process open so many more files and no more."""
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
    """A process that may open nothing more goes on without a snapshot."""
    saver = Saver(folder.save)
    with at_most_open(1):
        assert saver.start(0, 1, lambda: [b"x"])
    (saved,) = saver.finished()
    assert "Too many open files" in (saved.error or "")
    assert not saver.busy()


# What the copy leaves alone


def test_nothing_stays(folder: Folder) -> None:
    """Neither a process nor a descriptor is left over."""
    saver = Saver(folder.save)
    before = owned()
    for make in (lambda: [b"x"], fail, lambda: [os.urandom(3_000_000)]):
        saver.start(0, 1, make)
        only(saver)
    assert owned() == before


def owned() -> tuple[int, str]:
    """Count the descriptors of this process, and name its children."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    return sum(1 for _ in Path("/proc/self/fd").iterdir()), children.read_text("ascii")


QUIET = """
import atexit, os, signal, sys, threading
from abers_connectors.kafka.saving import Saver

atexit.register(lambda: os.write(1, b"exit handler in %d\\n" % (os.getpid() == me)))
me, go = os.getpid(), threading.Event()
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"handler in %d\\n" % (os.getpid() == me)))
threading.Thread(target=go.wait, daemon=True).start()
sys.stdout.write("once\\n")  # in the buffer at the fork

def make():
    os.kill(os.getpid(), signal.SIGTERM)

saver = Saver(lambda partition, offset, pieces: [*pieces])
saver.start(0, 1, make)
saver.close()
print(saver.finished()[0].error)
go.set()
"""


def test_handlers_and_buffers_are_the_parents() -> None:
    """The copy runs no signal handler and no exit handler, and writes no buffer of the parent.

    Nor does a fork beside threads warn, where warnings are errors.
    """
    run = [sys.executable, "-W", "error", "-c", QUIET]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    once, error, handler = done.stdout.splitlines()
    assert once == "once"
    assert "was ended by SIGTERM" in error
    assert handler == "exit handler in 1"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody is chosen")
def test_where_memory_runs_out_the_copy_goes_first(folder: Folder) -> None:
    """The system is told to end the copy before the service; the service is not touched."""
    score, saver = Path("/proc/self/oom_score_adj"), Saver(folder.save)
    before = score.read_bytes()
    saver.start(0, 1, lambda: [score.read_bytes()])
    assert only(saver).error is None
    assert folder.read(0, 1) == b"1000\n"
    assert score.read_bytes() == before


DYING = """
import os, signal, sys, time
from abers_connectors.kafka.saving import Saver

def make():
    print("copied", flush=True)
    time.sleep(20)
    print("still there", flush=True)

Saver(lambda partition, offset, pieces: [*pieces]).start(0, 1, make)
signal.pause()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the copy ends when it has done")
def test_a_copy_dies_with_its_parent() -> None:
    """When the service is killed its copy goes too, and so do the connections both have open."""
    run = [sys.executable, "-c", DYING]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "copied\n"
        parent.kill()
        parent.wait()
        # Until nobody has the other end open, the copy included.
        assert parent.stdout.read() == ""


def test_any_thread_may_start_one(folder: Folder) -> None:
    """A copy can be made from another thread than the first."""
    saver = Saver(folder.save)
    thread = threading.Thread(target=saver.start, args=(0, 1, lambda: [b"x"]))
    thread.start()
    thread.join()
    assert only(saver).partition == 0
