"""Server-sent events: the newest page to each reader, and nothing else.

There is no queue. A slow reader misses pages and gets the newest one when there is room again; a
reader that reads nothing is disconnected by the server's time limit.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Send

    from abers_connectors.dashboard.feed import Feed
    from abers_connectors.dashboard.models import Key
    from abers_connectors.dashboard.page_cache import PageCache

__all__ = ["EventStreams"]

_MAX_READERS = 32  # at once
_SILENCE = 15.0  # seconds without a page after which a comment keeps the connection open
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # a proxy such as nginx passes each event on at once
]


class EventStreams:
    """Event streams of all readers."""

    def __init__(self, feed: Feed, pages: PageCache) -> None:
        self._feed, self._pages = feed, pages
        self._open = 0

    @property
    def full(self) -> bool:
        """Whether no more readers are accepted."""
        return self._open >= _MAX_READERS

    def response(self, key: Key | None) -> ASGIApp:
        """Return the response that shows one model."""
        return lambda _, receive, send: self._serve(key, receive, send)

    async def _serve(self, key: Key | None, receive: Receive, send: Send) -> None:
        """Send pages until the client disconnects, or the server ends."""
        changed, loop = asyncio.Event(), asyncio.get_running_loop()
        disconnected = asyncio.create_task(_disconnected(receive, changed))
        self._open += 1
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            with self._feed.listening(key, lambda: _wake(loop, changed)):
                await self._send(key, disconnected, changed, send)
        finally:
            self._open -= 1
            disconnected.cancel()

    async def _send(
        self, key: Key | None, disconnected: asyncio.Task[None], changed: asyncio.Event, send: Send
    ) -> None:
        """Send the page at once and after each change, until the reader or the feed ends."""
        last = b""
        await send(_body(b"retry: 2000\n\n"))
        while not (disconnected.done() or self._feed.closed):
            changed.clear()
            page = await self._pages.page(key)
            if page != last:
                await send(_body(b"event: page\ndata: " + page + b"\n\n"))
                last = page
            try:
                await asyncio.wait_for(changed.wait(), _SILENCE)
            except TimeoutError:
                await send(_body(b": still here\n\n"))
        await send({"type": "http.response.body", "body": b""})


async def _disconnected(receive: Receive, changed: asyncio.Event) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
    changed.set()


def _wake(loop: asyncio.AbstractEventLoop, changed: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the server has ended
        loop.call_soon_threadsafe(changed.set)


def _body(text: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": text, "more_body": True}
