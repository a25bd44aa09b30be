"""Under which names a server answers.

Governing rule: a site that points its own name at this machine reads nothing, since the browser of
its reader says that name in each request. No name can be an IP address, so any address is allowed.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Hosts"]

_UNKNOWN = (
    "This page is not served under this name, so that no other site can read it. Use an IP address "
    "or localhost, or add the name to http.hosts in the configuration."
)


class Hosts:
    """Lets requests through to an application that name an address, localhost or a known name.

    Parameters
    ----------
    app
        It.
    names
        Those known, beside localhost.
    """

    def __init__(self, app: ASGIApp, names: Collection[str] = ()) -> None:
        self._app = app
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        ours = all(map(self._is_ours, Headers(scope=scope).getlist("host") or [""]))
        app = self._app if ours else PlainTextResponse(_UNKNOWN, 403)
        await app(scope, receive, send)

    def _is_ours(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        try:
            ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return name.lower() in self._names
        return True
