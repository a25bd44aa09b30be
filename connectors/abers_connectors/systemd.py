"""Notifications to systemd (`Type=notify`).

Sending never blocks and never fails; without systemd nothing is sent.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Supervisor"]


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
