"""Protected probabilities on streams of several classes, and what else is to be had.

A stream has the scorers of `streams_several`, and its labels come by a law of `streams_steps`;
answers are of the form of `streams_protection`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from abers import ProtectedMultiClass
from abers.arrays import PREDICT
from abers.monitoring import PrequentialScores
from abers.monitoring.probability import MultiClassScores
from benchmarks.papers.streams_data import several
from benchmarks.papers.streams_protection import Forecasts, answer
from benchmarks.papers.streams_rivals_classes import class_rivals
from benchmarks.papers.streams_several import scored, shared
from benchmarks.papers.streams_steps import LAWS, steps
from benchmarks.papers.streams_worst import worst

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.papers.runner import Spec
    from benchmarks.papers.streams_steps import Steps

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["protected_classes"]


def protected_classes(folder: Path, spec: Spec) -> dict[str, Any]:
    """Score the methods on a stream; losses and the price are in nats an event."""
    x, y = several(folder, spec["data"])
    x, y = x[: spec["rows"]], y[: spec["rows"]]
    order = steps(LAWS[spec["law"]], y)
    found = forecasts(scored(x, y, order), y, order)
    raw = _losses(found.of["raw"], y)
    return answer(found, len(y), {name: _measured(p, y, raw) for name, p in found.of.items()})


def forecasts(odds: Floats, y: Integers, order: Steps) -> Forecasts:
    """Forecast from log odds of each class."""
    scores, row = shared(expit(odds)), order.rows
    calibrator = ProtectedMultiClass(range(odds.shape[1]))
    found = calibrator.run(order.kinds, scores[row], y[row], numbers=row)
    p, low, high = (column[order.kinds == PREDICT] for column in found)
    outside = float(np.mean((p < low) | (p > high)))
    return Forecasts({"protected": p, **class_rivals(odds, scores, y, order)}, calibrator, outside)


def _losses(p: Floats, y: Integers) -> Floats:
    losses: Floats = -np.log(p[np.arange(len(y)), y])
    return losses


def _measured(p: Floats, y: Integers, raw: Floats) -> dict[str, float]:
    """Score forecasts; the ECE is of the class with the largest probability."""
    scores, largest = MultiClassScores(), PrequentialScores()
    scores.update_many(p, y)
    top = p.argmax(axis=1)
    largest.update_many(p.max(axis=1), top == y)
    loss = {"log": scores.log_loss, "worst": worst(_losses(p, y) - raw)}
    return {**loss, "Brier score": scores.brier, "ECE": largest.ece}
