"""The layers of a configuration: file, environment and flags, and the values that come of them.

Each value remembers its origin, so an error names the file, the variable or the command line. This
module knows nothing of what the keys mean.

The values of a configuration by key, and the mistakes in single ones. A message shows the value and
says how to fix it. Values that may hold a password are not shown.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from abers.exceptions import ConfigError, ParameterError
from abers.stream.option import Part, Quoted, Ref, RefusedValueError, said, variable
from abers.stream.settings import setting_options
from abers.suggestions import closest
from abers_connectors.config import sections
from abers_connectors.config.values import RUN_LENGTH, read_toml, section_options
from abers_connectors.errors import printable
from abers_connectors.files import SUFFIXES, suffix_of
from abers_connectors.regular_files import no_such_file, open_regular

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream.option import Option
    from abers_connectors.config.values import Section

__all__ = [
    "INPUTS",
    "OF_SETTINGS",
    "OUTPUTS",
    "SECTIONS",
    "Found",
    "Keys",
    "Layers",
    "LocatedProblem",
    "OptionsError",
    "RawValues",
    "Text",
    "dotted",
    "is_name",
    "keys_of",
    "option",
    "options",
    "read_sections",
    "unread_variables",
    "unused_variables",
]

Keys: TypeAlias = tuple[str | int, ...]

_FLAGS = "command line"
_PREFIX, _SEPARATOR = "ABERS_", "__"
_BARE = re.compile(r"[\w-]+", re.ASCII)
_AT = re.compile(r"(?P<what>.*) \(at (?P<where>.*)\)", re.DOTALL)


class OptionsError(ParameterError):
    """Flags have mistakes, and nothing else has; `problems` lists all of them."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(problems)  # as they are, so that a pickle can make it again
        self.problems = problems

    def __str__(self) -> str:
        """Return all mistakes, one a line."""
        return "\n".join(self.problems)


class LocatedProblem(NamedTuple):
    """A mistake in a configuration."""

    path: Keys
    text: str | tuple[Part, ...]  # what is wrong, and how to fix it
    meant: Keys | None = None  # the keys that were probably meant


class _Origin(NamedTuple):
    source: str
    label: str | None = None  # the source's own name of the key, such as a variable


def dotted(path: Keys) -> str:
    """Write keys as TOML does.

    >>> dotted(("input", "fields", "id")), dotted(("input", "a key"))
    ('input.fields.id', 'input."a key"')
    """
    keys = map(str, path)
    return ".".join(
        key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in keys
    )


def is_variable(name: str) -> bool:
    """Return whether a variable of the environment is that of a key.

    >>> is_variable("ABERS_INPUT__DELAY"), is_variable("ABERS_BACKEND")
    (True, False)
    """
    return name.startswith(_PREFIX) and _SEPARATOR in name[len(_PREFIX) :]


@dataclass
class Layers:
    """Values in sections, merged from all layers."""

    main: str  # the source that errors name for a missing key
    values: dict[str, Any] = field(default_factory=dict)  # each from the highest layer that has it
    problems: list[str] = field(default_factory=list)  # about values that could not be merged
    _origins: dict[Keys, _Origin] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str] | None,
        environ: Mapping[str, str],
        flags: Mapping[str, Any],
    ) -> Layers:
        """Merge file, environment and flags; raise a ConfigError if the file is not TOML."""
        layers = cls(_FLAGS if path is None else os.fspath(path))
        if path is not None:
            for key, value in _parsed(Path(path), layers.main).items():
                layers._merge((key,), value, _Origin(layers.main))
        for name in sorted(environ):
            if is_variable(name):
                keys = tuple(name.removeprefix(_PREFIX).lower().split(_SEPARATOR))
                layers._merge(keys, _value(environ[name]), _Origin("environment", name))
        for name, value in flags.items():
            layers._merge(tuple(name.split(".")), value, _Origin(_FLAGS))
        return layers

    def _merge(self, path: Keys, value: Any, origin: _Origin) -> None:  # noqa: ANN401 - any TOML value
        """Set a value and its origin at a path; merge a section key by key."""
        *sections, last = path
        within: Any = self.values
        for depth, key in enumerate(sections, start=1):
            within = within.setdefault(key, {})
            if not isinstance(within, dict):
                text = f"{dotted(path[:depth])} is a value, not a section"
                self.problems.append(_message(path, origin, text))
                return
        if isinstance(value, dict) and (isinstance(within.get(last), dict) or last not in within):
            within.setdefault(last, {})
            self._origins.setdefault(path, origin)
            for key, inner in value.items():
                self._merge((*path, key), inner, origin)
            return
        self._origins = {at: one for at, one in self._origins.items() if at[: len(path)] != path}
        self._origins[path] = origin
        within[last] = value

    def line(self, problem: LocatedProblem) -> str:
        """Return the message of a mistake, with its origin."""
        path, parts, meant = problem
        origin = self._origin(path)
        text = parts if isinstance(parts, str) else said(parts, "env" if origin.label else "toml")
        if meant is not None:
            near = str(meant[-1]) if meant[:-1] == path[:-1] else dotted(meant)
            within = (origin.label or "")[len(variable(dotted(path))) :]
            name = f"{variable(dotted(meant))}{within}" if origin.label else json.dumps(near)
            text += f"; did you mean {name}?"
        return _message(path, origin, text)

    def is_flag(self, path: Keys) -> bool:
        """Return whether a value comes from the command line."""
        return self._origin(path).source == _FLAGS

    def _origin(self, path: Keys) -> _Origin:
        """Return the origin of a value, or else of something in it, or else of its section."""
        if path in self._origins:
            return self._origins[path]
        for at, origin in self._origins.items():
            if at[: len(path)] == path:
                return origin
        outer = self._origin(path[:-1]) if path else _Origin(self.main)
        # An element of a list has no name of its own; a missing key is not its section.
        return outer if path and isinstance(path[-1], int) else _Origin(outer.source)


def _message(path: Keys, origin: _Origin, text: str) -> str:
    return printable(f"{origin.source}: {origin.label or dotted(path)}: {text}")


def _parsed(path: Path, name: str) -> dict[str, Any]:
    """Parse a TOML file, or raise a ConfigError that names the mistake."""
    try:
        with open_regular(path) as file:
            return tomllib.load(file)
    except FileNotFoundError:
        problem = no_such_file(path)
    except IsADirectoryError:
        problem = "is a directory; name a TOML file in it"
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} is not UTF-8; save the file as UTF-8"
    except RecursionError:
        problem = "is nested too deeply"
    except ValueError as error:  # a TOMLDecodeError, or a number of thousands of digits
        found = _AT.fullmatch(str(error))
        problem = f"{found['where']}: {found['what']}" if found else str(error)
    if path.is_file() and suffix_of(name) in SUFFIXES:
        problem = f"is a file of records, no configuration; try: abers replay {name}"
    raise ConfigError([printable(f"{name}: {problem}")])


def _value(text: str) -> Any:  # noqa: ANN401
    """Read the value of a variable as TOML, or else as a string."""
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return found["value"] if len(found) == 1 else text


SECTIONS: Mapping[str, type[Section] | None] = {
    **dict.fromkeys(("task", "calibrator", "learner")),
    "input": sections.InputSection,
    "input.fields": sections.InputFieldsSection,
    "input.label_fields": sections.LabelFieldsSection,
    "output": sections.OutputSection,
    "kafka": sections.KafkaSection,
    "kafka.security": sections.SecuritySection,
    "schema_registry": sections.SchemaRegistrySection,
    "limits": None,
    "state": sections.StateSection,
    "http": sections.HttpSection,
    "serve": sections.ServeSection,
    "monitoring": None,
    "alerts": sections.AlertsSection,
    "telemetry": sections.TelemetrySection,
}
"""The sections in their order; those without a class have settings of the processor alone."""

# Two settings are one key, a number or a time; another is read like a label of a record.
_OWN = ("average_run_time", "unlabelled")
OF_SETTINGS = {one.key: name for name, one in setting_options().items() if name not in _OWN}
"""The setting of each key that is one."""


@cache
def options() -> Mapping[str, Option]:
    """Return the options by key, section by section."""
    return {one.key: one for path in SECTIONS for one in _of_section(path)}


def _of_section(path: str) -> list[Option]:
    if (kind := SECTIONS[path]) is not None:
        return [*section_options(kind, path).values()]
    named = setting_options()
    found = [named[name] for key, name in OF_SETTINGS.items() if key.rpartition(".")[0] == path]
    found = [_with_times(one) if one.name == "average_run_length" else one for one in found]
    return sorted(found, key=lambda one: not one.key.endswith(".kind"))


def _with_times(length: Option) -> Option:
    """Return the run length as a configuration has it: a number, or a time."""
    time = setting_options()["average_run_time"]
    return length.with_kind(
        RUN_LENGTH,
        more=f'A time, such as "{time.example}", is the mean event time between them instead.',
    )


def option(key: str) -> Option:
    """Return the option of a key.

    >>> option("calibrator.half_life").sentence
    'Time in which the weight of a label halves.'
    """
    return options()[key]


_NEAR = 0.9  # a variable that is less alike is one of something else
_NAME = re.compile(r"\bABERS(?:_[A-Z]+)+\b")
_OTHERS = ("ABERS_BACKEND", "ABERS_PREDICT_TOKEN", "ABERS_LABEL_TOKEN")  # of no option's sentence
_LINK = "tcp://"  # Kubernetes makes ABERS_HTTP_PORT of a service abers-http


def unread_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a message on each variable that is nearly that of an option, or of a secret.

    >>> [*unread_variables({"ABERS_CALIBRATOR_WINDOW": "500", "ABERS_STATE_KEY": "..."})]
    ['environment: ABERS_CALIBRATOR_WINDOW: is not read; did you mean ABERS_CALIBRATOR__WINDOW?']
    """
    known = _known()
    for name, value in sorted(environ.items()):
        if is_variable(name) or name in known.values() or value.startswith(_LINK):
            continue
        if near := get_close_matches(_folded(name), known, n=1, cutoff=_NEAR):
            yield f"environment: {name}: is not read; did you mean {known[near[0]]}?"


def unused_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a message on each variable of an option, where there is no configuration to read it.

    >>> [*unused_variables({"ABERS_CALIBRATOR__WINDOW": "500"})]
    ['environment: ABERS_CALIBRATOR__WINDOW: only a configuration reads it; here add --window']
    """
    of = {variable(key): one for key, one in options().items()}
    for name in sorted(filter(is_variable, environ)):
        flag = f"; here add {of[name].flag}" if name in of and of[name].flag else ""
        yield f"environment: {name}: only a configuration reads it{flag}"


@cache
def _known() -> Mapping[str, str]:
    """Return the variables of options and of secrets, which their options' sentences name."""
    sentences = " ".join(f"{one.sentence} {one.more}" for one in options().values())
    names = {*map(variable, options()), *_NAME.findall(sentences), *_OTHERS}
    return {_folded(name): name for name in sorted(names)}


def _folded(name: str) -> str:
    return name.upper().replace("__", "_")


_EXAMPLES = {"bootstrap_servers": 'the address of a broker, "localhost:9092"'}
_KIND = {"name", "type"}  # what else a `kind` is called
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
    near = closest(name, siblings) or ("kind" if name in _KIND and "kind" in siblings else None)
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


INPUTS = ("input.observations", "input.labels")
OUTPUTS = ("output.predictions", "output.outcomes", "output.dead_letters")

Text: TypeAlias = str | tuple[Part, ...]
Found: TypeAlias = Iterator[tuple[str, Text]]
"""Mistakes: the dotted path of a key, and what is wrong with its value."""


def is_name(value: object) -> bool:
    """Return whether this is a string that can name a file, a topic or a field."""
    return isinstance(value, str) and value != "" and "\0" not in value


class RawValues:
    """Values by dotted path, of sections as TOML has them."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def get(self, path: str) -> Any:  # noqa: ANN401 - any TOML value
        """Return the value, or None."""
        found: Any = self._values
        for key in path.split("."):
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def names(self, *paths: str) -> dict[str, str]:
        """Return the values that are names, by path."""
        found = {path: self.get(path) for path in paths}
        return {path: value for path, value in found.items() if is_name(value)}

    def ref(self, path: str, *value: Any) -> Part:  # noqa: ANN401 - at most one
        """Return a key for a message, with a value to set it to; or a section by its name."""
        return Ref(options()[path], *value) if path in options() else path

    def strings(self, path: str) -> tuple[str, ...] | None:
        """Return a list of strings, or None if the value is anything else."""
        found = self.get(path)
        listed = isinstance(found, list | tuple) and all(isinstance(one, str) for one in found)
        return tuple(found) if listed else None
