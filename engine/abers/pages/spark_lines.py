"""Lines over time in the cards of answers, and in cells of tables."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from abers.pages.blocks import Picture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.answers import Answers, Row
    from abers.pages.figures.data import SparkData
    from abers.pages.model_findings import ModelFindings, RaisedAlarm

__all__ = ["error_line", "gap_line", "moments", "saved_line", "small_gap_line"]


def moments(answers: Answers) -> list[float]:
    """Return the latest event time up to each point over time."""
    return [float(one) for one in accumulate((one.until for one in answers.over_time), max)]


def gap_line(found: ModelFindings, view: str, row: Row) -> Picture:
    """Return the gap of a group over time, with its dates below."""
    caption = f"{found.came} − promised over time; green: tolerance"
    data = _gaps(found.answers, found.details.alarms, view, row)
    return Picture("spark", data, _label(view, row), caption=caption)


def small_gap_line(
    answers: Answers, alarms: Sequence[tuple[int, RaisedAlarm]], view: str, row: Row
) -> Picture:
    """Return the gap of a group over time, for a cell."""
    return Picture("spark", _gaps(answers, alarms, view, row), _label(view, row))


def _label(view: str, row: Row) -> str:
    return f"Gap of {view} over time, group {row.name}"


def _gaps(
    answers: Answers, alarms: Sequence[tuple[int, RaisedAlarm]], view: str, row: Row
) -> SparkData:
    points = [one.groups.get(row.key) for one in answers.over_time]
    gaps = [
        None if one is None else 100.0 * (one.came[view] - one.promised[view]) for one in points
    ]
    ends = (row.tolerance_low, row.tolerance_high)
    return {
        "which": "raw" if view == "raw" else "calibrated",
        "x": moments(answers),
        "y": gaps,
        "tolerance": None if ends[0] is None or ends[1] is None else (ends[0], ends[1]),
        "alarms": [float(one.time) for _, one in alarms if one.view == view],
        "now": _now(answers),
        "missing": 0,
    }


def error_line(found: ModelFindings) -> Picture:
    """Return the mean absolute error of the model's number over time."""
    data: SparkData = {
        "which": "raw",
        "x": moments(found.answers),
        "y": [one.losses.get("raw") for one in found.answers.over_time],
        "tolerance": None,
        "alarms": [],
        "now": _now(found.answers),
        "missing": 0,
    }
    label = "Mean absolute error of the model over time"
    return Picture("spark", data, label, caption="mean absolute error over time; line: 0")


def saved_line(found: ModelFindings) -> Picture:
    """Return how much lower losses are over time, in per cent; of numbers, errors."""
    saved, served = [], "median" if found.of_numbers else "calibrated"
    for point in found.answers.over_time:
        raw, calibrated = (point.losses.get(view) for view in ("raw", served))
        known = raw is not None and calibrated is not None and raw > 0.0
        saved.append(100.0 * (1.0 - calibrated / raw) if known else None)  # type: ignore[operator]
    data: SparkData = {
        "which": "calibrated",
        "x": moments(found.answers),
        "y": saved,
        "tolerance": None,
        "alarms": [],
        "now": _now(found.answers),
        "missing": 0,
    }
    label = f"{'Error' if found.of_numbers else 'Log loss'} saved over time, in per cent"
    caption = "per cent saved over time; line: 0"
    return Picture("spark", data, label, caption=caption)


def _now(answers: Answers) -> float | None:
    now, whole = answers.now, answers.whole
    if now is None or whole is None or now.labels == whole.labels:
        return None
    return float(now.start)
