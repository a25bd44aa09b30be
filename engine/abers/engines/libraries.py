"""The libraries of the engines, each an extra of abers, imported when one is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from abers.exceptions import MissingExtraError

__all__ = ["require_library"]


def require_library(module: str, extra: str) -> Any:  # noqa: ANN401 - a module
    """Import a module of an engine; a MissingExtraError says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        msg = f"abers.engines.{extra} needs {module.partition('.')[0]}, which is not installed; "
        msg += f"run: pip install 'abers[{extra}]'"
        raise MissingExtraError(msg) from error
