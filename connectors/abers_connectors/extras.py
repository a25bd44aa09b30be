"""Optional libraries.

Each is imported where it is needed. If it is missing, the error names the command that installs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from abers.exceptions import MissingExtraError

__all__ = ["extra"]


def extra(module: str, needed_for: str, group: str = "files") -> Any:  # noqa: ANN401 - a module
    """Import a module of an optional library, which an extra of abers, the group, installs.

    If it is missing, the MissingExtraError names the feature that needs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        msg = f"{needed_for} needs {library}, which is not installed; "
        msg += f"run: pip install 'abers[{group}]'"
        raise MissingExtraError(msg) from error
