"""The stream processor: observations in, predictions out, labels whenever they come."""

from __future__ import annotations

from abers.stream.columns import Events, Rows
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
from abers.stream.facts import Facts, Forecasts
from abers.stream.journal import Entry
from abers.stream.kinds import task_of
from abers.stream.outputs import Judged, Outputs
from abers.stream.processor import Processor
from abers.stream.settings import Settings

__all__ = [
    "Alarm",
    "DeadLetter",
    "Entry",
    "Event",
    "Events",
    "Facts",
    "Forecasts",
    "Judged",
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
    "Settings",
    "task_of",
]
