"""The mistakes that pydantic finds, in our words.

Governing rule: a sentence shows the value and says how to mend it; the words of
the library reach nobody.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from abers_connectors._config_layers import Keys, Problem, dotted
from abers_connectors._config_types import shown
from abers_connectors._suggest import closest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

__all__ = ["keys_of", "problems_of"]

_REASONS = {
    "bool_type": "{value} is neither true nor false; write one of these, without quotes",
    "greater_than_equal": "{value} is too small; write at least {ge}",
    "int_type": "{value} is not a whole number; write one, without quotes",
    "less_than_equal": "{value} is too large; write at most {le}",
    "missing": "missing; write {example}",
    # Without the value, which may hold a password.
    "model_type": "is no section; write its keys below a line [{path}]",
    "string_too_short": "is empty; write a name, or leave the key out",
    "string_type": "{value} is not a text; write one, in quotes",
    "tuple_type": "{value} is not a list; write [{value}]",
    "abers": "{value} {advice}",
}
_EXAMPLES: dict[Keys, str] = {("kafka", "bootstrap"): 'the address of a broker, "localhost:9092"'}
_PASSWORDS = {"key": "ABERS_KAFKA_KEY_PASSWORD", "": "ABERS_KAFKA_PASSWORD"}
_SECRET = re.compile("password|secret", re.IGNORECASE)
_QUOTED = re.compile("'([^']*)'")  # pydantic lists the allowed words in this way


def keys_of(model: type[BaseModel], within: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Give every section and key of a model.

    Parameters
    ----------
    model
        Of a section, or of the whole configuration.
    within
        The keys that lead to it.

    Yields
    ------
    tuple
        The keys that lead to each.
    """
    for name, info in model.model_fields.items():
        yield (*within, name)
        for kind in (info.annotation, *get_args(info.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from keys_of(kind, (*within, name))


def problems_of(error: ValidationError, model: type[BaseModel]) -> Iterator[Problem]:
    """Put the errors of a configuration into our words.

    Parameters
    ----------
    error
        What pydantic raised.
    model
        The model of the whole configuration.

    Yields
    ------
    Problem
        One for each error in a section.
    """
    known = list(keys_of(model))
    for details in error.errors(include_url=False):
        # A default that is made of other keys waits until these are right.
        if details["loc"] and details["type"] != "default_factory_not_called":
            yield _problem(details, known)


def _problem(details: ErrorDetails, known: list[tuple[str, ...]]) -> Problem:
    path, kind, given = details["loc"], details["type"], _without_secrets(details["input"])
    context: dict[str, Any] = details.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(path, known)
    if kind == "literal_error":
        return Problem(path, _not_allowed(given, _QUOTED.findall(context["expected"])))
    example = _EXAMPLES.get(path, "the name of a topic")
    words = {"value": shown(given), "path": dotted(path), "example": example} | context
    return Problem(path, _REASONS[kind].format_map(words))


def _without_secrets(given: Any) -> Any:  # noqa: ANN401 - whatever TOML holds
    """Leave out what nobody may see, wherever it was written by mistake."""
    if isinstance(given, list):
        return [_without_secrets(one) for one in given]
    if not isinstance(given, dict):
        return given
    return {
        name: "…" if _SECRET.search(name) else _without_secrets(one) for name, one in given.items()
    }


def _unknown(path: Keys, known: list[tuple[str, ...]]) -> Problem:
    *section, name = map(str, path)
    if _SECRET.search(name):
        where = _PASSWORDS["key" if "key" in name.lower() else ""]
        told = "a password does not stand in a configuration; put it into the environment as"
        return Problem(path, f"{told} {where}")
    beside = {one[-1]: one for one in known if [*one[:-1]] == section}
    near = closest(name, beside)
    meant = beside[near] if near else next((one for one in known if one[-1] == name), None)
    if meant is not None:
        return Problem(path, "unknown key", meant)
    whole = f"[{dotted(path[:-1])}]" if section else "a configuration"
    return Problem(path, f"unknown key; {whole} has {', '.join(beside)}")


def _not_allowed(given: object, allowed: list[str]) -> str:
    near = closest(given, allowed) if isinstance(given, str) else None
    hint = f", did you mean {shown(near)}?" if near else ""
    words = (
        f"none of {', '.join(map(shown, allowed))}" if allowed[1:] else f"not {shown(allowed[0])}"
    )
    return f"{shown(given)} is {words}{hint}"
