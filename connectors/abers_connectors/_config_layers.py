"""The layers of a configuration: file, environment, flags.

Governing rule: each value remembers where it came from, so that a mistake in it
is told where it was made. Nothing is known here of what the keys mean.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from abers.exceptions import ConfigError
from abers_connectors._printable import printable
from abers_connectors._suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Keys", "Layers", "Problem", "dotted", "variable"]

Keys: TypeAlias = tuple[str | int, ...]

_PREFIX, _SEPARATOR = "ABERS_", "__"
_BARE = re.compile(r"[\w-]+", re.ASCII)
_AT = re.compile(r"(?P<what>.*) \(at (?P<where>.*)\)", re.DOTALL)


class Problem(NamedTuple):
    """Something wrong with a configuration.

    Parameters
    ----------
    path
        The keys that lead to it.
    text
        What is wrong, and how to mend it.
    meant
        The keys that were probably meant.
    """

    path: Keys
    text: str
    meant: Keys | None = None


class _Place(NamedTuple):
    source: str
    label: str | None = None  # what the source calls the key, if not by its dotted path


def dotted(path: Keys) -> str:
    """Write keys as TOML does.

    Examples
    --------
    >>> dotted(("input", "fields", "id")), dotted(("input", "a key"))
    ('input.fields.id', 'input."a key"')
    """
    keys = map(str, path)
    return ".".join(
        key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in keys
    )


def variable(path: Keys) -> str:
    """Name the variable that stands for some keys.

    Examples
    --------
    >>> variable(("input", "label_fields", "id"))
    'ABERS_INPUT__LABEL_FIELDS__ID'
    """
    return _PREFIX + _SEPARATOR.join(map(str, path)).upper()


@dataclass
class Layers:
    """Values in sections, laid one over the other.

    Parameters
    ----------
    main
        The source that is named for what is nowhere.

    Attributes
    ----------
    values
        The topmost value of each key.
    problems
        Lines for what could not be laid over the rest.
    """

    main: str
    values: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    _places: dict[Keys, _Place] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str] | None,
        environ: Mapping[str, str],
        flags: Mapping[str, Any],
    ) -> Layers:
        """Lay flags over the environment over a file, or raise a ConfigError if it is no TOML."""
        layers = cls("command line" if path is None else os.fspath(path))
        if path is not None:
            for key, value in _parsed(Path(path), layers.main).items():
                layers._lay((key,), value, _Place(layers.main))
        for name in sorted(environ):
            if name.startswith(_PREFIX) and _SEPARATOR in name[len(_PREFIX) :]:
                keys = tuple(name.removeprefix(_PREFIX).lower().split(_SEPARATOR))
                layers._lay(keys, _value(environ[name]), _Place("environment", name))
        for name, value in flags.items():
            layers._lay(tuple(name.split(".")), value, _Place("command line"))
        return layers

    def _lay(self, path: Keys, value: Any, place: _Place) -> None:  # noqa: ANN401 - any TOML value
        *sections, last = path
        within: Any = self.values
        for depth, key in enumerate(sections, start=1):
            within = within.setdefault(key, {})
            if not isinstance(within, dict):
                what = f"{dotted(path[:depth])} is no section that holds keys"
                self.problems.append(self._worded(path, place, what))
                return
        if isinstance(value, dict) and (isinstance(within.get(last), dict) or last not in within):
            within.setdefault(last, {})
            self._places.setdefault(path, place)
            for key, inner in value.items():
                self._lay((*path, key), inner, place)
            return
        self._places = {at: one for at, one in self._places.items() if at[: len(path)] != path}
        self._places[path] = place
        within[last] = value

    def line(self, problem: Problem) -> str:
        """Say where something is wrong, and what."""
        place = self._place(problem.path)
        text = problem.text
        if problem.meant is not None:
            known = problem.meant[-1] if problem.meant[:-1] == problem.path[:-1] else None
            meant = f'"{known or dotted(problem.meant)}"'
            text += f", did you mean {variable(problem.meant) if place.label else meant}?"
        return self._worded(problem.path, place, text)

    def _worded(self, path: Keys, place: _Place, text: str) -> str:
        return printable(f"{place.source}: {place.label or dotted(path)}: {text}")

    def _place(self, path: Keys) -> _Place:
        """Find where a value was given, or else something in it, or else what it stands in."""
        if path in self._places:
            return self._places[path]
        for at, place in self._places.items():
            if at[: len(path)] == path:
                return place
        outer = self._place(path[:-1]) if path else _Place(self.main)
        # The element of a list has no name of its own; a key that is missing is not its section.
        return outer if path and isinstance(path[-1], int) else _Place(outer.source)


def _parsed(path: Path, name: str) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        beside = path.parent.iterdir() if path.parent.is_dir() else []
        problem = f"no such file{did_you_mean(path.name, [one.name for one in beside])}"
    except IsADirectoryError:
        problem = "is a directory; name a TOML file in it"
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} is not UTF-8; save the file in that encoding"
    except RecursionError:
        problem = "is nested too deeply"
    except ValueError as error:  # a TOMLDecodeError, or a number of thousands of digits
        found = _AT.fullmatch(str(error))
        problem = f"{found['where']}: {found['what']}" if found else str(error)
    raise ConfigError([printable(f"{name}: {problem}")])


def _value(text: str) -> Any:  # noqa: ANN401
    """Read the value of a variable: as TOML does, or else as it stands."""
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return found["value"] if len(found) == 1 else text
