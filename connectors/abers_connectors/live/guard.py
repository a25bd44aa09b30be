"""Who may see the page.

Governing rule: another site that a reader has open sees nothing: a request is answered only under
an address or a name that is ours, so no name of theirs can be pointed at us; no page frames ours;
and where there is a token, it goes into a cookie that no script reads, and into no page and no log.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from abers_connectors.http.serving import TOKEN

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Guard"]

_COOKIE = "abers_live"
_UNKNOWN = (
    "This page is not served under this name, so that no other site can read it. Use an IP address "
    "or localhost, or add the name to http.hosts in the configuration."
)
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
    hosts
        Names under which it is reached, beside addresses and localhost.
    token
        What must be known; None lets everybody through.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] = (), token: str | None = None) -> None:
        self._app = app
        self._hosts = {"localhost", *(host.lower() for host in hosts)}
        self._token = token
        # The cookie proves that the token was known, and does not tell it.
        self._proof = None if token is None else _signed(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        request = Request(scope)
        answer = self._refusal(request)
        await (answer or self._app)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        if not self._is_ours(request.headers.get("host", "")):
            return PlainTextResponse(_UNKNOWN, 403)
        if self._token is None or self._proof is None:
            return None
        given = parse_qs(request.url.query).get("token", [""])[-1]
        if given and _equal(given, self._token):
            answer = RedirectResponse(request.url.path, 303, {"cache-control": "no-store"})
            answer.set_cookie(_COOKIE, self._proof, httponly=True, samesite="strict")
            return answer
        _, _, bearer = request.headers.get("authorization", "").partition("Bearer ")
        if _equal(bearer, self._token) or _equal(request.cookies.get(_COOKIE, ""), self._proof):
            return None
        return PlainTextResponse(_WITHOUT, 401, {"www-authenticate": "Bearer"})

    def _is_ours(self, host: str) -> bool:
        """Say whether a request was meant for us: no foreign name can be an address."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        try:
            ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return name.lower() in self._hosts
        return True


def _signed(token: str) -> str:
    return hmac.new(token.encode(), b"abers live page", sha256).hexdigest()


def _equal(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode(), right.encode())
