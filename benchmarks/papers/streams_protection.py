"""Protected probabilities on streams of two classes, beside what they are made of.

The scorer and its delays are those of `streams_classes`; all forecasts are of the same scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit

from abers import ProtectedVennAbers, VennAbers
from abers.calibration import log_merge
from abers.monitoring import PrequentialScores
from benchmarks.papers.streams_classes import scored
from benchmarks.papers.streams_data import two

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from abers import ProtectedMultiClass
    from benchmarks.papers.runner import Spec

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["HALF_LIFE", "ROWS", "Forecasts", "answer", "clipped", "drawn", "protected"]

ROWS = {"MNIST": 50_000}
"""Rows that are read of a stream, where not all are."""
HALF_LIFE = 3_000.0
"""Half-life of the shrunk IVAP, in predictions."""

_CLIP = 1e-6
_SHRINK = 30.0  # labels that the raw probability counts as
_NARROWEST = 1e-9


class Forecasts(NamedTuple):
    """Forecasts by each method, and the protected calibrator at the end."""

    of: dict[str, Floats]
    calibrator: ProtectedVennAbers | ProtectedMultiClass
    outside: float  # share of protected forecasts that lie outside their intervals


def protected(folder: Path, spec: Spec) -> dict[str, Any]:
    """Score the methods on a stream; losses of experts and the price are in nats an event."""
    x, y = two(folder, spec["data"])
    x, y = x[: spec["rows"]], y[: spec["rows"]]
    scores = scored(x, y, spec["delay"], np.ones(len(y), bool))
    found = forecasts(scores, y, spec["delay"])
    return answer(found, len(y), {name: _measured(p, y) for name, p in found.of.items()})


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


def forecasts(scores: Floats, y: Integers, delay: int) -> Forecasts:
    """Forecast from scores in log odds, whose labels come `delay` observations later."""
    raw = clipped(expit(scores))
    calibrator = ProtectedVennAbers(scores="logit")
    found = calibrator.prequential(scores, y, delay=delay)
    p = found.probability
    times = np.arange(len(y), dtype=np.float64)
    recent = VennAbers(half_life=HALF_LIFE).prequential(scores, y, delay=delay, times=times)
    ivap = VennAbers().prequential(scores, y, delay=delay).merged
    outside = float(np.mean((p < found.p0) | (p > found.p1)))
    of = {"raw": raw, "IVAP": ivap, "shrunk": drawn(*recent, raw), "protected": p}
    return Forecasts(of, calibrator, outside)


def clipped(p: Floats) -> Floats:
    """Clip as raw probabilities are."""
    return np.clip(p, _CLIP, 1.0 - _CLIP)


def drawn(p0: Floats, p1: Floats, raw: Floats) -> Floats:
    """Merge intervals for the log loss, and draw them to raw where they are wide."""
    evidence = 1.0 / np.maximum(p1 - p0, _NARROWEST) - 1.0
    found: Floats = (evidence * log_merge(p0, p1) + _SHRINK * raw) / (evidence + _SHRINK)
    return found


def _measured(p: Floats, y: Integers) -> dict[str, float]:
    scores = PrequentialScores()
    scores.update_many(p, y)
    return {"log": scores.log_loss, "Brier": scores.brier, "ECE": scores.ece}
