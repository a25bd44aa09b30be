"""Requests of an HTTP server: bounded, shared, and with a token.

Work that is done once for all concurrent requests, in a thread of its own. There is one thread, so
two pieces of work never run at once, and the event loop, which answers health checks, never waits
for it.

ASGI middleware that bounds one request, and all requests of a kind together. A request is checked
before an application sees it, and slow readers of one page never keep another page from its
readers. A site that points its own name at this machine reads nothing, since the browser of its
reader sends that name with each request. No name can be an IP address, so any address is allowed.

Access to the live page, by a token. The token goes into a cookie that no script can read, and into
no page and no log. Names that other sites point at this machine are refused before, by
`http.middleware.HostCheck`.
"""

from __future__ import annotations

import asyncio
import hmac
from asyncio import sleep
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from abers_connectors.http.credentials import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = [
    "ChunkedResponse",
    "ConcurrencyLimit",
    "HostCheck",
    "RequestLimits",
    "SharedWork",
    "TokenGuard",
]

T = TypeVar("T")


class SharedWork(Generic[T]):
    """A named thread for work; many requests await the same result."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._under_way: dict[Hashable, asyncio.Future[T]] = {}

    async def get(self, key: Hashable, work: Callable[[], T]) -> T:
        """Return the result of the work; concurrent calls with the same key share it."""
        future = self._under_way.get(key)
        if future is None:
            future = asyncio.get_running_loop().run_in_executor(self._thread, work)
            self._under_way[key] = future
            future.add_done_callback(lambda _: self._under_way.pop(key))
        return await asyncio.shield(future)

    def close(self) -> None:
        """Accept no more work, and drop what has not begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)


_UNKNOWN = (
    "This page is not served under this name, so that no other site can read it. Use an IP address "
    "or localhost, or add the name to http.hosts in the configuration."
)
_FIELDS = 64  # of the head of a request
_BODY = (b"content-length", b"transfer-encoding")
_CHUNK = 64 << 10  # bytes of a response that are sent at once
_CLOSE = {"connection": "close"}


class HostCheck:
    """Application that answers under an address, localhost or a known name only."""

    def __init__(self, app: ASGIApp, names: Collection[str] = ()) -> None:
        self._app = app
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        ours = all(map(self.knows, Headers(scope=scope).getlist("host") or [""]))
        app = self._app if ours else PlainTextResponse(_UNKNOWN, 403)
        await app(scope, receive, send)

    def knows(self, host: str) -> bool:
        """Return whether a host, perhaps with a port, is an address or a known name."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        try:
            ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return name.lower() in self._names
        return True


class RequestLimits:
    """Application that refuses requests with a body, or with too many header fields."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it and close its connection."""
        fields = scope["headers"]
        app = self._app
        if len(fields) > _FIELDS:
            app = PlainTextResponse("The request has too many header fields.", 431, _CLOSE)
        elif any(name in _BODY and value != b"0" for name, value in fields):
            app = PlainTextResponse("A request has no body here.", 413, _CLOSE)
        await app(scope, receive, send)


class ConcurrencyLimit:
    """Application that serves a bounded number of requests at once."""

    def __init__(self, app: ASGIApp, most: int = 32) -> None:
        self._app, self._most, self._taken = app, most, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or ask its client to come back."""
        if self._taken >= self._most:
            busy = PlainTextResponse("Too many clients ask for this.", 503, {"retry-after": "10"})
            await busy(scope, receive, send)
            return
        self._taken += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._taken -= 1


class ChunkedResponse(Response):
    """Large response: each chunk is sent when the client has taken the chunk before."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        del scope, receive
        head = {"type": "http.response.start", "status": self.status_code}
        await send(head | {"headers": self.raw_headers})
        body = bytes(self.body)
        for at in range(0, len(body), _CHUNK):
            chunk = body[at : at + _CHUNK]
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await sleep(0)  # others are next, and a client that is gone is noticed
        await send({"type": "http.response.body", "body": b""})


_COOKIE = "abers_live"
_WITHOUT = (
    "This page needs a token. Open it once with ?token=… after the address, where … is the token "
    f"in {TOKEN} or http.token_file; the browser then remembers it."
)


class TokenGuard:
    """Application for clients that know the token, as `token_of` returns it."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token
        # The cookie proves that the token was known, and does not contain it.
        self._proof = hmac.new(token.encode(), b"abers live page", sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        await (self._refusal(Request(scope)) or self._app)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        """Return None if the request may pass, otherwise a redirect with a cookie, or an error."""
        query = request.scope["query_string"].decode("latin-1")
        # A token has no space: one is an unescaped plus.
        given = parse_qs(query).get("token", [""])[-1].replace(" ", "+")
        if given and _equal(given, self._token):
            answer = RedirectResponse(request.scope["path"], 303, {"cache-control": "no-store"})
            secure = request.url.scheme == "https"
            answer.set_cookie(_COOKIE, self._proof, secure=secure, httponly=True, samesite="strict")
            return answer
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _equal(bearer.strip(), self._token):
            return None
        if _equal(request.cookies.get(_COOKIE, ""), self._proof):
            return None
        return PlainTextResponse(_WITHOUT, 401, {"www-authenticate": "Bearer"})


def _equal(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode(), right.encode())
