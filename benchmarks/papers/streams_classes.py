"""Calibrators on streams of two classes.

Governing rule: every forecast is made before its label, and before the labels of the `delay`
observations before it; all calibrators of a stream see the same scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import SGDClassifier

from abers import VennAbers
from abers.calibration import (
    BetaCalibration,
    CrossVennAbers,
    Isotonic,
    Platt,
    cross_log_merge,
    log_merge,
)
from abers.monitoring import PrequentialScores, corp
from benchmarks.papers.streams_data import RECENT, two

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.papers.runner import Spec

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["classified"]

_FOLDS = 5


def scored(x: Floats, y: Integers, delay: int, learns: NDArray[np.bool_]) -> Floats:
    """Score each observation, as log odds, by an online logistic regression of earlier labels."""
    model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01, random_state=0)
    scores = np.zeros(len(y))
    for i in range(len(y)):
        if hasattr(model, "coef_"):
            scores[i] = x[i] @ model.coef_[0] + model.intercept_[0]
        j = i - delay
        if j >= 0 and learns[j]:
            model.partial_fit(x[j : j + 1], y[j : j + 1], classes=[0, 1])
    return scores


def classified(folder: Path, spec: Spec) -> dict[str, Any]:
    """Judge all calibrators on a stream of two classes."""
    x, y = two(folder, spec["data"])
    if spec["rows"] is not None:
        x, y = x[: spec["rows"]], y[: spec["rows"]]
    delay, everything = spec["delay"], np.ones(len(y), bool)
    scores = scored(x, y, delay, everything)
    fold = np.arange(len(y)) % _FOLDS
    others = [scored(x, y, delay, fold != k) for k in range(_FOLDS)]
    found = forecasts(scores, np.column_stack(others), y, delay)
    return {name: judged(p, y) for name, p in found.items()}


def forecasts(scores: Floats, others: Floats, y: Integers, delay: int) -> dict[str, Floats]:
    """Forecast by each calibrator; `others` are the scores of models that left out a fold each."""
    n = len(y)
    raw = expit(scores)
    times = np.arange(n, dtype=np.float64)
    cross = CrossVennAbers(folds=_FOLDS)
    return {
        "raw": raw,
        "Platt": Platt().prequential(scores, y, delay=delay),
        "isotonic": Isotonic().prequential(scores, y, delay=delay),
        "beta": BetaCalibration().prequential(raw, y, delay=delay),
        "IVAP": log_merge(*VennAbers().prequential(scores, y, delay=delay)),
        "IVAP, window": log_merge(*VennAbers(window=RECENT).prequential(scores, y, delay=delay)),
        "IVAP, half-life": log_merge(
            *VennAbers(half_life=float(RECENT)).prequential(scores, y, delay=delay, times=times)
        ),
        "CVAP": cross_log_merge(
            *cross.prequential(others, y, delay=delay, folds=np.arange(n) % _FOLDS)
        ),
    }


def judged(p: Floats, y: Integers) -> dict[str, float | None]:
    """Score forecasts; None stands for an infinite log loss."""
    scores = PrequentialScores()
    scores.update_many(p, y)
    parts = corp(p, y).decomposition()
    return {
        "log": None if scores.infinite else scores.log_loss,
        "infinite": scores.infinite,
        "Brier": scores.brier,
        "MCB": parts.miscalibration,
        "DSC": parts.discrimination,
        "ECE": scores.ece,
    }
