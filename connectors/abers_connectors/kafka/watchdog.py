"""Ends a process whose broker does not answer.

Governing rule: some calls of Kafka clients never return when the broker dies,
and nothing in the process can end them; so the process ends, and whoever
supervises it starts it again.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from abers_connectors.exits import UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Watchdog"]

_CHECKS = 20  # in the time that a call may take


class Watchdog:
    """Watches calls, one at a time.

    Parameters
    ----------
    seconds
        How long a call may take.
    say
        Told in a sentence which call took longer, before the process ends.
    end
        Ends it.

    Attributes
    ----------
    seconds
        As given.
    """

    def __init__(
        self,
        seconds: float,
        say: Callable[[str], None],
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self.seconds, self._say, self._end = seconds, say, end
        self._call: tuple[str, float] | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """Watch what happens in a `with` block."""
        self._call = (name, time.monotonic() + self.seconds)
        try:
            yield
        finally:
            self._call = None

    def close(self) -> None:
        """Watch no more."""
        self._closed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(self.seconds / _CHECKS):
            call = self._call
            if call is not None and time.monotonic() > call[1]:
                self._say(
                    f"the broker did not answer {call[0]} within {self.seconds:g} s "
                    "(kafka.watchdog); ending, to be started again"
                )
                self._end(UNAVAILABLE)
                return
