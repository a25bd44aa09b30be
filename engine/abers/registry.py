"""The calibrators by task and name: the only list of them.

Configuration, comparison, stream tasks and documentation read it. "protected" is the protected form
of the first calibrator of a task. A calibrator of your own needs no entry: it is named by its
import path, such as ``"package.module:Class"``.
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
    from collections.abc import Mapping

    from abers.mathematics import Capabilities

__all__ = [
    "NONE",
    "capabilities",
    "find",
    "is_path",
    "names",
    "protected_forms",
    "require",
]

_BY_TASK = {
    "binary": {
        "ivap": "abers.calibration.venn_abers:VennAbers",
        "cvap": "abers.calibration.cross:CrossVennAbers",
        "protected": "abers.calibration.protected:ProtectedVennAbers",
        "protected-cvap": "abers.calibration.protected_cross:ProtectedCrossVennAbers",
        "platt": "abers.calibration.baselines:Platt",
        "isotonic": "abers.calibration.baselines:Isotonic",
        "dir": "abers.calibration.baselines:DirectIsotonic",
        "beta": "abers.calibration.baselines:BetaCalibration",
        "none": "abers.calibration.uncalibrated:Uncalibrated",
    },
    "multiclass": {
        "one-vs-rest": "abers.calibration.multiclass:OneVsRest",
        "one-vs-one": "abers.calibration.multiclass:OneVsOne",
        "protected": "abers.calibration.protected_classes:ProtectedMultiClass",
        "none": "abers.calibration.uncalibrated:UncalibratedClasses",
    },
    "regression": {
        "ivapr": "abers.regression.ivapr:IVAPR",
        "protected": "abers.regression.protected_ivapr:ProtectedIVAPR",
    },
}
_PROTECTED: Mapping[str, Mapping[str, str]] = {
    "binary": {"ivap": "protected", "cvap": "protected-cvap"},
    "multiclass": {"one-vs-rest": "protected"},
    "regression": {},
}
NONE = "none"
"""The calibrator that serves the scores as they are."""
_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def __dir__() -> list[str]:
    """List the public names."""
    return __all__


def names(task: str | None = None) -> tuple[str, ...]:
    """List the names of calibrators, each once, the default of a task first.

    Parameters
    ----------
    task
        "binary", "multiclass" or "regression"; None for all of them.

    Returns
    -------
    tuple of str
        The names.

    Raises
    ------
    ParameterError
        If there is no such task.

    Examples
    --------
    >>> names("multiclass")
    ('one-vs-rest', 'one-vs-one', 'protected', 'none')
    """
    tasks = _BY_TASK.values() if task is None else [_of_task(_BY_TASK, task)]
    return tuple(dict.fromkeys(name for one in tasks for name in one))


def _of_task(tables: Mapping[str, Mapping[str, str]], task: str) -> Mapping[str, str]:
    if not isinstance(task, str) or task not in tables:
        msg = f"task={shown(task)} is unknown; use {', '.join(tables)}"
        raise ParameterError(msg)
    return tables[task]


def protected_forms(task: str) -> Mapping[str, str]:
    """Name the protected form of each calibrator of probabilities that has one.

    Parameters
    ----------
    task
        As in `names`.

    Returns
    -------
    mapping of str to str
        From the name of a calibrator to that of its protected form.

    Raises
    ------
    ParameterError
        As in `names`.

    Examples
    --------
    >>> protected_forms("multiclass"), protected_forms("regression")
    ({'one-vs-rest': 'protected'}, {})
    """
    return _of_task(_PROTECTED, task)


def is_path(name: str) -> bool:
    """Return whether a name is an import path, ``"package.module:Class"``."""
    return _PATH.fullmatch(name) is not None


def find(name: str, task: str) -> type[Calibrator[Any, Any, Any, Any]]:
    """Import the class of a calibrator.

    Parameters
    ----------
    name
        A name of the registry, or an import path.
    task
        As in `names`. An import path may be that of a calibrator for another task.

    Returns
    -------
    type
        The class.

    Raises
    ------
    ParameterError
        If there is no calibrator of this name for the task.

    Examples
    --------
    >>> find("platt", "binary").__name__, find("abers:Platt", "binary").__name__
    ('Platt', 'Platt')
    >>> find("protected", "binary").__name__, find("protected", "multiclass").__name__
    ('ProtectedVennAbers', 'ProtectedMultiClass')
    """
    require(name, task)
    module, _, attribute = _BY_TASK[task].get(name, name).partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        msg = f"calibrator {shown(name)} cannot be imported: {error}"
        raise ParameterError(msg) from error
    if not (isinstance(found, type) and issubclass(found, Calibrator)):
        msg = f"calibrator {shown(name)} is not a subclass of abers.base.Calibrator"
        raise ParameterError(msg)
    return found


def capabilities(name: str, task: str) -> Capabilities:
    """Return what a calibrator can do; see `find`.

    Examples
    --------
    >>> capabilities("beta", "binary").score
    'probability'
    """
    return find(name, task).capabilities


def require(name: str, task: str) -> None:
    """Check that a name is that of a calibrator for a task; an import path is not imported.

    Raises
    ------
    ParameterError
        If it is not.
    """
    known = _of_task(_BY_TASK, task)
    if not isinstance(name, str) or (name not in known and not is_path(name)):
        close = get_close_matches(name, known, 1) if isinstance(name, str) else ()
        hint = f"; did you mean {close[0]!r}?" if close else ""
        msg = (
            f"{shown(name)} is no calibrator for a {task} task; use {', '.join(known)}, or the "
            f"import path of your own, 'package.module:Class'{hint}"
        )
        raise ParameterError(msg)
