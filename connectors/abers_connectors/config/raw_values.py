"""Configuration values before validation: any may be missing or have a wrong type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from abers.stream.option import Part, Ref
from abers_connectors.config.options import options

__all__ = ["INPUTS", "OUTPUTS", "Found", "RawValues", "Text", "is_name"]

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
