"""Protected probabilities on streams of several classes, compared with their parts.

The scorers and their delays are those of `streams_several`, the scores of protected and shrunk
their probabilities; answers are of the form of `streams_protection`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from abers import OneVsRest, ProtectedMultiClass
from abers.monitoring import PrequentialScores
from abers.monitoring.multiclass import MultiClassScores
from benchmarks.papers.streams_data import several
from benchmarks.papers.streams_protection import Forecasts, answer
from benchmarks.papers.streams_rivals import HALF_LIFE, clipped, drawn
from benchmarks.papers.streams_several import scored, shared

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.papers.runner import Spec

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["protected_classes"]


def protected_classes(folder: Path, spec: Spec) -> dict[str, Any]:
    """Score the methods on a stream; losses of experts and the price are in nats an event."""
    x, y = several(folder, spec["data"])
    x, y = x[: spec["rows"]], y[: spec["rows"]]
    found = forecasts(scored(x, y, spec["delay"]), y, spec["delay"])
    return answer(found, len(y), {name: _measured(p, y) for name, p in found.of.items()})


def forecasts(odds: Floats, y: Integers, delay: int) -> Forecasts:
    """Forecast from log odds a class with labels that come `delay` observations later."""
    classes, scores = range(odds.shape[1]), shared(expit(odds))
    raw = shared(clipped(scores))
    calibrator = ProtectedMultiClass(classes)
    found = calibrator.prequential(scores, y, delay=delay)
    ivap = OneVsRest(classes).prequential(odds, y, delay=delay).p
    recent = OneVsRest(classes, half_life=HALF_LIFE)
    times = np.arange(len(y), dtype=np.float64)
    _, p0, p1 = recent.prequential(scores, y, delay=delay, times=times)
    shrunk = shared(clipped(drawn(p0, p1, raw)))
    outside = float(np.mean((found.p < found.low) | (found.p > found.high)))
    of = {"raw": raw, "IVAP": ivap, "shrunk": shrunk, "protected": found.p}
    return Forecasts(of, calibrator, outside)


def _measured(p: Floats, y: Integers) -> dict[str, float]:
    """Score forecasts; the ECE is of the class with the largest probability."""
    scores, largest = MultiClassScores(), PrequentialScores()
    scores.update_many(p, y)
    top = p.argmax(axis=1)
    largest.update_many(p.max(axis=1), top == y)
    return {"log": scores.log_loss, "Brier": scores.brier, "ECE": largest.ece}
