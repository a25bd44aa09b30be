"""Wrappers that calibrate river models while they learn.

river takes most of a second to import, so it is imported with the first wrapper that is used.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING

from abers import exceptions

if TYPE_CHECKING:
    from typing import Any

    from abers.river.classifier import VennAbersClassifier
    from abers.river.cross_classifier import CrossVennAbersClassifier
    from abers.river.multi_classifier import VennAbersMultiClassifier
    from abers.river.regressor import VennAbersRegressor

__all__ = [
    "CrossVennAbersClassifier",
    "VennAbersClassifier",
    "VennAbersMultiClassifier",
    "VennAbersRegressor",
]

_MODULES = {
    "CrossVennAbersClassifier": "cross_classifier",
    "VennAbersClassifier": "classifier",
    "VennAbersMultiClassifier": "multi_classifier",
    "VennAbersRegressor": "regressor",
}


def __getattr__(name: str) -> "Any":  # noqa: ANN401 - one of the classes
    """Import a wrapper, and river with it."""
    if name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    if importlib.util.find_spec("river") is None:
        msg = f"{name} needs river; install it: pip install 'abers[river]'"
        raise exceptions.MissingExtraError(msg)
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
