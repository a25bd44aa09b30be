"""Routes of `abers serve` that read: the answers about a model, and what paths there are."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from abers.monitoring.answers import answers_of
from abers_connectors.dashboard.access import TokenGuard
from abers_connectors.http.middleware import ConcurrencyLimit, HostCheck
from abers_connectors.http.shared_work import SharedWork
from abers_connectors.serve.openapi import description

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from starlette.requests import Request

    from abers.stream import Processor
    from abers_connectors.config.model import Config

__all__ = ["reading_routes", "verdict"]

_JSON = "application/json"


def reading_routes(
    config: Config,
    ask: Callable[[Callable[[Processor], Any]], Any],
    closing: Callable[[Callable[[], None]], object],
    names: Collection[str],
    token: str | None,
) -> Iterator[Route]:
    """Yield the routes; see `live_routes` for closing, names and token.

    `ask` calls a function with the processor while nothing changes it, and returns its result; None
    before it is restored.
    """
    described = msgspec.json.encode(description(config))
    work = SharedWork[dict[str, Any] | None]("http-verdict")
    closing(work.close)

    async def answers(request: Request) -> Response:
        model = request.path_params["model"]
        found = await work.get(model, partial(ask, partial(verdict, model=model)))
        if found is None:
            text = {"error": f"no label of the model {model!r} came yet"}
            return Response(msgspec.json.encode(text), 404, media_type=_JSON)
        return Response(msgspec.json.encode(found), media_type=_JSON)

    async def openapi(_: Request) -> Response:
        return Response(described, media_type=_JSON)

    guarded = Route("/v1/models/{model:path}/verdict", answers)
    guarded.app = ConcurrencyLimit(guarded.app)
    if token is not None:
        guarded.app = TokenGuard(guarded.app, token)
    for route in (guarded, Route("/openapi.json", openapi)):
        route.app = HostCheck(route.app, names)
        yield route


def verdict(processor: Processor, *, model: str) -> dict[str, Any] | None:
    """Return the three answers about a model as JSON has them; None without any.

    Examples
    --------
    >>> from abers.stream import Label, Observation, Processor
    >>> processor = Processor()
    >>> _ = processor.process_many([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    >>> [one["question"] for one in verdict(processor, model="default")["answers"]]
    ['model', 'calibrated', 'pays']
    """
    sums = [
        process.answer_sums(over_time=False)
        for (name, _), monitor in zip(processor.keys, processor.monitors, strict=False)
        if name == model
        for process in monitor.e_processes
    ]
    return answers_of(sums).record() if sums else None
