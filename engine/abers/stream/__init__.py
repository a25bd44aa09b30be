"""The stream processor: observations in, predictions out, labels whenever they come.

`DurableProcessor` and `Follower`, which need files, are imported at their first use.
"""

import importlib
from typing import TYPE_CHECKING

from abers.monitoring.measures import Forecasts, ScoredRows
from abers.stream.columns import Events
from abers.stream.events import (
    Alarm,
    DeadLetter,
    Event,
    Label,
    MultiClassOutcome,
    MultiClassPrediction,
    Observation,
    Outcome,
    Output,
    Prediction,
    RegressionOutcome,
    RegressionPrediction,
)
from abers.stream.journal import JournalEntry
from abers.stream.outputs import ArrowOutputs, Outputs, Rows, SettledBatch
from abers.stream.processor import Processor
from abers.stream.settings import Settings
from abers.stream.tasks import make_task

if TYPE_CHECKING:
    from abers.stream.durable import DurableProcessor, Follower

__all__ = [
    "Alarm",
    "ArrowOutputs",
    "DeadLetter",
    "DurableProcessor",
    "Event",
    "Events",
    "Follower",
    "Forecasts",
    "JournalEntry",
    "Label",
    "MultiClassOutcome",
    "MultiClassPrediction",
    "Observation",
    "Outcome",
    "Output",
    "Outputs",
    "Prediction",
    "Processor",
    "RegressionOutcome",
    "RegressionPrediction",
    "Rows",
    "ScoredRows",
    "Settings",
    "SettledBatch",
    "make_task",
]


def __getattr__(name: str) -> object:
    """Import a class of `abers.stream.durable` at its first use."""
    if name in {"DurableProcessor", "Follower"}:
        return getattr(importlib.import_module("abers.stream.durable"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
