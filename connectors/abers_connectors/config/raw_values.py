"""Configuration values before validation: any may be missing or have a wrong type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from abers_connectors.config.value_types import is_number

__all__ = ["INPUTS", "OUTPUTS", "Found", "RawValues", "is_name"]

INPUTS = ("input.observations", "input.labels")
OUTPUTS = ("output.predictions", "output.outcomes", "output.dead_letters")

Found: TypeAlias = Iterator[tuple[str, str]]
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

    def numbers(self, path: str) -> tuple[float, ...] | None:
        """Return a list of finite numbers, or None if the value is anything else."""
        return self._list(path, is_number)

    def strings(self, path: str) -> tuple[str, ...] | None:
        """Return a list of strings, or None if the value is anything else."""
        return self._list(path, lambda value: isinstance(value, str))

    def _list(self, path: str, test: Callable[[Any], bool]) -> tuple[Any, ...] | None:
        found = self.get(path)
        return tuple(found) if isinstance(found, list | tuple) and all(map(test, found)) else None
