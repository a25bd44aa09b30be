"""A copy of the process that makes bytes and hands them over.

Governing rule: the copy touches nothing but its own two pipes: connections and files are the
parent's, and locks that other threads held at the fork stay locked in it for ever. It writes to as
little memory as can be, since each page that it writes to is there twice.
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
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from abers._sealed import Piece

__all__ = ["Copy", "CopyError"]

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_POLITE = 5  # the loop goes first
_PIPE = 1 << 20  # bytes: few turns of the interpreter lock for many of them
_SENTENCE = 4096  # bytes, which any pipe holds
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None  # found before a fork


class CopyError(Exception):
    """The copy did not hand over all of the bytes."""


class Copy:
    """A copy of this process as it is now.

    Parameters
    ----------
    make
        Gives the bytes in pieces; called in the copy.
    limit
        Seconds without a byte after which it is killed.

    Raises
    ------
    OSError
        If there can be none.
    """

    def __init__(self, make: Callable[[], Iterable[Piece]], limit: float) -> None:
        self._limit = limit
        self._code: int | None = None
        with ExitStack() as mine, ExitStack() as its:
            (data, to), (said, telling) = (_pipe(mine, its) for _ in range(2))
            self._pid = _forked(make, to, telling)
            self._data = mine.enter_context(open(data, "rb", buffering=0, closefd=False))
            self._said, self._pipes = said, mine.pop_all()

    def pieces(self) -> Iterator[bytes]:
        """Give what the copy makes, until it ends.

        Raises
        ------
        CopyError
            If it has not made all of it; the message says why.
        """
        ready = select.poll()
        ready.register(self._data, select.POLLIN)
        while ready.poll(1e3 * self._limit):
            piece = self._data.read(_PIPE)
            if not piece:
                self._require_done(self._ended())
                return
            yield piece
        msg = f"the copy of the process made nothing for {self._limit:g} s"
        raise CopyError(msg)

    def close(self) -> None:
        """End the copy, if it has not ended, and wait until it is gone."""
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)  # it is ours until somebody waits for it
            self._ended()
        self._pipes.close()

    def _ended(self) -> int:
        """Wait for the end, and give the exit code, or less than 0 for a signal."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def _require_done(self, code: int) -> None:
        if code > 0:
            raise CopyError(os.read(self._said, _SENTENCE).decode("utf-8", "replace"))
        if code < 0:
            msg = (
                f"the copy of the process was ended by {signal.Signals(-code).name}; was there "
                "memory for it?"
            )
            raise CopyError(msg)


def _pipe(mine: ExitStack, its: ExitStack) -> tuple[int, int]:
    """Open a pipe, whose ends are closed with what owns them."""
    reading, writing = os.pipe()
    mine.callback(os.close, reading)
    its.callback(os.close, writing)
    with suppress(AttributeError, OSError):  # elsewhere, or where a user may not have so much
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE)
    return reading, writing


def _forked(make: Callable[[], Iterable[Piece]], to: int, telling: int) -> int:
    parent = os.getpid()
    with _undisturbed(), warnings.catch_warnings():
        # From Python 3.12 on a fork beside threads warns, for their locks stay locked in the
        # copy; it needs none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
        if pid == 0:
            _copy(make, to, telling, parent)
    return pid


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold back signals: the copy must not run the handlers of the service."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _copy(make: Callable[[], Iterable[Piece]], to: int, telling: int, parent: int) -> NoReturn:
    """Make the bytes, hand them over, and end without a trace."""
    code = 1
    try:
        _be_alone(parent)
        with open(to, "wb", buffering=_PIPE, closefd=False) as writing:
            writing.writelines(make())
        code = 0
    except BaseException as error:  # noqa: BLE001 - there is nobody above
        with suppress(BaseException):
            said = f"{type(error).__name__}: {error}"
            os.write(telling, said.encode("utf-8", "replace")[:_SENTENCE])
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
    with suppress(OSError):  # where memory runs out, a snapshot is lost and not the service
        Path("/proc/self/oom_score_adj").write_bytes(b"1000")
    gc.disable()  # it would write to, and so copy, the pages of every object there is
