"""What one request, and all requests of a kind together, may ask for.

Governing rule: whatever a client sends is bounded before an application sees it, and slow readers
of one page never keep another page from its readers.
"""

from __future__ import annotations

from asyncio import sleep
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Heads", "Pieces", "Slots"]

_FIELDS = 64  # of the head of a request
_BODY = (b"content-length", b"transfer-encoding")
_PIECE = 64 << 10  # bytes of an answer that are sent at once
_CLOSE = {"connection": "close"}


class Heads:
    """Refuses requests with a body, or with more header fields than anybody needs.

    Parameters
    ----------
    app
        What serves all others.
    """

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


class Slots:
    """Lets a bounded number of requests into an application at once.

    Parameters
    ----------
    app
        It.
    most
        How many.
    """

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


class Pieces(Response):
    """A large answer: each piece is sent when the client has taken the one before."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        del scope, receive
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        body = bytes(self.body)
        for at in range(0, len(body), _PIECE):
            piece = body[at : at + _PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await sleep(0)  # others are next, and a client that is gone is noticed
        await send({"type": "http.response.body", "body": b""})
