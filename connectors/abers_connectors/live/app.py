"""The live page as routes: the document, its style, its scripts, and the events.

Governing rule: a page asks nobody but the server it came from, and carries out nothing but the two
scripts from there; the content security policy holds it to that.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from abers_connectors.http.connections import STREAM
from abers_connectors.http.hosts import Hosts
from abers_connectors.http.limits import Slots
from abers_connectors.live.events import Events
from abers_connectors.live.guard import Guard
from abers_connectors.live.view import Views

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from abers_connectors.live.feed import Feed
    from abers_connectors.models import Key

__all__ = ["routes"]

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
_FRESH = {"cache-control": "no-cache"}
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}  # its version is in its name


def routes(
    feed: Feed,
    closing: Callable[[Callable[[], None]], object],
    names: Collection[str],
    token: str | None,
) -> list[Route]:
    """Make the routes of a page.

    Parameters
    ----------
    feed
        Gives frames.
    closing
        Takes what is to be called at the end.
    names
        Under which it is served, beside addresses and localhost.
    token
        What must be known; None lets everybody through.

    Returns
    -------
    list of starlette.routing.Route
        "/", and all below "/live/".
    """
    script = files("plotly") / "package_data" / "plotly.min.js"
    plotly = f"plotly-{version('plotly')}.min.js"
    page = _page(plotly, script.read_text("utf-8"))
    views = Views(feed)
    closing(views.close)
    events = Events(feed, views)

    async def document(_: Request) -> Response:
        return Response(page, headers=_SAFE | {"cache-control": "no-store"}, media_type="text/html")

    async def listen(request: Request) -> Any:  # noqa: ANN401 - any ASGI application will do
        if request.method == "HEAD":  # which would be an answer without an end or a body
            return Response()
        if events.full:
            return PlainTextResponse("Too many pages are open.", 503, {"retry-after": "10"})
        try:
            key = _key(request.query_params.get("model"))
        except msgspec.DecodeError:
            return PlainTextResponse("There is no such model.", 400)
        return events.of(key)

    def file(name: str, kind: str, *parts: Any) -> Route:  # noqa: ANN401 - a resource
        text = "\n".join(part.read_text("utf-8") for part in parts).encode()

        async def told(_: Request) -> Response:
            return Response(text, headers=_SAFE | _FRESH, media_type=kind)

        return Route(f"/live/{name}", told)

    async def plotly_script(_: Request) -> Response:
        return FileResponse(str(script), headers=_SAFE | _FOREVER, media_type="text/javascript")

    here, report = files("abers_connectors.live"), files("abers_connectors.report")
    ours = [
        Route("/", document),
        file("page.css", "text/css", report / "page.css", here / "page.css"),
        file("page.js", "text/javascript", here / "page.js"),
        Route(f"/live/{plotly}", plotly_script),
    ]
    for route in ours:
        route.app = Slots(route.app)
    ours.append(Route(STREAM, listen))  # which counts its readers itself
    return [_guarded(route, names, token) for route in ours]


def _guarded(route: Route, names: Collection[str], token: str | None) -> Route:
    guarded: ASGIApp = route.app if token is None else Guard(route.app, token)
    route.app = Hosts(guarded, names)
    return route


def _key(text: str | None) -> Key | None:
    return None if text is None else msgspec.json.decode(text, type=tuple[str, str])


def _page(plotly: str, script: str) -> str:
    """Fill in the document.

    Plotly adds no style of its own where an element has the name that it would give it: such are
    our own style sheet, whose class asks for that, and an empty element for each part of plotly
    that would bring one along.
    """
    parts = re.findall(r'getElementById\("([0-9a-f]{64})"\)', script)
    text = (files("abers_connectors.live") / "page.html").read_text("utf-8")
    styled = "".join(f'<meta id="{name}">' for name in sorted({*parts}))
    return text.replace("{{ plotly }}", plotly).replace("{{ styled }}", styled)
