"""The calibrators by name: the only list of them.

Configuration, comparison, stream tasks and documentation read it. A calibrator of your own needs no
entry: it is named by its import path, such as ``"package.module:Class"``.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from abers.base import Calibrator
from abers.exceptions import ParameterError
from abers.validation import shown

if TYPE_CHECKING:
    from abers.capabilities import Capabilities

__all__ = ["capabilities", "find", "is_path", "names", "protected_names", "require"]

_BY_TASK = {
    "binary": {
        "ivap": "abers.calibration.venn_abers:VennAbers",
        "cvap": "abers.calibration.cross:CrossVennAbers",
        "protected": "abers.calibration.protected:ProtectedVennAbers",
        "platt": "abers.calibration.platt:Platt",
        "isotonic": "abers.calibration.baselines:Isotonic",
        "dir": "abers.calibration.baselines:DirectIsotonic",
        "beta": "abers.calibration.beta:BetaCalibration",
        "uncalibrated": "abers.calibration.baselines:Uncalibrated",
    },
    "multiclass": {
        "one-vs-rest": "abers.calibration.one_vs_rest:OneVsRest",
        "one-vs-one": "abers.calibration.one_vs_one:OneVsOne",
        "protected-classes": "abers.calibration.protected_classes:ProtectedMultiClass",
    },
    "regression": {"ivapr": "abers.regression.ivapr:IVAPR"},
}
_PATHS = {name: path for task in _BY_TASK.values() for name, path in task.items()}
_PROTECTED = {
    "ivap": "abers.calibration.protected:ProtectedVennAbers",
    "cvap": "abers.calibration.protected_cross:ProtectedCrossVennAbers",
}
_ALWAYS_PROTECTED = "protected"  # the protected form of "ivap", by a name of its own
_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def __dir__() -> list[str]:
    """List the public names."""
    return __all__


def names(task: str | None = None) -> tuple[str, ...]:
    """List the names of calibrators, the default of each task first.

    Parameters
    ----------
    task
        "binary", "multiclass" or "regression"; None for all of them.

    Returns
    -------
    tuple of str
        The names.

    Examples
    --------
    >>> names("multiclass")
    ('one-vs-rest', 'one-vs-one', 'protected-classes')
    """
    return tuple(_PATHS) if task is None else tuple(_BY_TASK[task])


def protected_names() -> tuple[str, ...]:
    """List the names of calibrators that have a protected form.

    Returns
    -------
    tuple of str
        The names; "protected" is last, and has no other form.

    Examples
    --------
    >>> protected_names()
    ('ivap', 'cvap', 'protected')
    """
    return (*_PROTECTED, _ALWAYS_PROTECTED)


def is_path(name: str) -> bool:
    """Return whether a name is an import path, ``"package.module:Class"``."""
    return _PATH.fullmatch(name) is not None


def find(name: str, *, protected: bool = False) -> type[Calibrator[Any, Any, Any, Any]]:
    """Import the class of a calibrator.

    Parameters
    ----------
    name
        A name of the registry, or an import path.
    protected
        Whether to find its protected form, which only `protected_names` have.

    Returns
    -------
    type
        The class.

    Raises
    ------
    ParameterError
        If there is no such calibrator.

    Examples
    --------
    >>> find("platt").__name__, find("abers.calibration.platt:Platt").__name__
    ('Platt', 'Platt')
    >>> find("ivap", protected=True).__name__
    'ProtectedVennAbers'
    """
    paths = _PATHS | _PROTECTED if protected else _PATHS
    module, _, attribute = paths.get(name, name).partition(":")
    if name not in _PATHS and not is_path(name):
        close = get_close_matches(name, _PATHS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        msg = (
            f"calibrator {shown(name)} is unknown{hint}; use one of {', '.join(_PATHS)}, or an "
            "import path such as 'package.module:Class'"
        )
        raise ParameterError(msg)
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        msg = f"calibrator {shown(name)} cannot be imported: {error}"
        raise ParameterError(msg) from error
    if not (isinstance(found, type) and issubclass(found, Calibrator)):
        msg = f"calibrator {shown(name)} is not a subclass of abers.base.Calibrator"
        raise ParameterError(msg)
    return found


def capabilities(name: str) -> Capabilities:
    """Return what a calibrator can do.

    Examples
    --------
    >>> capabilities("beta").score
    'probability'
    """
    return find(name).capabilities


def require(name: str, task: str) -> None:
    """Check that a name is that of a calibrator for a task; an import path is not imported.

    Raises
    ------
    ParameterError
        If it is not.
    """
    if name not in _BY_TASK[task] and not is_path(name):
        known = ", ".join(_BY_TASK[task])
        msg = (
            f"calibrator={shown(name)} is none for a {task} task; use {known}, or the import path "
            "of your own, 'package.module:Class'"
        )
        raise ParameterError(msg)
