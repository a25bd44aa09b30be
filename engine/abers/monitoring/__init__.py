"""Monitors of a stream: scores, reliability and sequential tests of its predictions."""

from abers.monitoring.answer_numbers import ANSWERS, answer_numbers
from abers.monitoring.base import (
    BAND_LEVEL,
    Figure,
    Monitor,
    TaskMonitor,
    consistency_bands,
    others_total,
    verdicts_total,
)
from abers.monitoring.binary import BinaryMonitor
from abers.monitoring.calibration_e_process import CalibrationEProcess
from abers.monitoring.calibration_error import CalibrationError, CalibrationErrorSequence
from abers.monitoring.confidence_sequence import ConfidenceSequence
from abers.monitoring.corp import Bands, Decomposition, Diagram, corp
from abers.monitoring.coverage import BandCoverageMonitor, CoverageMonitor
from abers.monitoring.distribution_e_process import DistributionEProcess
from abers.monitoring.doubts import label_doubts, score_doubts
from abers.monitoring.e_processes import EProcess, EProcessSteps, OpenedIncident
from abers.monitoring.event_time import event_time, is_date
from abers.monitoring.evidence import TESTS, Evidence, Incident, evidence_numbers, strongest
from abers.monitoring.exchangeability import ExchangeabilityEProcess
from abers.monitoring.forecast_groups import ForecastGroup, ForecastGroups
from abers.monitoring.label_need import LabelNeed, label_needs
from abers.monitoring.loss_difference import LossDifference
from abers.monitoring.measures import Measure, Number, means
from abers.monitoring.mixture import Expert, Mixture
from abers.monitoring.mixture_monitor import LossWords, MixtureMonitor, experts
from abers.monitoring.multiclass import MultiClassMonitor, MultiClassScores
from abers.monitoring.protection import DistributionProtectionMonitor, ProtectionMonitor
from abers.monitoring.registry import MONITORS, measure, task_monitor
from abers.monitoring.regression import CentralInterval, RegressionMonitor
from abers.monitoring.reliability import Reliability
from abers.monitoring.scored_rows import (
    BinaryForecasts,
    ClassForecasts,
    Forecasts,
    ScoredRows,
    TrackedRows,
)
from abers.monitoring.scores import Bin, PrequentialScores
from abers.monitoring.shift import Shift
from abers.monitoring.tested_view import ALARM_TEST, SettledForecasts, TestedView
from abers.monitoring.tests import EDetector, Martingale, SequentialTest
from abers.monitoring.time_figures import axis_dates, figures_over_time, missing_labels
from abers.monitoring.tracker import Tracker
from abers.monitoring.trail import Trail
from abers.monitoring.verdict import Estimate, Verdict, Words
from abers.monitoring.verdict_parts import VerdictParts
from abers.monitoring.verdict_sequence import VerdictSequence
from abers.monitoring.windows import (
    Totals,
    Window,
    WindowedMonitor,
    joined_windows,
    recent_windows,
)

__all__ = [
    "ALARM_TEST",
    "ANSWERS",
    "BAND_LEVEL",
    "MONITORS",
    "TESTS",
    "BandCoverageMonitor",
    "Bands",
    "Bin",
    "BinaryForecasts",
    "BinaryMonitor",
    "CalibrationEProcess",
    "CalibrationError",
    "CalibrationErrorSequence",
    "CentralInterval",
    "ClassForecasts",
    "ConfidenceSequence",
    "CoverageMonitor",
    "Decomposition",
    "Diagram",
    "DistributionEProcess",
    "DistributionProtectionMonitor",
    "EDetector",
    "EProcess",
    "EProcessSteps",
    "Estimate",
    "Evidence",
    "ExchangeabilityEProcess",
    "Expert",
    "Figure",
    "ForecastGroup",
    "ForecastGroups",
    "Forecasts",
    "Incident",
    "LabelNeed",
    "LossDifference",
    "LossWords",
    "Martingale",
    "Measure",
    "Mixture",
    "MixtureMonitor",
    "Monitor",
    "MultiClassMonitor",
    "MultiClassScores",
    "Number",
    "OpenedIncident",
    "PrequentialScores",
    "ProtectionMonitor",
    "RegressionMonitor",
    "Reliability",
    "ScoredRows",
    "SequentialTest",
    "SettledForecasts",
    "Shift",
    "TaskMonitor",
    "TestedView",
    "Totals",
    "TrackedRows",
    "Tracker",
    "Trail",
    "Verdict",
    "VerdictParts",
    "VerdictSequence",
    "Window",
    "WindowedMonitor",
    "Words",
    "answer_numbers",
    "axis_dates",
    "consistency_bands",
    "corp",
    "event_time",
    "evidence_numbers",
    "experts",
    "figures_over_time",
    "is_date",
    "joined_windows",
    "label_doubts",
    "label_needs",
    "means",
    "measure",
    "missing_labels",
    "others_total",
    "recent_windows",
    "score_doubts",
    "strongest",
    "task_monitor",
    "verdicts_total",
]
