"""Three answers about a model: its truth, that of p, and whether calibration pays.

They are about now: the latest labels, in the order of the predictions as far as all earlier labels
came or expired. All are functions of sums that the core keeps.
"""

from abers.monitoring.answers.answers import Answer, Answers, answers_of, saved_range
from abers.monitoring.answers.period import ClassViews, Dot, Errors, Period, Point, Saved
from abers.monitoring.answers.rows import (
    CalibrationError,
    IntervalRow,
    Row,
    Sums,
    View,
    labels_of_a_mark,
    main_level,
)

__all__ = [
    "Answer",
    "Answers",
    "CalibrationError",
    "ClassViews",
    "Dot",
    "Errors",
    "IntervalRow",
    "Period",
    "Point",
    "Row",
    "Saved",
    "Sums",
    "View",
    "answers_of",
    "labels_of_a_mark",
    "main_level",
    "saved_range",
]
