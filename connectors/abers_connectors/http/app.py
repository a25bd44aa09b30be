"""The pages of a service: /livez, /readyz, /metrics, and the live page.

Governing rule: who may see the first three may see all they say, so they say nothing of
records, paths or settings; a supervisor goes by the status code alone. The live page is guarded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from abers_connectors.http.exposition import exposition
from abers_connectors.http.metrics import registry_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from abers_connectors.kafka.status import Status

__all__ = ["app_of"]

_OK, _NOT = 200, 503


def app_of(status: Status | None, live: Sequence[BaseRoute] = ()) -> Starlette:
    """Make the application that a server serves.

    Parameters
    ----------
    status
        Of the service; None if there is none, but a replay.
    live
        The live page.

    Returns
    -------
    Starlette
        It.
    """
    return Starlette(routes=[*live, *(() if status is None else _health(status))])


def _health(status: Status) -> Iterator[BaseRoute]:
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

    for path, page in {"/livez": livez, "/readyz": readyz, "/metrics": metrics}.items():
        yield Route(path, page)
