"""Which implementation of the core runs: the native one or the reference.

Governing rule: `ABERS_BACKEND` (``native`` or ``reference``) is obeyed to the
letter; without it the native core runs, and its absence is said loudly.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Literal

from abers.exceptions import BackendError, FallbackWarning

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["backend", "core"]


def _native() -> ModuleType:
    from abers import _core  # noqa: PLC0415 - absent from a wheel built without a compiler

    # In a checkout that was not built, the folder of the C++ sources is a namespace package.
    if _core.__spec__ is None or not _core.__spec__.has_location:
        msg = "only its sources are there"
        raise ImportError(msg)
    return _core


def _reference() -> ModuleType:
    from abers import reference  # noqa: PLC0415 - only the chosen backend is loaded

    return reference


def _choose() -> tuple[Literal["native", "reference"], ModuleType]:
    wanted = os.environ.get("ABERS_BACKEND", "")
    if wanted not in {"", "native", "reference"}:
        msg = f"ABERS_BACKEND={wanted!r}: unknown backend, use 'native' or 'reference'"
        raise BackendError(msg)
    if wanted == "reference":
        return "reference", _reference()
    try:
        return "native", _native()
    except ImportError as error:
        if wanted == "native":
            msg = (
                "ABERS_BACKEND=native: the native core cannot be imported "
                f"({error}); install a C++20 compiler and the Python headers and reinstall abers"
            )
            raise BackendError(msg) from error
        warnings.warn(
            "abers runs on its reference implementation, thousands of times slower than the "
            "native core, which this installation lacks; install a C++20 compiler and the "
            "Python headers and reinstall abers (ABERS_BACKEND=reference silences this)",
            FallbackWarning,
            stacklevel=4,
        )
        return "reference", _reference()


_NAME, core = _choose()


def backend() -> Literal["native", "reference"]:
    """Name the implementation of the core in use.

    Returns
    -------
    str
        ``"native"`` (C++) or ``"reference"`` (plain Python).
    """
    return _NAME
