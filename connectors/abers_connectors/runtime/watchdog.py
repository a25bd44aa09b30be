"""Watchdog that ends the process if the broker does not answer.

Some calls of Kafka clients never return when a broker dies, and nothing in the process can cancel
them. So the process ends, and its supervisor restarts it.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Limit", "Watchdog"]

_CHECKS = 20  # per timeout


class Limit(NamedTuple):
    """Seconds that a call may take, and the key of the configuration that says so."""

    seconds: float
    key: str


class _Call(NamedTuple):
    """A call that is watched."""

    name: str
    begun: float
    limit: Limit


class Watchdog:
    """Watches calls, one at a time.

    If a call takes longer than so many seconds, `log` is called with a sentence about it, and `end`
    ends the process.
    """

    def __init__(
        self, seconds: float, log: Callable[[str], None], end: Callable[[int], object] = os._exit
    ) -> None:
        self.seconds, self._log, self._end = seconds, log, end
        self._call: _Call | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    @contextmanager
    def call(self, name: str, limit: Limit | None = None) -> Iterator[None]:
        """Watch the body of a `with` block, which may have a limit of its own."""
        own = Limit(self.seconds, "kafka.stall_timeout")
        self._call = _Call(name, time.monotonic(), limit or own)
        try:
            yield
        finally:
            self._call = None

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(self.seconds / _CHECKS):
            call = self._call
            if call is not None and time.monotonic() > call.begun + call.limit.seconds:
                self._log(
                    f"the broker did not answer {call.name} within {call.limit.seconds:g} s "
                    f"({call.limit.key}); ending, to be restarted"
                )
                self._end(os.EX_TEMPFAIL)
                return
