"""Suggestions for a misspelled file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.suggestions import did_you_mean
from abers_connectors.regular_files import irregular

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["no_such_file"]


def no_such_file(path: Path) -> str:
    """Describe why there is no file at a path, with the closest name in its directory."""
    if what := irregular(path):  # a link to a missing file
        return what
    others = path.parent.iterdir() if path.parent.is_dir() else []
    return f"no such file{did_you_mean(path.name, [one.name for one in others])}"
