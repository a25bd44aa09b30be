"""Alarms to a web hook: each is posted there as JSON.

Governing rule: nothing here holds a stream up or makes it fail. What cannot be delivered soon is
given up and counted; and an address may be a secret, so nothing but its host is ever told.
"""

from __future__ import annotations

import logging
import threading
from http.client import HTTPException
from queue import Full, Queue
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import abers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Webhook"]

_log = logging.getLogger(__name__)

_WAITING = 100  # alarms
_PATIENCE = 10.0  # seconds for an answer
_PAUSES = (1.0, 5.0, 30.0)  # before further attempts
_END = 5.0  # seconds for what waits when the process ends
_AGAIN = {408, 425, 429}  # what may be different later, beside all errors of a server
_ERROR = 500


class _Straight(HTTPRedirectHandler):
    """Follows no redirection: an alarm goes nowhere but where it was to go."""

    def redirect_request(self, *_: object) -> None:
        return None


class Webhook:
    """Posts alarms from a thread of its own.

    Parameters
    ----------
    url
        Where to.
    count
        Told what became of each alarm: "sent", "failed", or "dropped" because too many waited.
    pauses
        Seconds before each further attempt.
    patience
        Seconds that an attempt may take.
    """

    def __init__(
        self,
        url: str,
        count: Callable[[str], object] = lambda _: None,
        *,
        pauses: Sequence[float] = _PAUSES,
        patience: float = _PATIENCE,
    ) -> None:
        self._url, self._host, self._count = url, urlsplit(url).hostname, count
        self._pauses, self._patience = (0.0, *pauses), patience
        self._opener = build_opener(_Straight)
        self._queue: Queue[bytes | None] = Queue(_WAITING)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        self._thread.start()

    def tell(self, alarm: bytes) -> None:
        """Have an alarm posted; at once, whether or not anybody answers."""
        try:
            self._queue.put_nowait(alarm)
        except Full:
            self._give_up("dropped", f"{_WAITING} others wait")

    def close(self) -> None:
        """Let what waits have one more attempt, for a few seconds."""
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
        why = ""
        for pause in self._pauses:
            if pause and self._closing.wait(pause):
                break
            try:
                self._post(alarm)
            except HTTPError as error:
                why = f"it answers {error.code}"
                error.close()
                if error.code < _ERROR and error.code not in _AGAIN:
                    break
            except (OSError, HTTPException) as error:
                why = _kind(error)
            else:
                self._count("sent")
                return
        self._give_up("failed", why)

    def _post(self, alarm: bytes) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": f"abers/{abers.__version__}"}
        request = Request(self._url, alarm, headers, method="POST")  # noqa: S310 - http or https
        with self._opener.open(request, timeout=self._patience):
            pass

    def _give_up(self, what: str, why: str) -> None:
        self._count(what)
        _log.warning("an alarm could not be told to %s: %s", self._host, why)


def _kind(error: Exception) -> str:
    """Name an error without its words, which may hold the address."""
    reason = error.reason if isinstance(error, URLError) else error
    return type(reason).__name__ if isinstance(reason, Exception) else "URLError"
