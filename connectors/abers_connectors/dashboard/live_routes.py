"""Routes of the live page: the page, its style, its script, and its events.

The page requests nothing but these, from the server it came from, and runs no other script; its
content security policy says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from abers_connectors.dashboard.access import TokenGuard
from abers_connectors.dashboard.live_page import live_page, live_script, live_style
from abers_connectors.dashboard.model_list import LISTED, LONGEST, model_list
from abers_connectors.dashboard.page_cache import PageCache
from abers_connectors.dashboard.server_events import EventStreams
from abers_connectors.http.connections import STREAM
from abers_connectors.http.middleware import ChunkedResponse, ConcurrencyLimit, HostCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from abers_connectors.dashboard.feed import Feed
    from abers_connectors.dashboard.models import Key

__all__ = ["live_routes"]

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
