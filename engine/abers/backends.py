"""The implementation of the core: the native one, or the reference.

`ABERS_BACKEND` (``native`` or ``reference``) chooses it. Without it the native core runs, or the
reference with a warning if the native core is missing. The reference has only the sets of
`VennAbers`, `IVAPR` and `UnboundedIVAR`; what needs more of the core raises a `BackendError`.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from abers.exceptions import BackendError, FallbackWarning

if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["backend", "core", "lacking", "require_native"]

_NEEDS = "streams, monitors, protection and cross calibration need the native core of abers"
_INSTALL = "install a C++20 compiler and the Python headers and reinstall abers"


class _Reference(ModuleType):
    """The sets of the reference; the other names of the core raise a BackendError."""

    def __init__(self) -> None:
        super().__init__("abers.reference")
        sets = import_module("abers.reference")
        self.CalibrationSet, self.PredictiveSet = sets.CalibrationSet, sets.PredictiveSet
        self.isotonic_blocks = sets.isotonic_blocks
        self.MeanSet = sets.MeanSet

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what only the native core has."""
        raise BackendError(lacking())


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
        return "reference", _Reference()
    try:
        return "native", _native()
    except ImportError as error:
        if wanted == "native":
            msg = f"ABERS_BACKEND=native: the native core cannot be imported ({error}); {_INSTALL}"
            raise BackendError(msg) from error
        warnings.warn(
            "abers runs on its reference implementation: VennAbers, IVAPR and what is made of "
            f"their sets, thousands of times slower; {_NEEDS}, which this installation lacks; "
            f"{_INSTALL} (ABERS_BACKEND=reference silences this)",
            FallbackWarning,
            stacklevel=4,
        )
        return "reference", _Reference()


_NAME, core = _choose()


def backend() -> Literal["native", "reference"]:
    """Return the name of the implementation in use.

    Returns
    -------
    str
        ``"native"`` (C++), or ``"reference"``: plain Python with `VennAbers`, `IVAPR`,
        `UnboundedIVAR` and what is made of their sets alone.
    """
    return _NAME


def lacking() -> str | None:
    """Return what cannot run on the reference and the remedy; None on the native core."""
    if _NAME == "native":
        return None
    if os.environ.get("ABERS_BACKEND"):
        return f"{_NEEDS}, which ABERS_BACKEND=reference leaves out; unset it"
    return f"{_NEEDS}, which this installation lacks; {_INSTALL}"


def require_native() -> None:
    """Raise a BackendError that says what to install, unless the native core runs."""
    if (problem := lacking()) is not None:
        raise BackendError(problem)
