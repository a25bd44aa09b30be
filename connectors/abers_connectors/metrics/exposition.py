"""Text of the metrics: byte for byte that of prometheus_client, in a quarter of its time.

The library spends three quarters of its time on timestamps, exemplars, units and quoted names,
which no metric of abers has; and while it writes, the stream waits for the interpreter.

Cache of the metrics as text, for all scrapers that come at about the same time. However many
scrape, and however often, the text is made in a thread of its own and for a bounded share of the
time; scrapes in between get the last text.

Routes of a service for supervisors and Prometheus: /livez, /readyz and /metrics. They are public,
so they contain no records, paths or settings, but the names of the application and of its process.
A supervisor reads the status code alone, and no number of other clients delays its response.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.exposition import choose_encoder
from prometheus_client.utils import floatToGoString
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from abers_connectors.http.middleware import (
    ChunkedResponse,
    ConcurrencyLimit,
    HostCheck,
    SharedWork,
)
from abers_connectors.metrics.service_metrics import Labels, registry_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from prometheus_client import CollectorRegistry, Metric
    from starlette.requests import Request

    from abers_connectors.runtime.status import Status

__all__ = ["OPEN", "ScrapeCache", "exposition", "health_routes"]

OPEN = "application/openmetrics-text"
"""Media type of OpenMetrics, the stricter format, without its parameters."""

_PLAIN = 1e6  # below it Python writes numbers as Go does
_ENDINGS = {"counter": "_total", "info": "_info"}


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    r"""Return metrics as text, and its media type, by the header `Accept` of a client.

    The metrics have no timestamps, exemplars and units. Without a header the format is plain text.

    Examples
    --------
    >>> from prometheus_client import CollectorRegistry, Counter
    >>> registry = CollectorRegistry()
    >>> counter = Counter("records", "Read.", ["input"], registry=registry)
    >>> exposition(registry, "")[0]
    b'# HELP records_total Read.\n# TYPE records_total counter\n'
    """
    _, kind = choose_encoder(accept)
    strict = kind.startswith(OPEN)
    lines = [line for metric in registry.collect() for line in _lines(metric, strict=strict)]
    return "".join([*lines, "# EOF\n" * strict]).encode(), kind


def _lines(metric: Metric, *, strict: bool) -> Iterator[str]:
    """Yield the lines of a metric: help, type and samples."""
    what = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
    name, kind = metric.name, metric.type
    if strict:
        what = what.replace('"', r"\"")
    else:
        name += _ENDINGS.get(kind, "")
        kind = "gauge" if kind == "info" else kind
    yield f"# HELP {name} {what}\n# TYPE {name} {kind}\n"
    for sample in metric.samples:
        value, labels = sample.value, sample.labels
        plain = type(value) is float and 0.0 <= value < _PLAIN
        number = repr(value) if plain else floatToGoString(value)  # type: ignore[no-untyped-call]
        text = labels.text if type(labels) is Labels else Labels(labels).text
        yield f"{sample.name}{text} {number}\n"


_SHARE = 0.1  # maximum share of the time for making the metrics
_OLDEST = 10.0  # seconds that a text is used at most: less than between two scrapes of Prometheus


class _CachedText(NamedTuple):
    text: bytes
    until: float


class ScrapeCache:
    """Metrics as text, which the thread of `work` makes."""

    def __init__(
        self,
        registry: CollectorRegistry,
        work: SharedWork[bytes],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry, self._work, self._clock = registry, work, clock
        self._cached: dict[bool, _CachedText] = {}

    async def text(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics, and their media type, by the header `Accept` of a request."""
        kind = choose_encoder(accept)[1]
        strict = kind.startswith(OPEN)
        known = self._cached.get(strict)
        if known is not None and self._clock() < known.until:
            return known.text, kind
        return await self._work.get(strict, partial(self._make, strict=strict)), kind

    def _make(self, *, strict: bool) -> bytes:
        began = self._clock()
        text, _ = exposition(self._registry, OPEN if strict else "")
        now = self._clock()
        self._cached[strict] = _CachedText(text, now + min((now - began) / _SHARE, _OLDEST))
        return text


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
