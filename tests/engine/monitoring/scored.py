"""Scored rows as a task makes them, from plain rows of floats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.calibration import log_merge
from abers.monitoring import BinaryForecasts, ClassForecasts, ScoredRows
from abers.monitoring.regression import central_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["binary", "classes", "regression"]


def binary(rows: Floats, labels: Floats, *, raw: bool = True) -> ScoredRows:
    """Return rows of score, p0 and p1 with their labels."""
    score, p0, p1 = rows.reshape(-1, 3).T
    forecasts = {"calibrated": BinaryForecasts(log_merge(p0, p1), labels)}
    if raw:
        forecasts = {"raw": BinaryForecasts(score, labels)} | forecasts
    return ScoredRows(labels, forecasts, p1 - p0)


def classes(rows: Floats, labels: Floats, *, raw: bool = True) -> ScoredRows:
    """Return rows of scores, probabilities, lower and upper ends with their labels."""
    truth = labels.astype(np.int64)
    score, p, low, high = np.split(rows, 4, axis=1)
    forecasts = {"calibrated": ClassForecasts(p, truth)}
    if raw:
        forecasts = {"raw": ClassForecasts(score, truth)} | forecasts
    return ScoredRows(labels, forecasts, (high - low)[np.arange(len(truth)), truth])


def regression(
    levels: Sequence[float], rows: Floats, labels: Floats, *, whole: bool = False
) -> ScoredRows:
    """Return rows of score and quantiles with their labels.

    The last three columns are CRPS and both ends of the PIT value, if there are distributions.
    """
    quantiles = rows[:, 1 : 1 + len(levels)]
    covered = {
        share: (quantiles[:, low] <= labels) & (labels <= quantiles[:, high])
        for low, high, share in central_pairs(levels)
    }
    more: dict[str, Any] = {"crps": rows[:, -3], "pit": (rows[:, -2], rows[:, -1])} if whole else {}
    return ScoredRows(labels, scores=rows[:, 0], quantiles=quantiles, covered=covered, **more)
