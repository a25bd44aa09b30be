"""The description of the paths of `abers serve`, as OpenAPI has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

import abers
from abers_connectors.serve.rows import RowReader

if TYPE_CHECKING:
    from abers_connectors.config.model import Config

__all__ = ["description"]

_REFUSALS = {
    "400": "no JSON, or no list of rows",
    "401": "no token",
    "413": "too large",
    "415": "no JSON by its header",
    "429": "too many events wait; see Retry-After",
    "503": "being restored, or the disk failed; see Retry-After",
}


def description(config: Config) -> dict[str, Any]:
    """Return the description of a server; rows are those of its task."""
    rows = [RowReader.of_observations(config).row, RowReader.of_labels(config).row]
    _, schemas = msgspec.json.schema_components(rows, ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {"title": "abers serve", "version": abers.__version__},
        "paths": {
            "/v1/predict": _post("Predict; a known id gets its prediction of before", "PredictRow"),
            "/v1/labels": _post("Bring labels; each has its result", "LabelRow"),
            "/v2/models/{model}/infer": {
                "post": _operation("Predict by the Open Inference Protocol", "model")
            },
            "/v1/models/{model}/verdict": {
                "get": _operation("The three answers about a model", "model")
            },
            "/metrics": {"get": _operation("Metrics for Prometheus")},
            "/livez": {"get": _operation("Whether the process works")},
            "/readyz": {"get": _operation("Whether it serves")},
        },
        "components": {"schemas": schemas},
    }


def _post(summary: str, row: str) -> dict[str, Any]:
    one = {"$ref": f"#/components/schemas/{row}"}
    body = {"oneOf": [{"type": "array", "items": one}, one]}
    operation = _operation(summary)
    operation["requestBody"] = {
        "required": True,
        "content": {"application/json": {"schema": body}},
    }
    operation["responses"] |= {status: {"description": text} for status, text in _REFUSALS.items()}
    return {"post": operation}


def _operation(summary: str, *parameters: str) -> dict[str, Any]:
    given = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in parameters
    ]
    answered = {"200": {"description": "a row for each row"}}
    return {"summary": summary, "parameters": given, "responses": answered}
