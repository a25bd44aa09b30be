"""Wrappers that calibrate scikit-learn classifiers and regressors.

scikit-learn is slow to import, so it is imported with the first wrapper that is used.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING

from abers import exceptions

if TYPE_CHECKING:
    from typing import Any

    from abers.sklearn.calibrated_classifier import VennAbersCalibratedClassifier
    from abers.sklearn.calibrated_regressor import VennAbersCalibratedRegressor

__all__ = ["VennAbersCalibratedClassifier", "VennAbersCalibratedRegressor"]

_MODULES = {
    "VennAbersCalibratedClassifier": "calibrated_classifier",
    "VennAbersCalibratedRegressor": "calibrated_regressor",
}


def __getattr__(name: str) -> "Any":  # noqa: ANN401 - one of the classes
    """Import a wrapper, and scikit-learn with it."""
    if name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    if importlib.util.find_spec("sklearn") is None:
        msg = "this wrapper needs scikit-learn; install it: pip install 'abers[sklearn]'"
        raise exceptions.MissingExtraError(msg)
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
