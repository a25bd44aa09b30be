"""Server-sent events: the newest page to each who listens, and nothing else.

Governing rule: there is no queue. Who reads slowly misses pages, and gets the newest when there is
room again; who does not read at all is let go by the server's patience with its connection.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from abers_connectors.live.feed import Feed
    from abers_connectors.live.view import Views
    from abers_connectors.models import Key

__all__ = ["Events"]

_MOST = 32  # who listen at once
_SILENCE = 15.0  # seconds after which a word shows that the connection is there
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # a proxy such as nginx passes each event on at once
]


class Events:
    """Who listens, and what they are sent.

    Parameters
    ----------
    feed
        Gives frames.
    views
        Makes pages of frames.
    """

    def __init__(self, feed: Feed, views: Views) -> None:
        self._feed, self._views = feed, views
        self._listening = 0

    @property
    def full(self) -> bool:
        """Whether nobody more may listen."""
        return self._listening >= _MOST

    def of(self, key: Key | None) -> Stream:
        """Make a response that tells of one model and segment."""
        return Stream(self, key)

    async def serve(self, key: Key | None, receive: Receive, send: Send) -> None:
        """Send pages until the client goes, or the server ends."""
        changed, loop = asyncio.Event(), asyncio.get_running_loop()
        gone = asyncio.create_task(_gone(receive, changed))
        self._listening += 1
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            with self._feed.listening(key, lambda: _wake(loop, changed)):
                await self._send(key, gone, changed, send)
        finally:
            self._listening -= 1
            gone.cancel()

    async def _send(
        self, key: Key | None, gone: asyncio.Task[None], changed: asyncio.Event, send: Send
    ) -> None:
        last = b""
        await send(_body(b"retry: 2000\n\n"))
        while not (gone.done() or self._feed.closed):
            changed.clear()
            page = await self._views.page(key)
            if page != last:
                await send(_body(b"event: page\ndata: " + page + b"\n\n"))
                last = page
            try:
                await asyncio.wait_for(changed.wait(), _SILENCE)
            except TimeoutError:
                await send(_body(b": still here\n\n"))
        await send({"type": "http.response.body", "body": b""})


class Stream:
    """A response without an end, as starlette takes one."""

    def __init__(self, events: Events, key: Key | None) -> None:
        self._events, self._key = events, key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it."""
        del scope
        await self._events.serve(self._key, receive, send)


async def _gone(receive: Receive, changed: asyncio.Event) -> None:
    """Wait for the client to go."""
    while (await receive())["type"] != "http.disconnect":
        pass
    changed.set()


def _wake(loop: asyncio.AbstractEventLoop, changed: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the server has ended
        loop.call_soon_threadsafe(changed.set)


def _body(text: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": text, "more_body": True}
