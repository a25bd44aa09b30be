"""Snapshots in the background: a copy of the process makes them while the loop continues.

`start` blocks the caller only for the time of a fork. Whatever fails afterwards is not an exception
but the result of that snapshot, and the service continues with its changelog. Only one snapshot is
made at a time, since each takes memory.

The copy has the state as it was at the fork. It computes the bytes and sends them through a pipe,
piece by piece, to a thread of the parent, which saves them; neither ever holds all of them.

A forked copy of the process that makes bytes and sends them to its parent. The copy uses nothing
but its own two pipes: connections and files are the parent's, and locks that other threads had at
the fork stay locked in it. It writes to as little memory as possible, since each page that it
writes to is duplicated.
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
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from abers.serialization import Piece

__all__ = ["BackgroundSnapshotter", "ProcessCopy", "ProcessCopyError", "SnapshotResult"]

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_NICENESS = 5  # the loop has priority
_PIPE_BYTES = 1 << 20  # a large pipe needs fewer turns of the interpreter lock
_MESSAGE = 4096  # bytes, which any pipe holds
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None  # looked up before a fork


class ProcessCopyError(Exception):
    """The copy did not send all of the bytes."""


class ProcessCopy:
    """A copy of this process as it is now, in which `make` returns the bytes in pieces.

    `pieces` gives up after `stall_timeout` seconds without a byte, and in any case `timeout`
    seconds after the start. Raises an OSError if the process cannot be copied.
    """

    def __init__(
        self, make: Callable[[], Iterable[Piece]], stall_timeout: float, timeout: float
    ) -> None:
        self._stall_timeout, self._timeout = stall_timeout, timeout
        self._deadline = monotonic() + timeout
        self._code: int | None = None
        with ExitStack() as parent, ExitStack() as child:
            (data, to), (errors, errors_to) = (_pipe(parent, child) for _ in range(2))
            self._pid = _fork(make, to, errors_to)
            self._data = parent.enter_context(open(data, "rb", buffering=0, closefd=False))
            self._errors, self._pipes = errors, parent.pop_all()

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes that the copy makes; raises a ProcessCopyError if it failed."""
        ready = select.poll()
        ready.register(self._data, select.POLLIN)
        while (left := self._deadline - monotonic()) > 0:
            if ready.poll(1e3 * min(left, self._stall_timeout)):
                piece = self._data.read(_PIPE_BYTES)
                if not piece:
                    self._require_done(self._exit_code())
                    return
                yield piece
            elif self._stall_timeout < left:
                msg = f"the copy of the process sent nothing for {self._stall_timeout:g} s"
                raise ProcessCopyError(msg)
        msg = f"it was not done after {self._timeout:g} s"
        raise ProcessCopyError(msg)

    def close(self) -> None:
        """Kill the copy if it has not ended, and wait for its end."""
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)  # its id is not reused before waitpid
            self._exit_code()
        self._pipes.close()

    def _exit_code(self) -> int:
        """Wait for the end, and return the exit code, or less than 0 for a signal."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def _require_done(self, code: int) -> None:
        if code > 0:
            raise ProcessCopyError(os.read(self._errors, _MESSAGE).decode("utf-8", "replace"))
        if code < 0:
            msg = (
                f"{signal.Signals(-code).name} ended the copy of the process; was there enough "
                "memory for it?"
            )
            raise ProcessCopyError(msg)


def _pipe(parent: ExitStack, child: ExitStack) -> tuple[int, int]:
    """Open a pipe from the child to the parent; each end is closed with its owner."""
    reading, writing = os.pipe()
    parent.callback(os.close, reading)
    child.callback(os.close, writing)
    with suppress(AttributeError, OSError):  # on other systems, or beyond the limit of a user
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return reading, writing


def _fork(make: Callable[[], Iterable[Piece]], to: int, errors_to: int) -> int:
    parent = os.getpid()
    with _signals_blocked(), warnings.catch_warnings():
        # From Python 3.12 on a fork with threads warns, since their locks stay locked in the copy;
        # the copy needs none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
        if pid == 0:
            _run(make, to, errors_to, parent)
    return pid


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals: the copy must not run the handlers of the service."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(make: Callable[[], Iterable[Piece]], to: int, errors_to: int, parent: int) -> NoReturn:
    """Make the bytes, send them, and end without side effects."""
    code = 1
    try:
        _detach(parent)
        with open(to, "wb", buffering=_PIPE_BYTES, closefd=False) as writing:
            writing.writelines(make())
        code = 0
    except BaseException as error:  # noqa: BLE001 - it has no caller
        with suppress(BaseException):
            message = f"{type(error).__name__}: {error}"
            os.write(errors_to, message.encode("utf-8", "replace")[:_MESSAGE])
    finally:
        os._exit(code)  # no exit handlers, no buffers: they are the parent's


def _detach(parent: int) -> None:
    """Let the copy end with its parent, and reset its signals, priority and memory settings."""
    if _prctl is not None:
        _prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)) or number == signal.SIGPIPE:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.nice(_NICENESS)
    with suppress(OSError):  # if memory runs out, the copy is killed and not the service
        Path("/proc/self/oom_score_adj").write_bytes(b"1000")
    gc.disable()  # it would write to, and so duplicate, the pages of all objects


_STALL_TIMEOUT, _TIMEOUT = 300.0, 3600.0  # seconds


class SnapshotResult(NamedTuple):
    """Result of a snapshot."""

    partition: int
    offset: int  # at which the changelog continues
    size: int  # bytes
    seconds: float  # that it took
    error: str | None  # why it was not saved, as a sentence


class BackgroundSnapshotter:
    """Makes and saves snapshots in the background, one at a time.

    `save` is called in a thread with partition, offset and the pieces of a snapshot; if the pieces
    raise, it must raise too, and save nothing. `then` is called in that thread with the partition
    after a snapshot is saved. A snapshot is abandoned after `stall_timeout` seconds without a byte,
    and in any case after `timeout` seconds.

    Examples
    --------
    >>> from abers.stream import Processor
    >>> kept = {}
    >>> def save(partition, offset, pieces):
    ...     kept[offset] = b"".join(pieces)
    >>> saver = BackgroundSnapshotter(save)
    >>> processor = Processor()
    >>> saver.start(0, 17, processor.snapshot_pieces)
    True
    >>> saver.close()
    >>> [(one.partition, one.offset, one.error) for one in saver.finished()]
    [(0, 17, None)]
    >>> kept[17] == processor.snapshot()
    True
    """

    def __init__(
        self,
        save: Callable[[int, int, Iterator[bytes]], object],
        then: Callable[[int], object] = lambda _: None,
        *,
        stall_timeout: float = _STALL_TIMEOUT,
        timeout: float = _TIMEOUT,
    ) -> None:
        self._save, self._then = save, then
        self._stall_timeout, self._timeout = stall_timeout, timeout
        self._thread: Thread | None = None
        self._done: SimpleQueue[SnapshotResult] = SimpleQueue()

    def start(self, partition: int, offset: int, make: Callable[[], Iterable[Piece]]) -> bool:
        """Start a snapshot of the current state; return False if another snapshot is running.

        `make` returns the bytes in pieces, and is called in a copy of this process, which ends with
        the calling thread. The changelog of the partition continues at `offset`.
        """
        if self.busy():
            return False
        started, copy = monotonic(), None
        try:
            copy = ProcessCopy(make, self._stall_timeout, self._timeout)
            job, name = (copy, partition, offset, started), f"snapshot-{partition}"
            thread = Thread(target=self._save_pieces, args=job, name=name, daemon=True)
            thread.start()
        except (OSError, RuntimeError) as error:
            if copy is not None:
                copy.close()
            failure = f"no {'copy of the process' if copy is None else 'thread'}: {error}"
            self._done.put(SnapshotResult(partition, offset, 0, 0.0, failure))
        else:
            self._thread = thread
        return True

    def busy(self) -> bool:
        """Return whether a snapshot is running."""
        return self._thread is not None and self._thread.is_alive()

    def finished(self) -> list[SnapshotResult]:
        """Return the results since the last call; never waits."""
        return [self._done.get_nowait() for _ in range(self._done.qsize())]

    def close(self, timeout: float | None = None) -> None:
        """Wait at most so many seconds for a running snapshot, and abandon it otherwise."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _save_pieces(self, copy: ProcessCopy, partition: int, offset: int, started: float) -> None:
        """Save the bytes that a copy makes; the body of the thread."""
        size = 0

        def pieces() -> Iterator[bytes]:
            nonlocal size
            for piece in copy.pieces():
                size += len(piece)
                yield piece

        error = None
        try:
            self._save(partition, offset, pieces())
        except ProcessCopyError as failure:
            error = str(failure)
        except Exception as failure:  # noqa: BLE001 - anything a disk or a storage raises
            error = f"{type(failure).__name__}: {failure}"
        finally:
            copy.close()
        self._done.put(SnapshotResult(partition, offset, size, monotonic() - started, error))
        if error is None:
            self._then(partition)
