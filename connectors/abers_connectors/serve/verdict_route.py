"""Routes of `abers serve` that read: the answers about a model, and the list of all paths."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response
from starlette.routing import Route

import abers
from abers.monitoring.answers import answers_of
from abers_connectors.http.middleware import ConcurrencyLimit, HostCheck, SharedWork, TokenGuard
from abers_connectors.serve.rows import RowReader

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from starlette.requests import Request

    from abers.stream import Processor
    from abers_connectors.config.model import Config

__all__ = ["reading_routes"]

_GUARDED = {"401": "a token is missing or wrong", "403": "not served under this name"}
_REFUSALS = _GUARDED | {
    "400": "not JSON, or not a list of rows",
    "413": "too large",
    "415": "the content type is not application/json",
    "429": "too many events wait; see Retry-After",
    "503": "being restored, or the disk failed; see Retry-After",
}
_TENSOR = {
    "type": "object",
    "required": ["name", "datatype", "shape", "data"],
    "properties": {
        "name": {"type": "string"},
        "datatype": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer"}},
        "data": {"type": "array"},
    },
}
_INFER_REQUEST = {
    "type": "object",
    "required": ["inputs"],
    "properties": {"id": {"type": "string"}, "inputs": {"type": "array", "items": _TENSOR}},
}


def description(config: Config) -> dict[str, Any]:
    """Return the OpenAPI description of a server, with the rows of its task."""
    rows = [RowReader.of_observations(config).row, RowReader.of_labels(config).row]
    _, schemas = msgspec.json.schema_components(rows, ref_template="#/components/schemas/{name}")
    verdict = _operation("The three answers about a model", "the answers", _GUARDED, "model")
    verdict["responses"]["404"] = {"description": "no label of the model came yet"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "abers serve", "version": abers.__version__},
        "paths": {
            "/v1/predict": _rows("Predict; a known id gets its earlier prediction", "PredictRow"),
            "/v1/labels": _rows("Send labels; each gets a result", "LabelRow"),
            "/v2/models/{model}/infer": _post(
                "Predict by the Open Inference Protocol", "tensors", _INFER_REQUEST, "model"
            ),
            "/v1/models/{model}/verdict": {"get": verdict},
            "/metrics": {"get": _operation("Metrics for Prometheus", "metrics")},
            "/livez": {"get": _operation("Whether the process works", "it does")},
            "/readyz": {"get": _operation("Whether it serves", "it does")},
        },
        "components": {"schemas": schemas},
    }


def _rows(summary: str, row: str) -> dict[str, Any]:
    one = {"$ref": f"#/components/schemas/{row}"}
    return _post(summary, "a row for each row", {"oneOf": [{"type": "array", "items": one}, one]})


def _post(summary: str, answer: str, body: dict[str, Any], *parameters: str) -> dict[str, Any]:
    operation = _operation(summary, answer, _REFUSALS, *parameters)
    content = {"application/json": {"schema": body}}
    return {"post": operation | {"requestBody": {"required": True, "content": content}}}


def _operation(
    summary: str, answer: str, refusals: Mapping[str, str] | None = None, *parameters: str
) -> dict[str, Any]:
    given = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in parameters
    ]
    texts = {"200": answer, **(refusals or {})}
    answered = {status: {"description": text} for status, text in texts.items()}
    return {"summary": summary, "parameters": given, "responses": answered}


_JSON = "application/json"


def reading_routes(
    config: Config,
    ask: Callable[[Callable[[Processor], Any]], Any],
    closing: Callable[[Callable[[], None]], object],
    names: Collection[str],
    token: str | None,
) -> Iterator[Route]:
    """Yield the routes; see `live_routes` for `closing`, `names` and `token`.

    `ask` calls a function with the processor while nothing changes it, and returns its result, or
    None before the processor is restored.
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
    """Return the three answers about a model as JSON; None if it is unknown, or has no tests.

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
