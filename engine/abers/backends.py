"""The implementation of the core: the native one, or the reference.

`ABERS_BACKEND` (``native`` or ``reference``) chooses it. Without it the native core runs, or the
reference with a warning if the native core is missing.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from abers.exceptions import BackendError, FallbackWarning

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["backend", "core"]


def _native() -> ModuleType:
    native = import_module("abers._core")  # missing from a wheel that was built without a compiler
    # In a checkout that was not built, the folder of the C++ sources is a namespace package.
    if native.__spec__ is None or not native.__spec__.has_location:
        msg = "only its sources are there"
        raise ImportError(msg)
    return native


def _choose() -> tuple[Literal["native", "reference"], ModuleType]:
    """Return the name and the module of the backend."""
    wanted = os.environ.get("ABERS_BACKEND", "")
    if wanted not in {"", "native", "reference"}:
        msg = f"ABERS_BACKEND={wanted!r}: unknown backend, use 'native' or 'reference'"
        raise BackendError(msg)
    if wanted == "reference":
        return "reference", import_module("abers.reference")
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
        return "reference", import_module("abers.reference")


_NAME, core = _choose()


def backend() -> Literal["native", "reference"]:
    """Return the name of the implementation in use.

    Returns
    -------
    str
        ``"native"`` (C++) or ``"reference"`` (plain Python).
    """
    return _NAME
