"""Protected probabilities on streams of two classes, and what else is to be had.

A stream has two scorers, and its labels come by each law of `streams_steps`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers import ProtectedVennAbers
from abers.arrays import PREDICT
from abers.monitoring import PrequentialScores
from benchmarks.papers.streams_data import two
from benchmarks.papers.streams_rivals import rivals
from benchmarks.papers.streams_scorers import frozen, online
from benchmarks.papers.streams_steps import LAWS, steps

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from abers import ProtectedMultiClass
    from benchmarks.papers.runner import Spec
    from benchmarks.papers.streams_steps import Steps

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = [
    "BINS",
    "FROZEN",
    "ONLINE",
    "ROWS",
    "Forecasts",
    "answer",
    "calibration_error",
    "protected",
]

ONLINE, FROZEN = "online", "frozen"
ROWS = {"MNIST": 50_000}
"""Rows that are read of a stream, where not all are."""

BINS = 20


class Forecasts(NamedTuple):
    """Forecasts by each method, and the protected calibrator at the end."""

    of: dict[str, Floats]
    calibrator: ProtectedVennAbers | ProtectedMultiClass
    outside: float  # share of protected forecasts that lie outside their intervals


def protected(folder: Path, spec: Spec) -> dict[str, Any]:
    """Score all methods on a stream under each law; losses and the price are in nats an event."""
    x, y = two(folder, spec["data"])
    x, y = x[: spec["rows"]], y[: spec["rows"]]
    found = {}
    if spec["scorer"] == FROZEN:
        scores, y = frozen(x, y)
    for law in spec["laws"]:
        order = steps(LAWS[law], y)
        if spec["scorer"] == ONLINE:
            scores = online(x, y, order)
        cell = forecasts(scores, y, order)
        methods = {name: measured(p, y) for name, p in cell.of.items()}
        found[law] = answer(cell, len(y), methods)
    return found


def answer(found: Forecasts, labels: int, methods: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of the methods with what the calibrator says of its experts."""
    experts = {name: loss / labels for name, loss in found.calibrator.expert_losses().items()}
    del experts["protected"]
    return {
        "methods": methods,
        "experts": experts,
        "price": found.calibrator.price / labels,
        "outside": found.outside,
    }


def forecasts(scores: Floats, y: Integers, order: Steps) -> Forecasts:
    """Forecast from scores in log odds."""
    calibrator = ProtectedVennAbers(scores="logit")
    row = order.rows
    found = calibrator.run(order.kinds, scores[row], y[row], numbers=row)
    p, p0, p1 = (column[order.kinds == PREDICT] for column in (found.probability, *found[:2]))
    outside = float(np.mean((p < p0) | (p > p1)))
    return Forecasts({"protected": p, **rivals(scores, y, order)}, calibrator, outside)


def measured(p: Floats, y: Integers) -> dict[str, float]:
    """Score forecasts."""
    scores = PrequentialScores()
    scores.update_many(p, y)
    return {"log": scores.log_loss, "Brier": scores.brier, "error": calibration_error(p, y)}


def calibration_error(p: Floats, y: Integers) -> float:
    """Estimate the calibration error without the bias of chance.

    Kumar, Liang & Ma (2019), Verified uncertainty calibration: bins have equal counts. Each has a
    squared gap, minus the variance of what came. This is the root of their mean, or 0
    where the mean is negative.
    """
    order, total = np.argsort(p, kind="stable"), 0.0
    for rows in np.array_split(order, BINS):
        came = float(y[rows].mean())
        chance = came * (1.0 - came) / (len(rows) - 1)
        total += len(rows) * ((float(p[rows].mean()) - came) ** 2 - chance)
    return math.sqrt(max(total / len(p), 0.0))
