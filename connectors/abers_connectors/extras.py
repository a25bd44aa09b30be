"""The optional libraries.

Governing rule: each is imported where it is needed, and its absence is an error
that names the command that installs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from abers.exceptions import MissingExtraError

__all__ = ["extra"]


def extra(module: str, needed_for: str, group: str = "files") -> Any:  # noqa: ANN401 - a module
    """Import an optional library.

    Parameters
    ----------
    module
        The module's full name.
    needed_for
        What needs it, for the message.
    group
        The extra of abers that has it.

    Returns
    -------
    module
        The module.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        msg = f"{needed_for} needs {library}, which is not installed; "
        msg += f"run: pip install 'abers[{group}]'"
        raise MissingExtraError(msg) from error
