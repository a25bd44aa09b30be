"""Server-sent events: to each reader the parts of the newest page that changed, and nothing else.

There is no queue. A slow reader misses pages and gets the newest when there is room again; a
reader that reads nothing is disconnected by the server's time limit.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Send

    from abers_connectors.dashboard.feed import Feed
    from abers_connectors.dashboard.live_document import LiveDocument
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
        self._newest: tuple[LiveDocument | None, LiveDocument | None, bytes] = None, None, b""

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
        last: LiveDocument | None = None
        await send(_body(b"retry: 2000\n\n"))
        while not (disconnected.done() or self._feed.closed):
            changed.clear()
            page = await self._pages.page(key)
            if last is None or not _same(page, last):
                await send(_body(self._event(page, last)))
                last = page
            try:
                await asyncio.wait_for(changed.wait(), _SILENCE)
            except TimeoutError:
                await send(_body(b": still here\n\n"))
        await send({"type": "http.response.body", "body": b""})

    def _event(self, page: LiveDocument, last: LiveDocument | None) -> bytes:
        """Return an event, which is encoded once for all readers that have the same page."""
        known, before, event = self._newest
        if known is not page or before is not last:
            data = msgspec.json.encode(_since(page, last))
            event = b"event: page\ndata: " + data + b"\n\n"
            self._newest = page, last, event
        return event


def _same(page: LiveDocument, last: LiveDocument) -> bool:
    """Return whether a reader sees the same: it counts the age of the last label itself."""
    return page == replace(last, age=page.age)


def _since(page: LiveDocument, last: LiveDocument | None) -> LiveDocument:
    """Return a page with only the parts that differ from those that the reader has."""
    if last is None:
        return page
    parts = {key: one for key, one in page.parts.items() if one != last.parts.get(key)}
    return replace(page, parts=parts)


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
