"""The stream processor: observations in, predictions out, labels whenever they come."""

from abers.monitoring.scored_rows import Forecasts, ScoredRows
from abers.stream.arrow_tables import ArrowOutputs
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
from abers.stream.outputs import Outputs, SettledBatch
from abers.stream.processor import Processor
from abers.stream.rows import Rows
from abers.stream.settings import Settings
from abers.stream.tasks import make_task

__all__ = [
    "Alarm",
    "ArrowOutputs",
    "DeadLetter",
    "Event",
    "Events",
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
