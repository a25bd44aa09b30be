"""The pages of a service: /livez, /readyz, /metrics, and the live page.

Governing rule: who may see the first three may see all they say, so they say nothing of
records, paths or settings; a supervisor goes by the status code alone, and no number of other
clients keeps it from its answer. The live page is guarded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from abers_connectors.http.hosts import Hosts
from abers_connectors.http.limits import Heads, Pieces, Slots
from abers_connectors.http.metrics import registry_of
from abers_connectors.http.once import Once
from abers_connectors.http.scrapes import Scrapes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from abers_connectors.kafka.status import Status

__all__ = ["app_of", "routes"]

_OK, _NOT = 200, 503


def routes(
    status: Status,
    closing: Callable[[Callable[[], None]], object],
    names: Collection[str] | None = None,
) -> Iterator[Route]:
    """Make the routes of health and metrics.

    Parameters
    ----------
    status
        Of the service.
    closing
        Takes what is to be called at the end.
    names
        Under which metrics are served, beside addresses and localhost; None serves them under any.

    Yields
    ------
    starlette.routing.Route
        Each of the three.
    """
    once = Once[bytes]("http-metrics")
    closing(once.close)
    scrapes = Scrapes(registry_of(status), once)

    async def livez(_: Request) -> Response:
        alive = status.alive
        return JSONResponse({"alive": alive}, _OK if alive else _NOT)

    async def readyz(_: Request) -> Response:
        view = status.view()
        told = {
            "ready": view.ready,
            "joined": view.joined,
            "assigned": view.assigned,
            "restored": view.restored,
            "hints": view.hints,
        }
        return JSONResponse(told, _OK if view.ready else _NOT)

    async def metrics(request: Request) -> Response:
        text, kind = await scrapes.text(request.headers.get("accept", ""))
        return Pieces(text, media_type=kind)

    yield Route("/livez", livez)
    yield Route("/readyz", readyz)
    route = Route("/metrics", metrics)
    route.app = Slots(route.app)
    if names is not None:
        route.app = Hosts(route.app, names)
    yield route


def app_of(routes: Sequence[Route]) -> ASGIApp:
    """Make the application that a server serves.

    Parameters
    ----------
    routes
        Of all its pages.

    Returns
    -------
    ASGIApp
        It; no other path leads to a page, and none is redirected, since the address of a
        redirection would be what the client says that our name is.
    """
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return Heads(app)
