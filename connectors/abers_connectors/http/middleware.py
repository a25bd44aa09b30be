"""ASGI middleware that bounds one request, and all requests of a kind together.

A request is checked before an application sees it, and slow readers of one page never keep another
page from its readers. A site that points its own name at this machine reads nothing, since the
browser of its reader sends that name with each request. No name can be an IP address, so any
address is allowed.
"""

from __future__ import annotations

from asyncio import sleep
from ipaddress import ip_address
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["ChunkedResponse", "ConcurrencyLimit", "HostCheck", "RequestLimits"]

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
