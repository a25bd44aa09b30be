"""What scores features where a model does not bring its scores, and wrappers that calibrate models.

Governing rule: river is imported when one of its wrappers is asked for, never before; those of
scikit-learn live in `abers.learners.sklearn`.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

from abers import exceptions
from abers.learners.learner import Learner

if TYPE_CHECKING:
    from typing import Any

    from abers.learners.classifier import VennAbersClassifier
    from abers.learners.cross_classifier import CrossVennAbersClassifier
    from abers.learners.multi_classifier import VennAbersMultiClassifier
    from abers.learners.regressor import VennAbersRegressor

__all__ = [
    "CrossVennAbersClassifier",
    "Learner",
    "VennAbersClassifier",
    "VennAbersMultiClassifier",
    "VennAbersRegressor",
]

_RIVER = {
    "CrossVennAbersClassifier": "cross_classifier",
    "VennAbersClassifier": "classifier",
    "VennAbersMultiClassifier": "multi_classifier",
    "VennAbersRegressor": "regressor",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the classes of `_RIVER`
    """Import a wrapper, and with it river."""
    if name not in _RIVER:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    if importlib.util.find_spec("river") is None:
        msg = f"{name} needs river; install it: pip install 'abers[river]'"
        raise exceptions.MissingExtraError(msg)
    return getattr(importlib.import_module(f"{__name__}.{_RIVER[name]}"), name)
