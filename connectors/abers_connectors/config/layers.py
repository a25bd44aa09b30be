"""The layers of a configuration: file, environment and flags.

Each value remembers its origin, so an error names the file, the variable or the command line. This
module knows nothing of what the keys mean.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from abers.exceptions import ConfigError, ParameterError
from abers.stream.option import Part, said, variable
from abers_connectors.files.formats import SUFFIXES, suffix_of
from abers_connectors.printable import printable
from abers_connectors.regular_files import open_regular
from abers_connectors.suggestions import no_such_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Keys", "Layers", "LocatedProblem", "OptionsError", "dotted", "is_variable"]

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
