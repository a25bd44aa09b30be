"""Snapshots in the background: a copy of the process makes them while the loop goes on.

Governing rule: `start` stops the caller for no longer than a fork takes, and nothing that
goes wrong afterwards is an exception: it is told as the outcome of that snapshot, and the
service goes on with the changelog it has.

The copy holds the state as it was at the fork, so it computes the bytes and hands them through
a pipe to a thread of the parent, which saves them. The copy itself touches nothing but that
pipe: connections and files are the parent's, and locks that other threads held at the fork
stay locked in it for ever.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import select
import signal
import sys
import warnings
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Saved", "Saver"]

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_POLITE = 5  # the loop goes first
_PIPE = 1 << 20  # bytes: few turns of the interpreter lock for many of them
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None  # found before a fork


class Saved(NamedTuple):
    """What became of a snapshot.

    Attributes
    ----------
    partition, offset
        Of which shard, and where in its changelog it goes on.
    size
        Bytes that were made.
    seconds
        From the start to the end.
    error
        Why it was not saved, as a sentence; None if it was.
    """

    partition: int
    offset: int
    size: int
    seconds: float
    error: str | None


class Saver:
    """Make and save snapshots in the background.

    Parameters
    ----------
    save
        Takes partition, offset and bytes, and has them saved when it returns; called by a thread.
    limit
        Seconds after which a copy that is not done is killed.

    Examples
    --------
    >>> from abers.stream import Processor
    >>> kept = {}
    >>> saver = Saver(lambda partition, offset, blob: kept.update({(partition, offset): blob}))
    >>> processor = Processor()
    >>> saver.start(0, 17, processor.snapshot)
    True
    >>> saver.close()
    >>> [(one.partition, one.offset, one.error) for one in saver.finished()]
    [(0, 17, None)]
    >>> kept[0, 17] == processor.snapshot()
    True
    """

    def __init__(self, save: Callable[[int, int, bytes], object], *, limit: float = 300.0) -> None:
        self._save, self._limit = save, limit
        self._running: dict[int, Thread] = {}
        self._done: SimpleQueue[Saved] = SimpleQueue()

    def start(self, partition: int, offset: int, make: Callable[[], bytes]) -> bool:
        """Start a snapshot of what is there now.

        Parameters
        ----------
        partition, offset
            Of which shard, and where in its changelog it goes on.
        make
            Gives the bytes; called in a copy of this process.

        Returns
        -------
        bool
            False if the last one of this shard is not done yet; none is started then.
        """
        if self.busy(partition):
            return False
        started = monotonic()
        try:
            pid, pipe = _forked(make)
        except OSError as error:
            self._done.put(Saved(partition, offset, 0, 0.0, f"no copy of the process: {error}"))
            return True
        job = (pid, pipe, partition, offset, started)
        thread = Thread(target=self._follow, args=job, name=f"snapshot-{partition}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            os.kill(pid, signal.SIGKILL)
            os.close(pipe)
            os.waitpid(pid, 0)
            self._done.put(Saved(partition, offset, 0, 0.0, f"no thread: {error}"))
            return True
        self._running[partition] = thread
        return True

    def busy(self, partition: int) -> bool:
        """Tell whether a snapshot of a shard is not done yet."""
        thread = self._running.get(partition)
        return thread is not None and thread.is_alive()

    def finished(self) -> list[Saved]:
        """Give what became of the snapshots that are done since the last call; never waits."""
        found: list[Saved] = []
        with suppress(Empty):
            while True:
                found.append(self._done.get_nowait())
        return found

    def close(self, timeout: float | None = None) -> None:
        """Wait for what is running, for so many seconds at most; what is left is given up."""
        deadline = None if timeout is None else monotonic() + timeout
        for thread in self._running.values():
            thread.join(None if deadline is None else max(0.0, deadline - monotonic()))

    def _follow(self, pid: int, pipe: int, partition: int, offset: int, started: float) -> None:
        blob = b""
        try:
            blob, error = _received(pid, pipe, self._limit)
            if error is None:
                self._save(partition, offset, blob)
        except Exception as failure:  # noqa: BLE001 - whatever a disk or a store can raise
            error = _worded(failure)
        self._done.put(Saved(partition, offset, len(blob), monotonic() - started, error))


def _received(pid: int, pipe: int, limit: float) -> tuple[bytes, str | None]:
    """Wait for the end of a copy; the bytes it made, or why it made none."""
    data = None
    try:
        data = _read(pipe, monotonic() + limit)
    finally:
        if data is None:
            os.kill(pid, signal.SIGKILL)  # it is ours as long as nobody has waited for it
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if data is None:
        return b"", f"the copy of the process was not done after {limit:g} s"
    if code > 0:
        return b"", data.decode("utf-8", "replace")
    if code < 0:
        name = signal.Signals(-code).name
        return b"", f"the copy of the process was ended by {name}; it takes as much memory again"
    return data, None


def _read(pipe: int, deadline: float) -> bytes | None:
    """Read to the end; None if it does not come in time."""
    pieces: list[bytes] = []
    with open(pipe, "rb", buffering=0) as reading:
        ready = select.poll()
        ready.register(reading, select.POLLIN)
        while ready.poll(max(0.0, 1e3 * (deadline - monotonic()))):
            piece = reading.read(_PIPE)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
    return None


# The copy


def _forked(make: Callable[[], bytes]) -> tuple[int, int]:
    """Copy the process; the copy's number, and the end of the pipe to read from."""
    parent = os.getpid()
    reading, writing = os.pipe()
    with suppress(AttributeError, OSError):  # elsewhere, or where a user may not have so much
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE)
    try:
        with _undisturbed(), warnings.catch_warnings():
            # From Python 3.12 on a fork beside threads warns, for their locks stay locked in the
            # copy; it needs none of them.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
            if pid == 0:
                _copy(make, writing, parent)
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return pid, reading


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold back signals: the copy must not run the handlers of the service."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _copy(make: Callable[[], bytes], writing: int, parent: int) -> NoReturn:
    """Make the bytes, hand them over, and end without a trace."""
    code = 1
    try:
        _be_alone(parent)
        _hand_over(writing, make())
        code = 0
    except BaseException as error:  # noqa: BLE001 - there is nobody above
        with suppress(BaseException):
            _hand_over(writing, _worded(error).encode("utf-8", "replace"))
    finally:
        os._exit(code)  # no exit handlers, no buffers: they are the parent's


def _be_alone(parent: int) -> None:
    if _prctl is not None:
        _prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)) or number == signal.SIGPIPE:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.nice(_POLITE)
    gc.disable()  # it would write to, and so copy, the pages of every object there is


def _hand_over(writing: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(writing, rest[:_PIPE]) :]


def _worded(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
