"""The description of the paths of `abers serve`, as OpenAPI has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

import abers
from abers_connectors.serve.rows import RowReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.config.model import Config

__all__ = ["description"]

_GUARDED = {"401": "no token", "403": "not served under this name"}
_REFUSALS = _GUARDED | {
    "400": "no JSON, or no list of rows",
    "413": "too large",
    "415": "no JSON by its header",
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
    """Return the description of a server; rows are those of its task."""
    rows = [RowReader.of_observations(config).row, RowReader.of_labels(config).row]
    _, schemas = msgspec.json.schema_components(rows, ref_template="#/components/schemas/{name}")
    verdict = _operation("The three answers about a model", "the answers", _GUARDED, "model")
    verdict["responses"]["404"] = {"description": "no label of the model came yet"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "abers serve", "version": abers.__version__},
        "paths": {
            "/v1/predict": _rows("Predict; a known id gets its prediction of before", "PredictRow"),
            "/v1/labels": _rows("Bring labels; each has its result", "LabelRow"),
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
