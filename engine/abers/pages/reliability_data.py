"""Data of the figures of promised against came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.monitoring import BinaryMonitor, MultiClassMonitor

if TYPE_CHECKING:
    from abers.monitoring.answers import Row, View
    from abers.monitoring.reliability import Reliability
    from abers.pages.figures.data import ReliabilityData
    from abers.pages.model_findings import ModelFindings

__all__ = ["reliability_data", "reliability_of"]


def reliability_data(
    found: ModelFindings, view: View, name: str, *, whole: bool
) -> ReliabilityData:
    """Return the groups of a view; of the whole stream with the isotonic line and all tenths."""
    tenths = [row for row in view.rows if not row.main and row.labels]
    rows = tenths or view.main
    kept = reliability_of(found, name) if whole else None
    xs, ys = ([], []) if kept is None else _lines(kept)
    return {
        "which": "raw" if name == "raw" else "calibrated",
        "names": [row.name for row in rows],
        "promised": [row.promised for row in rows],
        "came": [row.came for row in rows],
        "low": [_end(row, row.low) for row in rows],
        "high": [_end(row, row.high) for row in rows],
        "cases": [row.labels for row in rows],
        "tolerance": found.tolerance,
        "isotonic_x": xs,
        "isotonic_y": ys,
        "tenths": _cases(tenths) if whole else [],
        "missing": 0,
    }


def reliability_of(found: ModelFindings, view: str) -> Reliability | None:
    """Return the counts of all forecasts of a view, warm-up included; None of numbers."""
    monitor: Any = found.monitor
    if not isinstance(monitor, BinaryMonitor | MultiClassMonitor):
        return None
    scores = monitor.scores().get(view)
    return None if scores is None else scores.reliability


def _end(row: Row, end: float | None) -> float | None:
    """Return where an end of the range is above the promise, as a share."""
    if end is None or row.promised is None:
        return None
    return min(max(row.promised + end / 100.0, 0.0), 1.0)


def _lines(kept: Reliability) -> tuple[list[float], list[float]]:
    """Return the isotonic line."""
    diagram = kept.diagram()
    xs = np.column_stack((diagram.lower, diagram.upper)).ravel().tolist()
    return xs, np.repeat(diagram.probability, 2).tolist()


def _cases(tenths: list[Row]) -> list[int]:
    """Return the labels of each tenth, of a view with tenths that were never merged."""
    labels = {row.key: row.labels for row in tenths}
    return [labels.get(f"tenth-{first}", 0) for first in range(10)] if labels else []
