"""Calibrators on streams of two classes.

Every forecast is made before its label, and before the labels of the `delay`
observations before it; all calibrators of a stream see the same scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

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
from benchmarks.papers.streams_scorers import online
from benchmarks.papers.streams_steps import equal, steps

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.papers.runner import Spec

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Said = tuple[Floats, float | None]  # probabilities, and the mean of p1 - p0

__all__ = ["classified"]

_FOLDS = 5


def classified(folder: Path, spec: Spec) -> dict[str, Any]:
    """Score all calibrators on a stream of two classes."""
    x, y = two(folder, spec["data"])
    if spec["rows"] is not None:
        x, y = x[: spec["rows"]], y[: spec["rows"]]
    delay = spec["delay"]
    order = steps(equal(delay), y)
    scores = online(x, y, order)
    fold = np.arange(len(y)) % _FOLDS
    others = [online(x, y, order, fold != k) for k in range(_FOLDS)]
    found = forecasts(scores, np.column_stack(others), y, delay)
    return {name: measured(said, y) for name, said in found.items()}


def forecasts(scores: Floats, others: Floats, y: Integers, delay: int) -> dict[str, Said]:
    """Forecast by each calibrator; `others` are the scores of models that left out a fold each."""
    n = len(y)
    raw = expit(scores)
    times = np.arange(n, dtype=np.float64)

    def ivap(*, times: Floats | None = None, **forgetting: Any) -> Said:  # noqa: ANN401 - its options
        held = VennAbers(**forgetting)
        p0, p1 = held.prequential(scores, y, delay=delay, times=times)
        return log_merge(p0, p1), float(np.mean(p1 - p0))

    cross = CrossVennAbers(folds=_FOLDS)
    folds = cross.prequential(others, y, delay=delay, folds=np.arange(n) % _FOLDS)
    return {
        "raw": (raw, None),
        "Platt": (Platt().prequential(scores, y, delay=delay), None),
        "isotonic": (Isotonic().prequential(scores, y, delay=delay), None),
        "beta": (BetaCalibration().prequential(raw, y, delay=delay), None),
        "IVAP": ivap(),
        "IVAP, window": ivap(window=RECENT),
        "IVAP, half-life": ivap(half_life=float(RECENT), times=times),
        "CVAP": (cross_log_merge(*folds), None),
    }


def measured(said: Said, y: Integers) -> dict[str, Any]:
    """Score forecasts; None stands for an infinite log loss, and for a width that there is not.

    The reliability curve is the CORP diagram at twenty quantiles of the forecasts.
    """
    p, width = said
    scores = PrequentialScores()
    scores.update_many(p, y)
    diagram = corp(p, y)
    parts = diagram.decomposition()
    places = np.quantile(p, (np.arange(20) + 0.5) / 20)
    ends = np.column_stack((diagram.lower, diagram.upper)).ravel()
    known = np.interp(places, ends, np.repeat(diagram.probability, 2))
    return {
        "log": None if scores.infinite else scores.log_loss,
        "infinite": scores.infinite,
        "Brier": scores.brier,
        "MCB": parts.miscalibration,
        "DSC": parts.discrimination,
        "ECE": scores.ece,
        "width": width,
        "curve": np.column_stack((places, known)).tolist(),
    }
