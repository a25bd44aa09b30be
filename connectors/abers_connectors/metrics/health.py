"""Routes of a service for supervisors and Prometheus: /livez, /readyz and /metrics.

They are public, so they contain no records, paths or settings, but the names of the application and
of its process. A supervisor reads the status code alone, and no number of other clients delays its
response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from abers_connectors.http.middleware import ChunkedResponse, ConcurrencyLimit, HostCheck
from abers_connectors.http.shared_work import SharedWork
from abers_connectors.metrics.scrape_cache import ScrapeCache
from abers_connectors.metrics.service_metrics import registry_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from starlette.requests import Request

    from abers_connectors.runtime.status import Status

__all__ = ["health_routes"]

_OK, _NOT = 200, 503


def health_routes(
    status: Status,
    closing: Callable[[Callable[[], None]], object],
    names: Collection[str] | None = None,
) -> Iterator[Route]:
    """Yield the routes of health and metrics; `closing` gets the call that ends their thread.

    The metrics are served under addresses, localhost and these names, or under any if None.
    """
    work = SharedWork[bytes]("http-metrics")
    closing(work.close)
    cache = ScrapeCache(registry_of(status), work)

    async def livez(_: Request) -> Response:
        alive = status.alive
        return JSONResponse({"alive": alive}, _OK if alive else _NOT)

    async def readyz(_: Request) -> Response:
        view = status.view()
        fields = ("ready", "joined", "assigned", "restored", "hints")
        answer = {name: getattr(view, name) for name in fields}
        return JSONResponse(answer, _OK if view.ready else _NOT)

    async def metrics(request: Request) -> Response:
        text, kind = await cache.text(request.headers.get("accept", ""))
        return ChunkedResponse(text, media_type=kind)

    yield Route("/livez", livez)
    yield Route("/readyz", readyz)
    route = Route("/metrics", metrics)
    route.app = ConcurrencyLimit(route.app)
    if names is not None:
        route.app = HostCheck(route.app, names)
    yield route
