"""Routes of the live page: the page, its style, its script, and its events.

Server-sent events: to each reader the parts of the newest page that changed, and nothing else.
There is no queue. A slow reader misses pages and gets the newest when there is room again; a reader
that reads nothing is disconnected by the server's time limit.

The page requests nothing but these, from the server it came from, and runs no other script; its
content security policy says so.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from abers_connectors.dashboard.live_document import (
    LISTED,
    LONGEST,
    LiveDocument,
    live_document,
    live_page,
    live_script,
    live_style,
    model_list,
    waiting_document,
)
from abers_connectors.http.connections import STREAM
from abers_connectors.http.middleware import (
    ChunkedResponse,
    ConcurrencyLimit,
    HostCheck,
    SharedWork,
    TokenGuard,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Send

    from abers_connectors.dashboard.feed import Feed, Frame
    from abers_connectors.dashboard.observer import Key

__all__ = ["PageCache", "live_routes"]

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


_KEPT = 40  # pages: a few more than readers at once


class PageCache:
    """Draws pages of frames, each once, and keeps a bounded number of them."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._made: OrderedDict[Key | None, tuple[int, LiveDocument | None]] = OrderedDict()
        self._drawing = SharedWork[LiveDocument]("live-page")

    def __len__(self) -> int:
        """Return the number of pages kept."""
        return len(self._made)

    async def page(self, key: Key | None) -> LiveDocument:
        """Return the document of a model and segment.

        The key None is the model with most labels. All names that no model has share one page.
        """
        frame = self._feed.frame(key)
        if frame is None:
            return waiting_document(self._feed)
        number, page = self._made.get(frame.key, (0, None))
        if page is None or number != frame.number:
            page = await self._drawing.get((frame.number, frame.key), partial(self._draw, frame))
            self._made[frame.key] = frame.number, page
        self._made.move_to_end(frame.key)
        while len(self._made) > _KEPT:
            self._made.popitem(last=False)
        return page

    def close(self) -> None:
        """Draw no more."""
        self._drawing.close()

    def _draw(self, frame: Frame) -> LiveDocument:
        with self._feed.budget.spent(drawing=True):
            return live_document(self._feed.title, self._feed.zone, frame)


_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SAFE = {
    "content-security-policy": _POLICY,
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_SCRIPT = "text/javascript"
_DIGITS = 9  # of a number in a query
_NO_CACHE = {"cache-control": "no-cache"}


def live_routes(
    feed: Feed,
    closing: Callable[[Callable[[], None]], object],
    names: Collection[str],
    token: str | None,
) -> list[Route]:
    """Return the routes of a page: "/", and all below "/live/".

    `closing` registers a function to call at the end. The names are host names of the server,
    besides addresses and localhost. Without a token anyone may see the page.
    """
    cache = PageCache(feed)
    closing(cache.close)
    streams = EventStreams(feed, cache)

    async def listen(request: Request) -> Any:  # noqa: ANN401 - any ASGI application will do
        if request.method == "HEAD":  # which would be an answer without an end or a body
            return Response()
        if streams.full:
            return PlainTextResponse("Too many pages are open.", 503, {"retry-after": "10"})
        try:
            key = _key(request.query_params.get("model"))
        except msgspec.DecodeError:
            return PlainTextResponse("There is no such model.", 400)
        return streams.response(key)

    async def models(request: Request) -> Response:
        asked = request.query_params
        try:
            offset, limit = _number(asked, "offset", 0), _number(asked, "limit", LISTED)
        except ValueError as error:
            return PlainTextResponse(str(error), 400)
        found = model_list(feed.models, asked.get("search", ""), offset, min(limit, LONGEST))
        body = msgspec.json.encode(found)
        fresh = _SAFE | {"cache-control": "no-store"}
        return ChunkedResponse(body, headers=fresh, media_type="application/json")

    def route(path: str, response: Callable[[], Response]) -> Route:
        async def answer(_: Request) -> Response:
            return response()

        return _limited(Route(path, answer))

    def text(body: str, kind: str, cached: dict[str, str]) -> Callable[[], Response]:
        return lambda: Response(body, headers=_SAFE | cached, media_type=kind)

    page = live_page(feed.title)
    ours = [
        route("/", text(page, "text/html", {"cache-control": "no-store"})),
        route("/live/page.css", text(live_style(), "text/css", _NO_CACHE)),
        route("/live/page.js", text(live_script(), _SCRIPT, _NO_CACHE)),
        _limited(Route("/live/models", models)),
        Route(STREAM, listen),  # which counts its readers itself
    ]
    return [_guarded(route, names, token) for route in ours]


def _guarded(route: Route, names: Collection[str], token: str | None) -> Route:
    guarded: ASGIApp = route.app if token is None else TokenGuard(route.app, token)
    route.app = HostCheck(guarded, names)
    return route


def _limited(route: Route) -> Route:
    route.app = ConcurrencyLimit(route.app)
    return route


def _number(asked: Mapping[str, str], name: str, usual: int) -> int:
    """Return a number of a query; raise a ValueError for other text."""
    text = asked.get(name, str(usual))
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        msg = f"{name} must be a whole number of at most {_DIGITS} digits."
        raise ValueError(msg)
    return int(text)


def _key(text: str | None) -> Key | None:
    return None if text is None else msgspec.json.decode(text, type=tuple[str, str])
