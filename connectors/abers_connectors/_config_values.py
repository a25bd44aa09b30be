"""Values of a configuration that need not be right.

Governing rule: whoever looks at them gets what is there, or its default, and
whatever is of another type is no value for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Values", "is_name"]


class Values:
    """Values by dotted path.

    Parameters
    ----------
    values
        In sections, as in TOML; anything may be missing or of a wrong type.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def get(self, path: str) -> Any:  # noqa: ANN401 - whatever TOML holds
        """Give the value at a path, or None."""
        found: Any = self._values
        for key in path.split("."):
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def texts(self, *paths: str) -> dict[str, str]:
        """Give the texts at some paths, in this order, where there are any."""
        found = {path: self.get(path) for path in paths}
        return {path: value for path, value in found.items() if is_name(value)}


def is_name(value: object) -> bool:
    """Tell a text that can name something from anything else."""
    return isinstance(value, str) and value != "" and "\0" not in value
