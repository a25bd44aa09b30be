"""A timer that ends the process unless it is stopped in time: a specification of the native core.

This one is a thread of Python, so it ends no process whose interpreter is locked; the native one
does.
"""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime

__all__ = ["ExitTimer"]

_STDERR = 2  # its descriptor


class ExitTimer:
    """A timer whose thread wakes up once in `period` seconds.

    It counts the times that it woke up and reads no clock: after a process was stopped, it has
    woken up once, however long that took.
    """

    def __init__(self, period: float) -> None:
        self._period, self._left = period, 0
        self._before = self._after = ""
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="exit-timer", daemon=True)
        self._thread.start()

    def start(self, periods: int, before: str, after: str) -> None:
        """End the process with 75 after so many whole periods.

        A line on standard error then has the time between the two parts.
        """
        with self._lock:
            self._left = periods + 1  # the first to end has begun before
            self._before, self._after = before, after

    def stop(self) -> None:
        """End no process until the timer is started again."""
        with self._lock:
            self._left = 0

    def close(self) -> None:
        """Stop, and end the thread."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(self._period):
            with self._lock:
                if self._left > 0:
                    self._left -= 1
                    if self._left == 0:
                        self._end()

    def _end(self) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        os.write(_STDERR, f"{self._before}{time}{self._after}".encode())
        os._exit(os.EX_TEMPFAIL)
