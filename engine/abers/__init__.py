"""abers: streaming prediction with exact, incrementally updated Venn-Abers calibration.

A model's score goes in, and two probabilities come out; one of them is calibrated. Every label
that arrives improves the next prediction. Observations are scored at prediction time, paired with
their labels at label time, and never scored again.

The packages of abers, `base`, `checks` and `registry`, and the functions
`report` and `monitor`, are imported at their first use.
"""

import importlib
from typing import TYPE_CHECKING

from abers.backends import backend
from abers.calibration import (
    BetaCalibration,
    CrossInterval,
    CrossVennAbers,
    Isotonic,
    IsotonicFit,
    MultiInterval,
    OneVsOne,
    OneVsRest,
    Platt,
    ProtectedCrossVennAbers,
    ProtectedInterval,
    ProtectedMultiClass,
    ProtectedVennAbers,
    Uncalibrated,
    VennAbers,
    VennInterval,
)
from abers.exceptions import (
    AbersError,
    BackendError,
    ConfigError,
    DeadLettersError,
    FallbackWarning,
    ForgettingError,
    InputError,
    LabelError,
    MissingExtraError,
    MissingIdWarning,
    NotHeldError,
    ParameterError,
    RecordError,
    ScoreError,
    StateError,
    TimeError,
    WeightError,
)
from abers.version import __version__

if TYPE_CHECKING:
    from abers import (
        base,
        batch,
        calibration,
        checks,
        engines,
        learners,
        monitoring,
        notebook,
        plotting,
        registry,
        regression,
        river,
        sklearn,
        stream,
    )
    from abers.notebook import monitor, report

__all__ = [
    "AbersError",
    "BackendError",
    "BetaCalibration",
    "ConfigError",
    "CrossInterval",
    "CrossVennAbers",
    "DeadLettersError",
    "FallbackWarning",
    "ForgettingError",
    "InputError",
    "Isotonic",
    "IsotonicFit",
    "LabelError",
    "MissingExtraError",
    "MissingIdWarning",
    "MultiInterval",
    "NotHeldError",
    "OneVsOne",
    "OneVsRest",
    "ParameterError",
    "Platt",
    "ProtectedCrossVennAbers",
    "ProtectedInterval",
    "ProtectedMultiClass",
    "ProtectedVennAbers",
    "RecordError",
    "ScoreError",
    "StateError",
    "TimeError",
    "Uncalibrated",
    "VennAbers",
    "VennInterval",
    "WeightError",
    "__version__",
    "backend",
    "base",
    "batch",
    "calibration",
    "checks",
    "engines",
    "learners",
    "monitor",
    "monitoring",
    "notebook",
    "plotting",
    "registry",
    "regression",
    "report",
    "river",
    "sklearn",
    "stream",
]

_NOTEBOOK = ("monitor", "report")


def __getattr__(name: str) -> object:
    """Import a package or module of abers, or a function of `abers.notebook`, at its first use."""
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    if name in _NOTEBOOK:
        return getattr(importlib.import_module("abers.notebook"), name)
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
