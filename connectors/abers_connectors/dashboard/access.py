"""Access to the live page, by a token.

The token goes into a cookie that no script can read, and into no page and no log. Names that other
sites point at this machine are refused before, by `http.middleware.HostCheck`.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from abers_connectors.http.token import TOKEN

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["TokenGuard"]

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
