"""The values of a configuration by key, and the mistakes in single ones.

A message shows the value and says how to fix it. Values that may hold a password are not shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from abers.stream.option import Quoted, RefusedValueError
from abers.suggestions import closest
from abers_connectors.config.layers import LocatedProblem, dotted
from abers_connectors.config.options import SECTIONS, options
from abers_connectors.config.value_types import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.stream.option import Part
    from abers_connectors.config.layers import Keys

__all__ = ["keys_of", "read_sections"]

_EXAMPLES = {"bootstrap_servers": 'the address of a broker, "localhost:9092"'}
# The last word of a key that would hold a secret; "password_file" holds a path.
_SECRET_KEY = re.compile(r"(?:password|secret|token)s?$", re.IGNORECASE)
_SECRET = re.compile("password|secret|token", re.IGNORECASE)


def keys_of() -> tuple[tuple[str, ...], ...]:
    """Return the path of every section and key, in their order."""
    paths = {*SECTIONS, *options()}
    found = []
    for section in SECTIONS:
        found.append(section)
        found += [key for key in options() if key.rpartition(".")[0] == section]
    return tuple(tuple(one.split(".")) for one in found if one in paths)


def read_sections(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[LocatedProblem]]:
    """Return the values that are given and can be read, by key, and the mistakes in others."""
    found: dict[str, Any] = {}
    problems: list[LocatedProblem] = []
    present = [path for path in SECTIONS if "." not in path and path in values]
    for path in present:
        problems += _read_section((path,), values[path], found)
    problems += [_unknown((name,)) for name in values if name not in SECTIONS]
    return found, problems


def _read_section(path: Keys, given: Any, found: dict[str, Any]) -> Iterator[LocatedProblem]:  # noqa: ANN401
    """Read the values of a section, and yield the mistakes in them."""
    if given is None:
        return
    if not isinstance(given, Mapping):
        # Without the value, which may hold a password.
        yield LocatedProblem(
            path, f"must be a section; write its keys below a line [{dotted(path)}]"
        )
        return
    section = ".".join(map(str, path))
    of_section = {
        key.rpartition(".")[2]: one
        for key, one in options().items()
        if key.rpartition(".")[0] == section
    }
    for name, one in of_section.items():
        if name not in given:
            if one.required:
                example = _EXAMPLES.get(name, "the name of a topic")
                yield LocatedProblem((*path, name), f"is missing; write {example}")
            continue
        try:
            value = given[name]
            of_none = value is None and one.optional
            found[one.key] = None if of_none else (one.read or read_toml)(one, value)
        except RefusedValueError as error:
            yield LocatedProblem((*path, name, *error.at), _without_secrets(error.text))
    for name, value in given.items():
        if f"{section}.{name}" in SECTIONS:
            yield from _read_section((*path, name), value, found)
        elif name not in of_section:
            yield _unknown((*path, name))


def _without_secrets(text: tuple[Part, ...]) -> tuple[Part, ...]:
    """Hide what may be a password, wherever it was written by mistake."""
    return tuple(Quoted(_hidden(one.value)) if isinstance(one, Quoted) else one for one in text)


def _hidden(given: Any) -> Any:  # noqa: ANN401 - any TOML value
    if isinstance(given, list | tuple):
        return [_hidden(one) for one in given]
    if not isinstance(given, dict):
        return given
    return {name: "…" if _SECRET.search(name) else _hidden(one) for name, one in given.items()}


def _unknown(path: Keys) -> LocatedProblem:
    """Return the problem of an unknown key, with the key that was probably meant."""
    *section, name = map(str, path)
    if _SECRET_KEY.search(name):
        text = f"a configuration holds no secrets; set {_where(section, name.lower())}"
        return LocatedProblem(path, text)
    known = keys_of()
    siblings = {one[-1]: one for one in known if [*one[:-1]] == section}
    near = closest(name, siblings)
    meant = siblings[near] if near else next((one for one in known if one[-1] == name), None)
    if meant is not None:
        return LocatedProblem(path, "unknown key", meant)
    whole = f"[{dotted(path[:-1])}]" if section else "a configuration"
    return LocatedProblem(path, f"unknown key; {whole} has {', '.join(siblings)}")


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
