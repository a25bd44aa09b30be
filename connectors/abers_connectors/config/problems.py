"""Validation errors of pydantic as messages of abers.

A message shows the value and says how to fix it. Values that may hold a password are not shown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from abers.suggestions import closest
from abers_connectors.config.former_names import FORMER_NAMES
from abers_connectors.config.layers import Keys, LocatedProblem, dotted
from abers_connectors.config.value_types import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

__all__ = ["keys_of", "problems_of"]

_MESSAGES = {
    "abers": "{text}",
    "bool_type": "{value} is not a boolean; write true or false, without quotes",
    "float_type": "{value} is not a number; write one, without quotes",
    "greater_than": "{value} is too small; write more than {gt}",
    "greater_than_equal": "{value} is too small; write at least {ge}",
    "int_type": "{value} is not a whole number; write one, without quotes",
    "less_than": "{value} is too large; write less than {lt}",
    "less_than_equal": "{value} is too large; write at most {le}",
    "missing": "is missing; write {example}",
    # Without the value, which may hold a password.
    "model_type": "must be a section; write its keys below a line [{path}]",
    "string_too_short": "must be a non-empty string; write one, or remove the key",
    "string_type": "{value} is not a string; put it in quotes",
    "tuple_type": "{value} is not a list; write [{value}]",
}
_BROKER = 'the address of a broker, "localhost:9092"'
# The last word of a key that would hold a secret; "password_file" holds a path.
_SECRET_KEY = re.compile(r"(?:password|secret|token)s?$", re.IGNORECASE)
_SECRET = re.compile("password|secret|token", re.IGNORECASE)
_QUOTED = re.compile("'([^']*)'")  # pydantic quotes the allowed words like this


def keys_of(model: type[BaseModel], within: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the path of every section and key of a model, below some keys."""
    for name, info in model.model_fields.items():
        yield (*within, name)
        for kind in (info.annotation, *get_args(info.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from keys_of(kind, (*within, name))


def problems_of(error: ValidationError, model: type[BaseModel]) -> Iterator[LocatedProblem]:
    """Return one problem for each error that pydantic found in the sections of a model."""
    known = list(keys_of(model))
    for details in error.errors(include_url=False):
        # A default that depends on other keys waits until these are right.
        if details["loc"] and details["type"] != "default_factory_not_called":
            yield _problem_of_details(details, known)


def _problem_of_details(details: ErrorDetails, known: list[tuple[str, ...]]) -> LocatedProblem:
    path, kind, given = details["loc"], details["type"], _without_secrets(details["input"])
    context: dict[str, Any] = details.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(path, known)
    if kind == "literal_error":
        return LocatedProblem(path, _not_allowed(given, _QUOTED.findall(context["expected"])))
    example = _BROKER if path[-1] == "bootstrap_servers" else "the name of a topic"
    words = {"value": shown(given), "path": dotted(path), "example": example} | context
    return LocatedProblem(path, _MESSAGES[kind].format_map(words))


def _without_secrets(given: Any) -> Any:  # noqa: ANN401 - any TOML value
    """Hide what may be a password, wherever it was written by mistake."""
    if isinstance(given, list):
        return [_without_secrets(one) for one in given]
    if not isinstance(given, dict):
        return given
    return {
        name: "…" if _SECRET.search(name) else _without_secrets(one) for name, one in given.items()
    }


def _unknown(path: Keys, known: list[tuple[str, ...]]) -> LocatedProblem:
    """Return the problem of an unknown key, with the key that was probably meant."""
    *section, name = map(str, path)
    if _SECRET_KEY.search(name):
        text = f"a configuration holds no secrets; set {_where(section, name.lower())}"
        return LocatedProblem(path, text)
    beside = {one[-1]: one for one in known if [*one[:-1]] == section}
    near = _nearest(name, beside)
    meant = beside[near] if near else next((one for one in known if one[-1] == name), None)
    if meant is not None:
        return LocatedProblem(path, "unknown key", meant)
    whole = f"[{dotted(path[:-1])}]" if section else "a configuration"
    return LocatedProblem(path, f"unknown key; {whole} has {', '.join(beside)}")


def _where(section: list[str], name: str) -> str:
    """Return where a secret belongs that was written into a section."""
    if section == ["http"]:
        return "ABERS_HTTP_TOKEN in the environment, or http.token_file"
    if section == ["schema_registry"]:
        kind = "token" if "token" in name else "password"
        variable = f"ABERS_SCHEMA_REGISTRY_{kind.upper()}"
        return f"{variable} in the environment, or schema_registry.{kind}_file"
    kinds = {"key": "KEY_PASSWORD", "secret": "CLIENT_SECRET", "token": "TOKEN"}
    kind = next((kinds[one] for one in kinds if one in name), "PASSWORD")
    key = f"kafka.security.{kind.lower()}_file"
    return f"ABERS_KAFKA_{kind} in the environment, or {key}"


def _nearest(word: str, known: Collection[str]) -> str | None:
    renamed = FORMER_NAMES.get(word)
    return renamed if renamed in known else closest(word, known)


def _not_allowed(given: object, allowed: list[str]) -> str:
    near = _nearest(given, allowed) if isinstance(given, str) else None
    hint = f"; did you mean {shown(near)}?" if near else ""
    words = f"one of {', '.join(map(shown, allowed))}" if allowed[1:] else shown(allowed[0])
    return f"{shown(given)} is not {words}{hint}"
