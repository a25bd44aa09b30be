"""What scores features where a model does not bring its scores, and wrappers that calibrate models.

Governing rule: river and scikit-learn are imported when one of their wrappers is asked for, never
before.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from abers.exceptions import MissingExtraError
from abers.learners.learner import Learner

if TYPE_CHECKING:
    from abers.learners.classifier import VennAbersClassifier
    from abers.learners.cross_classifier import CrossVennAbersClassifier
    from abers.learners.multi_classifier import VennAbersMultiClassifier

__all__ = [
    "CrossVennAbersClassifier",
    "Learner",
    "VennAbersClassifier",
    "VennAbersMultiClassifier",
]

_HOMES = {
    "CrossVennAbersClassifier": ("cross_classifier", "river", "river"),
    "VennAbersClassifier": ("classifier", "river", "river"),
    "VennAbersMultiClassifier": ("multi_classifier", "river", "river"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the classes of `_HOMES`
    """Import a wrapper, and the library that it wraps."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    module, library, extra = _HOMES[name]
    if importlib.util.find_spec(library) is None:
        msg = f"{name} needs {library}; install it: pip install 'abers[{extra}]'"
        raise MissingExtraError(msg)
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
