"""The optional library behind Parquet and zstd.

Governing rule: it is imported where it is needed, and its absence is an error
that names the command that installs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from abers.exceptions import MissingExtraError

__all__ = ["pyarrow"]


def pyarrow(needed_for: str, module: str = "pyarrow") -> Any:  # noqa: ANN401 - a module
    """Import pyarrow, or one of its modules.

    Parameters
    ----------
    needed_for
        What needs it, for the message.
    module
        The module's full name.

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
        msg = f"{needed_for} needs pyarrow, which is not installed; run: pip install 'abers[files]'"
        raise MissingExtraError(msg) from error
