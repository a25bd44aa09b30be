"""abers: streaming prediction with exact, incrementally updated Venn-Abers calibration.

Score at prediction time, pair at label time, never re-score: a model's score
goes in, two probabilities come out, one of which is calibrated, and every label
that arrives improves the next prediction.
"""

from __future__ import annotations

from abers._backend import backend
from abers.calibration import (
    BetaCalibration,
    CrossInterval,
    CrossVennAbers,
    Hull,
    Isotonic,
    MultiInterval,
    OneVsOne,
    OneVsRest,
    Platt,
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
    NotHeldError,
    ParameterError,
    RecordError,
    ScoreError,
    StateError,
    TimeError,
    WeightError,
)

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
    "Hull",
    "InputError",
    "Isotonic",
    "LabelError",
    "MissingExtraError",
    "MultiInterval",
    "NotHeldError",
    "OneVsOne",
    "OneVsRest",
    "ParameterError",
    "Platt",
    "RecordError",
    "ScoreError",
    "StateError",
    "TimeError",
    "Uncalibrated",
    "VennAbers",
    "VennInterval",
    "WeightError",
    "backend",
]

__version__ = "0.1.0"
