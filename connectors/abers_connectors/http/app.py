"""The pages of a service: /livez, /readyz, /metrics.

Governing rule: who may see them may see all they say, so they say nothing of
records, paths or settings; a supervisor goes by the status code alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from abers_connectors.http.exposition import exposition
from abers_connectors.http.metrics import registry_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from abers_connectors.kafka.status import Status

__all__ = ["app_of"]

_OK, _NOT = 200, 503


def app_of(status: Status) -> Starlette:
    """Make the application that a server serves.

    Parameters
    ----------
    status
        Of the service.

    Returns
    -------
    Starlette
        It.
    """
    registry = registry_of(status)

    async def livez(_: Request) -> Response:
        alive = status.view().alive
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
        text, kind = exposition(registry, request.headers.get("accept", ""))
        return Response(text, media_type=kind)

    pages = {"/livez": livez, "/readyz": readyz, "/metrics": metrics}
    return Starlette(routes=[Route(path, page) for path, page in pages.items()])
