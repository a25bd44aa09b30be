"""What a service tells systemd, if that started it (`Type=notify`).

Governing rule: nobody waits for systemd, and nothing fails because it does not
listen; without it nothing is sent.
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
    """Whoever started the process, and wants to know how it is.

    Parameters
    ----------
    environ
        Where systemd says how it is told: ``NOTIFY_SOCKET``, and ``WATCHDOG_USEC`` if it wants a
        sign of life.
    clock
        Monotonic, in seconds.

    Examples
    --------
    >>> Supervisor({}).ready()  # nobody is told
    """

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        path = environ.get("NOTIFY_SOCKET", "")
        # "@" stands for the null byte of a name that is not in the file system.
        self._address = f"\0{path[1:]}" if path.startswith("@") else path
        self._clock, self._last = clock, float("-inf")
        self._interval = _interval(environ)

    def ready(self) -> None:
        """Tell that the service serves."""
        self._send("READY=1")

    def stopping(self) -> None:
        """Tell that it ends."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Give a sign of life, if one is wanted and due; this may be called at every turn."""
        if self._interval is not None and self._clock() - self._last >= self._interval:
            self._last = self._clock()
            self._send("WATCHDOG=1")

    def say(self, sentence: str) -> None:
        """Tell what the service does, for `systemctl status`."""
        self._send(f"STATUS={' '.join(sentence.split())}")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.settimeout(0.0)
            line.sendto(message.encode(), self._address)


def _interval(environ: Mapping[str, str]) -> float | None:
    """Give the seconds between two signs: half of what systemd waits; None if it wants none."""
    wanted = environ.get("WATCHDOG_USEC", "")
    ours = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(wanted) / 2_000_000 if ours and wanted.isascii() and wanted.isdecimal() else None
