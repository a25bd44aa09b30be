"""A new class of a protected calibrator: what its experts and its mixture know about it.

Earlier observations have another class, and score 0 for the new class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.arrays import ONE
from abers.calibration import sets
from abers.forgetting import Forgetting

if TYPE_CHECKING:
    from abers._core import CalibrationSet

__all__ = ["pair_with_new", "rest_of_new"]


def rest_of_new(held: CalibrationSet) -> CalibrationSet:
    """Return the one-vs-rest set of a new class, from that of any other class."""
    found = sets.empty(Forgetting.of(held))
    if held.window or held.lifetime:
        scores, labels, weights, times = sets.observations(held)
        order = np.lexsort((weights, times)) if held.lifetime else np.arange(len(scores))
        nothing = np.zeros_like(scores), np.zeros_like(labels)
        found.load_observations(*nothing, weights[order], times[order], held.late)
    elif held.size:
        total = np.array([held.total])
        found.load_groups(np.zeros(1), total, np.zeros(1, np.int64), held.size)
    return found


def pair_with_new(held: CalibrationSet) -> CalibrationSet:
    """Return the set of the pair of a class and a new class, from the one-vs-rest set of the first.

    The share of the first class is 1, or 1/2 where its score is 0 too.
    """
    found = sets.empty(Forgetting.of(held))
    if held.window or held.lifetime:
        every = sets.observations(held)
        scores, labels, weights, times = (column[every[1] == 1] for column in every)
        shares = np.where(scores > 0.0, 1.0, 0.5)
        order = np.lexsort((weights, shares, times)) if held.lifetime else np.arange(len(shares))
        found.load_observations(shares[order], labels[order], weights[order], times[order], 0)
        return found
    scores, _, positives = sets.group_columns(held)
    weights = np.array([positives[scores == 0.0].sum(), positives[scores > 0.0].sum()])
    some = weights > 0
    if some.any():
        shares, weights = np.array([0.5, 1.0])[some], weights[some]
        count = max(int(weights.sum()) // ONE, 1)  # as if each label had weight 1
        found.load_groups(shares, np.zeros_like(weights), weights, count)
    return found
