"""What a server says when it is ready: two requests to try, for its task and its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from abers.stream import Settings
    from abers_connectors.config.model import Config
    from abers_connectors.serve.tokens import ServeTokens

__all__ = ["ready_lines"]

_PROBABILITIES = 'scores are probabilities (for others write task.scores = "any" in a CONFIG)'


def ready_lines(url: str, config: Config, tokens: ServeTokens) -> str:
    """Return the lines."""
    settings = config.settings()
    fields, label = _example(settings)
    fields = {"x": {"amount": 12.5}} if config.learns else fields
    said = f"; {_PROBABILITIES}" if settings.scores == "probability" else ""
    return (
        f"ready{said}; try:\n"
        f"  {_curl(f'{url}/v1/predict', fields, tokens.variable('predict'))}\n"
        f"  {_curl(f'{url}/v1/labels', {'label': label}, tokens.variable('label'))}"
    )


def _example(settings: Settings) -> tuple[dict[str, Any], Any]:
    """Return the fields of a prediction, and its label."""
    label: Any = 1
    score: Any = 0.83
    if settings.task == "multiclass":
        classes = settings.classes
        label = classes[0]
        score = {name: round(1 / len(classes), 2) for name in classes[1:]}
        score = {label: round(1 - sum(score.values()), 2), **score}
    elif settings.task == "regression":
        score, label = 12.5, 14
    return {"score": score}, label


def _curl(url: str, fields: dict[str, Any], token: str | None) -> str:
    body = msgspec.json.format(msgspec.json.encode({"id": "a1"} | fields), indent=0).decode()
    text = body.replace("'", "'\\''")  # as a shell has it
    login = "" if token is None else f' -H "authorization: Bearer ${token}"'
    return f"curl {url} -H 'content-type: application/json'{login} -d '{text}'"
