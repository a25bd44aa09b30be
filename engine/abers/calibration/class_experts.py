"""Venn-Abers experts of class probabilities: one-vs-rest and one-vs-one, shrunk to the raw p.

Arrays have the class as their first axis, and a column a step or a prediction.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.arrays import PREDICT
from abers.calibration import sets
from abers.calibration._coupling import PKPD, normalised, share
from abers.calibration.intervals import shrunk_merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers._core import CalibrationSet
    from abers.arrays import Floats, Integers
    from abers.steps import Steps

__all__ = ["ClassForecast", "one_vs_one", "one_vs_rest", "pair_count", "vectors"]

_CLIP = 1e-6


class ClassForecast(NamedTuple):
    """Predictions of an expert, a column each; `done` counts the steps that were taken."""

    p: Floats
    low: Floats
    high: Floats
    done: int


def vectors(p: Floats) -> Floats:
    """Clip to [1e-6, 1 - 1e-6], and divide by the sum over the classes."""
    return normalised(np.minimum(np.maximum(p, _CLIP), 1.0 - _CLIP))


def pair_count(classes: int) -> int:
    """Count the pairs of classes."""
    return classes * (classes - 1) // 2


def one_vs_rest(
    held: Sequence[CalibrationSet], steps: Steps, raw: Floats, sizes: Integers | None = None
) -> ClassForecast:
    """Run steps in the sets of all classes; `raw` has a column a prediction."""
    asked = steps.kinds == PREDICT
    low, high = np.empty_like(raw), np.empty_like(raw)
    for i, one in enumerate(held):
        labels = (steps.labels == i).astype(np.uint8)
        p0, p1, done = sets.pairs(one, steps._replace(scores=steps.scores[i], labels=labels), sizes)
        if done < len(asked):  # the first set refuses what any refuses
            return ClassForecast(raw, low, high, done)
        low[i], high[i] = p0[asked], p1[asked]
    return ClassForecast(vectors(shrunk_merge(low, high, raw)), low, high, len(asked))


def one_vs_one(held: Sequence[CalibrationSet], steps: Steps, raw: Floats) -> tuple[Floats, int]:
    """Run steps in the sets of all pairs of classes, and couple the shrunk predictions.

    A pair learns the observations of its two classes, with the share of the first in their
    scores, and its merged probability is shrunk to that share in `raw`. The result has a column a
    prediction, and the number of steps that were taken.
    """
    asked = steps.kinds == PREDICT
    k, n = raw.shape
    coupling = PKPD(k, n)
    for one, (i, j) in zip(held, combinations(range(k), 2), strict=True):
        rows = np.flatnonzero(asked | (steps.labels == i) | (steps.labels == j))
        own = steps.take(rows)
        own = own._replace(
            scores=share(own.scores[i], own.scores[j]), labels=(own.labels == i).astype(np.uint8)
        )
        p0, p1, done = sets.pairs(one, own)
        if done < len(rows):
            return raw, int(rows[done])
        at = asked[rows]
        r = shrunk_merge(p0[at], p1[at], raw[i] / (raw[i] + raw[j]))[np.newaxis]
        coupling.add(np.array([i]), np.array([j]), r, r)
    return vectors(coupling.result()[0]), len(asked)
