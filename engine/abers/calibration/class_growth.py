"""A new class of a protected calibrator: what its calibrator knows about it.

Earlier observations have another class, and score 0 for the new class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.calibration import sets
from abers.forgetting import Forgetting

if TYPE_CHECKING:
    from abers._core import CalibrationSet

__all__ = ["rest_of_new"]


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
