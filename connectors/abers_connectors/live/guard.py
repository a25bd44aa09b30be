"""Who may see the page.

Governing rule: another site that a reader has open sees nothing: no page frames ours, and where
there is a token, it goes into a cookie that no script reads, and into no page and no log. Names
that other sites point at this machine are refused before, by `abers_connectors.http.hosts`.
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

__all__ = ["Guard"]

_COOKIE = "abers_live"
_WITHOUT = (
    "This page needs a token. Open it once with ?token=… behind the address, where … is the value "
    f"of {TOKEN} in the environment of the service; the browser then remembers it."
)


class Guard:
    """Lets through to an application who may.

    Parameters
    ----------
    app
        It.
    token
        What must be known, as `token_of` returns it.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token
        # The cookie proves that the token was known, and does not tell it.
        self._proof = _signed(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        request = Request(scope)
        answer = self._refusal(request)
        await (answer or self._app)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        query = request.scope["query_string"].decode("latin-1")
        # No token has a space; a plus that is written as it is comes as one.
        given = parse_qs(query).get("token", [""])[-1].replace(" ", "+")
        if given and _equal(given, self._token):
            answer = RedirectResponse(request.scope["path"], 303, {"cache-control": "no-store"})
            answer.set_cookie(_COOKIE, self._proof, httponly=True, samesite="strict")
            return answer
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _equal(bearer.strip(), self._token):
            return None
        if _equal(request.cookies.get(_COOKIE, ""), self._proof):
            return None
        return PlainTextResponse(_WITHOUT, 401, {"www-authenticate": "Bearer"})


def _signed(token: str) -> str:
    return hmac.new(token.encode(), b"abers live page", sha256).hexdigest()


def _equal(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode(), right.encode())
