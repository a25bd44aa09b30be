"""A limit of time for a process that got a signal to end.

Python runs the handler of a signal in the main thread, which may wait for a disk, a broker or
another thread without end. So may the code that closes things after the handler has raised. So the
first signal also starts a clock, in a thread of its own.
"""

from __future__ import annotations

import os
import signal
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, NamedTuple

from abers_connectors.exit_codes import show

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["allow", "watch_signals"]

_ENDING = (signal.SIGTERM, signal.SIGINT)
_SECONDS = 5.0  # for a command to remove what it has begun to write
_LAST_WORD = 1.0  # seconds for a message, as its reader may be what the process waits for


class _Patience(NamedTuple):
    """How long the process may take after the first signal, and what says that it took longer."""

    seconds: float
    say: Callable[[str], object]


class _Ending:
    """Waits for a signal, and then for the end of the process."""

    def __init__(self, patience: _Patience) -> None:
        self.patience = patience

    def watch(self, reading: int) -> None:
        """Read the numbers of signals from a pipe, until one is to end the process."""
        while (number := os.read(reading, 1)[0]) not in _ENDING:
            pass
        sleep(self.patience.seconds)
        message = (
            f"{signal.Signals(number).name} came {self.patience.seconds:g} s ago, and what the "
            "process waits for does not end; ending without it"
        )
        word = Thread(target=self.patience.say, args=(message,), daemon=True)
        word.start()
        word.join(_LAST_WORD)
        os._exit(128 + number)


_ending = _Ending(_Patience(_SECONDS, lambda message: show(f"error: {message}", err=True)))


def watch_signals() -> None:
    """End the process some seconds after its first SIGTERM or SIGINT, if it goes on till then."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    Thread(target=_ending.watch, args=(reading,), name="signals", daemon=True).start()


def allow(seconds: float, say: Callable[[str], object]) -> None:
    """Let the process take so long after a signal; `say` takes the message if it takes longer."""
    _ending.patience = _Patience(seconds, say)
