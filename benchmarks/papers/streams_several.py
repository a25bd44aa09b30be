"""Calibrators on streams of several classes.

As in `streams_classes`; what calibrates one class against the rest is divided by
the sum over the classes, for whichever calibrator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from abers import OneVsOne, OneVsRest
from abers.calibration import BetaCalibration, Isotonic, Platt
from abers.monitoring import corp
from abers.monitoring.probability import MultiClassScores
from benchmarks.papers.streams_data import RECENT, several
from benchmarks.papers.streams_scorers import online
from benchmarks.papers.streams_steps import equal, steps

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.papers.runner import Spec
    from benchmarks.papers.streams_steps import Steps

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["told_apart"]


def told_apart(folder: Path, spec: Spec) -> dict[str, Any]:
    """Score all calibrators on a stream of several classes."""
    x, y = several(folder, spec["data"])
    if spec["rows"] is not None:
        x, y = x[: spec["rows"]], y[: spec["rows"]]
    odds = scored(x, y, steps(equal(spec["delay"]), y))
    return {name: measured(p, y) for name, p in forecasts(odds, y, spec["delay"]).items()}


def scored(x: Floats, y: Integers, order: Steps) -> Floats:
    """Score each class against the rest, as log odds, by online logistic regressions."""
    return np.column_stack([online(x, (y == k).astype(np.int64), order) for k in np.unique(y)])


def forecasts(odds: Floats, y: Integers, delay: int) -> dict[str, Floats]:
    """Forecast by each calibrator."""
    raw, classes = expit(odds), range(odds.shape[1])
    times = np.arange(len(y), dtype=np.float64)

    def each(kind: type[Platt | Isotonic | BetaCalibration], scores: Floats) -> Floats:
        columns = [kind().prequential(scores[:, k], y == k, delay=delay) for k in classes]
        return shared(np.column_stack(columns))

    def rest(*, times: Floats | None = None, **forgetting: Any) -> Floats:  # noqa: ANN401 - its options
        held = OneVsRest(classes, **forgetting)
        return held.prequential(odds, y, delay=delay, times=times)[0]

    return {
        "raw": shared(raw),
        "Platt": each(Platt, odds),
        "isotonic": each(Isotonic, odds),
        "beta": each(BetaCalibration, raw),
        "IVAP": rest(),
        "IVAP, window": rest(window=RECENT),
        "IVAP, half-life": rest(half_life=float(RECENT), times=times),
        "IVAP, pairs": OneVsOne(classes).prequential(shared(raw), y, delay=delay)[0],
    }


def shared(p: Floats) -> Floats:
    """Divide by the sum over the classes; where all are impossible, all are equal."""
    total = p.sum(axis=1, keepdims=True)
    return np.divide(p, total, out=np.full_like(p, 1.0 / p.shape[1]), where=total > 0.0)


def measured(p: Floats, y: Integers) -> dict[str, float | None]:
    """Score forecasts; None stands for an infinite log loss."""
    scores = MultiClassScores()
    scores.update_many(p, y)
    top = p.argmax(axis=1)
    said = p[np.arange(len(y)), top]
    parts = corp(said, (top == y).astype(np.int64)).decomposition()
    return {
        "log": None if scores.infinite else scores.log_loss,
        "infinite": scores.infinite,
        "Brier": scores.brier,
        "accuracy": scores.accuracy,
        "MCB": parts.miscalibration,
    }
