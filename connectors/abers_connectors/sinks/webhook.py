"""Alarms posted to a webhook as JSON.

A webhook never delays a stream nor makes it fail: an alarm that cannot be delivered soon is
dropped and counted. Its URL may be a secret, so messages name only the host.
"""

from __future__ import annotations

import logging
import threading
from http.client import HTTPException
from queue import Full, Queue
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import abers
from abers_connectors.http_client import ask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Webhook"]

_log = logging.getLogger(__name__)

_QUEUED = 100  # alarms
_TIMEOUT = 10.0  # seconds of an attempt
_PAUSES = (1.0, 5.0, 30.0)  # seconds before further attempts
_END = 5.0  # seconds for queued alarms when the process ends
_RETRIED = {408, 425, 429}  # besides all errors of a server
_ERROR = 500
_SENT = range(200, 300)


class Webhook:
    """Posts alarms to a URL in a thread of its own.

    `count` is called with the result of each alarm: "sent", "failed", or "dropped" from a full
    queue. An attempt may take `timeout` seconds; `pauses` are the seconds before further attempts.
    """

    def __init__(
        self,
        url: str,
        count: Callable[[str], object] = lambda _: None,
        *,
        pauses: Sequence[float] = _PAUSES,
        timeout: float = _TIMEOUT,
    ) -> None:
        self._url, self._host, self._count = url, urlsplit(url).hostname, count
        self._pauses, self._timeout = (0.0, *pauses), timeout
        self._queue: Queue[bytes | None] = Queue(_QUEUED)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        self._thread.start()

    def post(self, alarm: bytes) -> None:
        """Queue an alarm; return at once."""
        try:
            self._queue.put_nowait(alarm)
        except Full:
            self._drop("dropped", f"{_QUEUED} others wait")

    def close(self) -> None:
        """Try to post the queued alarms once more, for a few seconds."""
        self._closing.set()
        try:
            self._queue.put_nowait(None)
        except Full:
            return
        self._thread.join(_END)

    def _run(self) -> None:
        for alarm in iter(self._queue.get, None):
            self._deliver(alarm)

    def _deliver(self, alarm: bytes) -> None:
        """Send an alarm, with pauses between attempts, and drop it if all fail."""
        why = ""
        for pause in self._pauses:
            if pause and self._closing.wait(pause):
                break
            try:
                status = self._send(alarm)
            except (OSError, HTTPException) as error:
                why = type(error).__name__  # without its message, which may have the URL
                continue
            if status in _SENT:
                self._count("sent")
                return
            why = f"it answers {status}"
            if status < _ERROR and status not in _RETRIED:
                break
        self._drop("failed", why)

    def _send(self, alarm: bytes) -> int:
        headers = {"Content-Type": "application/json", "User-Agent": f"abers/{abers.__version__}"}
        return ask(self._url, headers, alarm, seconds=self._timeout, most=0).status

    def _drop(self, result: str, why: str) -> None:
        self._count(result)
        _log.warning("an alarm could not be posted to %s: %s", self._host, why)
