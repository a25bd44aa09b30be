"""Scorers of streams of two classes: one that learns from each label, and one that is frozen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier

from abers.arrays import LEARN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.papers.streams_steps import Steps

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["frozen", "online"]

_RATE, _PENALTY = 0.01, 1e-4  # of the steps of scikit-learn's SGDClassifier


def online(x: Floats, y: Integers, order: Steps, learns: NDArray[np.bool_] | None = None) -> Floats:
    """Score each observation, as log odds, by an online logistic regression of the labels so far.

    It learns from all rows, or from those that `learns` marks.
    """
    scores, weights, intercept = np.zeros(len(y)), np.zeros(x.shape[1]), 0.0
    shrink = 1.0 - _RATE * _PENALTY
    for kind, row in zip(order.kinds.tolist(), order.rows.tolist(), strict=True):
        score = float(x[row] @ weights) + intercept
        if kind != LEARN:
            scores[row] = score
        elif learns is None or learns[row]:
            move = _RATE * (y[row] - float(expit(score)))
            weights = shrink * weights + move * x[row]
            intercept += move
    return scores


def frozen(x: Floats, y: Integers) -> tuple[Floats, Integers]:
    """Score what comes after the first fifth, as log odds, by boosted trees of that fifth.

    Returns the scores, and their labels.
    """
    first = len(y) // 5
    model = HistGradientBoostingClassifier(random_state=0).fit(x[:first], y[:first])
    return np.asarray(model.decision_function(x[first:]), np.float64), y[first:]
