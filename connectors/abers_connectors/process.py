"""The process of a service: its memory, its watchdog, and its supervisor.

Watchdog that ends the process if the broker does not answer, or the loop does not move. Some calls
of Kafka clients never return when a broker dies, and a record, a learner or a library can block the
interpreter. Nothing in the process can cancel either. So the process ends, and its supervisor
restarts it. The timer of the native core does that without the interpreter.

Notifications to systemd (`Type=notify`). Sending never blocks and never fails; without systemd
nothing is sent.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import socket
import time
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from abers.backends import core
from abers_connectors.logs import critical_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = [
    "Limit",
    "Supervisor",
    "Watchdog",
    "memory_limit",
    "memory_sentence",
    "return_freed_memory",
]

_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1  # names of glibc's mallopt
_MOST_ARENAS = 2
_LARGE = 1 << 20  # bytes of a block that is the system's again as soon as it is free
_SPARE = 8 << 20  # bytes at the end of an arena that may stay free


def return_freed_memory() -> bool:
    """Let the allocator return free memory to the system; False where it is not glibc's.

    Call it before the first thread starts.

    Notes
    -----
    Without it glibc gives eight arenas to each processor, and threads use them in turns. Once a
    large block was freed, each arena keeps the most that it ever had, such as a part of a
    snapshot: after minutes, a service with 10 MB of state kept 115 MB that were free.

    Examples
    --------
    >>> return_freed_memory() in {True, False}
    True
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    settings = (_ARENA_MAX, _MOST_ARENAS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _SPARE)
    return all(mallopt(name, value) for name, value in settings)


_PROCESS = 150 << 20  # bytes of a process without state, as in docs/deploy.md
_CGROUP_FILES = ("memory.max", "memory/memory.limit_in_bytes")  # of version 2 and 1


def memory_limit(cgroup: str = "/sys/fs/cgroup") -> int | None:
    """Return the bytes of memory of this container or machine; None if they are unknown.

    `cgroup` is the folder in which the kernel says what a container may take.

    Examples
    --------
    >>> (memory_limit() or 1 << 40) > 1 << 20
    True
    """
    return min(_known(cgroup), default=None)


def memory_sentence(states: int, limit: int | None) -> str | None:
    """Return a warning if states of so many bytes leave no room to save them; None if they do.

    Examples
    --------
    >>> memory_sentence(400 << 20, 1 << 30) is None
    True
    >>> memory_sentence(500 << 20, 1 << 30)[:68]
    'the states of this process take about 500 MiB, and it may take 1,024'
    """
    if limit is None or _PROCESS + 2 * states <= limit:
        return None
    return (
        f"the states of this process take about {states >> 20:,} MiB, and it may take "
        f"{limit >> 20:,} MiB; while they are saved they may take twice as much, and then the "
        "system ends the process. Give it more memory, start more processes, or keep less: "
        "shorten limits.label_timeout or limits.dedup_ttl, or set limits.retire_after"
    )


def _known(cgroup: str) -> Iterator[int]:
    for name in _CGROUP_FILES:
        with suppress(OSError, ValueError):  # "max" means no limit
            yield int((Path(cgroup) / name).read_text("ascii"))
    with suppress(OSError, ValueError, AttributeError):
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


_CHECKS = 20  # per timeout
_LINES = 100  # that are kept
_ENDING = "ending, to be restarted"

_log = logging.getLogger(__name__)


class Limit(NamedTuple):
    """Seconds that a call may take, and the key of the configuration that says so."""

    seconds: float
    key: str


class Watchdog:
    """Watches calls, one at a time, and between them the loop, once it has moved.

    If either takes longer than so many seconds, the process ends with 75, and a critical line of
    the log says what hangs. A process that was stopped meanwhile gets the time that was left.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._own = Limit(seconds, "kafka.stall_timeout")
        self._period = seconds / _CHECKS
        self._timer = core.ExitTimer(self._period)
        self._looping, self._doing = False, ""
        self._line = lru_cache(_LINES)(lambda sentence: critical_line(_log, sentence))

    @contextmanager
    def call(self, name: str, limit: Limit | None = None) -> Iterator[None]:
        """Watch the body of a `with` block, which may have a limit of its own."""
        own = limit or self._own
        self._start(own, f"the broker did not answer {name} within {own.seconds:g} s ({own.key})")
        try:
            yield
        finally:
            self._go_on()

    def progressed(self, doing: str = "") -> None:
        """Watch the loop, which has moved, and must move again in time; what it does is shown."""
        self._looping, self._doing = True, doing
        self._go_on()

    def rest(self) -> None:
        """Watch the loop no more: it has ended."""
        self._looping, self._doing = False, ""
        self._go_on()

    def close(self) -> None:
        """Stop watching."""
        self._timer.close()

    def _go_on(self) -> None:
        if not self._looping:
            self._timer.stop()
            return
        seconds, key = self._own
        doing = f" while {self._doing}" if self._doing else ""
        self._start(
            self._own,
            f"the loop has not moved for {seconds:g} s ({key}){doing}: a record, a learner or a "
            "library blocks it, or the interpreter does not answer",
        )

    def _start(self, limit: Limit, sentence: str) -> None:
        periods = math.ceil(limit.seconds / self._period)
        self._timer.start(periods, *self._line(f"{sentence}; {_ENDING}"))


class Supervisor:
    """The service manager that started this process, if there is one.

    In the environment, systemd sets ``NOTIFY_SOCKET``, and ``WATCHDOG_USEC`` for a watchdog. The
    clock is monotonic, in seconds.

    Examples
    --------
    >>> Supervisor({}).ready()  # sends nothing
    """

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        path = environ.get("NOTIFY_SOCKET", "")
        # "@" stands for the null byte of an abstract socket, which is not in the file system.
        self._address = f"\0{path[1:]}" if path.startswith("@") else path
        self._clock, self._last = clock, float("-inf")
        self._interval = _interval(environ)

    def ready(self) -> None:
        """Report that the service serves."""
        self._send("READY=1")

    def stopping(self) -> None:
        """Report that the service is shutting down."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Reset the watchdog if that is due; cheap enough to call in every loop."""
        if self._interval is not None and self._clock() - self._last >= self._interval:
            self._last = self._clock()
            self._send("WATCHDOG=1")

    def say(self, sentence: str) -> None:
        """Set the status line of `systemctl status`."""
        self._send(f"STATUS={' '.join(sentence.split())}")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.settimeout(0.0)
            line.sendto(message.encode(), self._address)


def _interval(environ: Mapping[str, str]) -> float | None:
    """Return half the timeout of the watchdog in seconds, or None without a watchdog."""
    timeout = environ.get("WATCHDOG_USEC", "")
    ours = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(timeout) / 2_000_000 if ours and timeout.isascii() and timeout.isdecimal() else None
