"""Watchdog that ends the process if the broker does not answer, or the loop does not move.

Some calls of Kafka clients never return when a broker dies, and a record, a learner or a library
can block the interpreter. Nothing in the process can cancel either. So the process ends,
and its supervisor restarts it. The timer of the native core does that without the interpreter.
"""

from __future__ import annotations

import logging
import math
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from abers.backends import core
from abers_connectors.logs import critical_line

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Limit", "Watchdog"]

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
